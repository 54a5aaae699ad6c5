"""Methods and metrics of one's own, registered in a program."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank import extensions
from federank.errors import SettingError
from federank.methods.registry import method_names


class Alphabetical(fr.Recommender):
    """Items in the order of their numbers."""

    name = "alphabetical"

    def _learn(self, train, training_options):  # noqa: ARG002 (every method is asked alike)
        self.order = -np.arange(train.n_items, dtype=np.float32)

    def _score_users(self, users):
        return np.tile(self.order, (len(users), 1))

    def _shared_arrays(self):
        return {"order": self.order}

    def _restore(self, shared, private):  # noqa: ARG002
        self.order = shared["order"]


@pytest.mark.usefixtures("nothing_stays")
def test_a_registered_method_is_found_by_its_name(tmp_path):
    assert fr.register(Alphabetical) is Alphabetical
    split = fr.split_random(two_tastes(), 0.2)
    model = fr.fit("alphabetical", split)
    assert repr(model) == "Alphabetical()"
    assert "alphabetical" in method_names()
    model.save(tmp_path / "model", split)
    assert fr.load_model(tmp_path / "model").recommend(0, 3) == model.recommend(0, 3)
    with pytest.raises(SettingError, match="'epochs'"):
        fr.fit("alphabetical", split, epochs=3)


@pytest.mark.usefixtures("nothing_stays")
def test_what_is_no_method_is_refused():
    class Nameless(Alphabetical):
        name = None

    class Taken(Alphabetical):
        name = "popular"

    class Half(fr.Recommender):
        name = "half"

        def _learn(self, train, training_options):
            pass

    with pytest.raises(SettingError, match="'mine'"):
        fr.register(Nameless)
    with pytest.raises(SettingError):
        fr.register(Taken)
    with pytest.raises(SettingError, match=r"score_users.*shared_arrays"):
        fr.register(Half)
    with pytest.raises(SettingError, match="'half'"):
        fr.fit("half", two_tastes())


@pytest.mark.usefixtures("nothing_stays")
def test_a_registered_metric_is_part_of_every_evaluation():
    def last_place(hits, relevant, n):
        return hits[:, n - 1].astype(float)

    fr.register_metric(last_place)
    split = fr.split_random(two_tastes(), 0.2)
    model = fr.MostPopular().fit(split.train)
    assert 0 <= fr.evaluate(model, split, at=3).means["last_place@3"] <= 1
    assert set(fr.evaluate(model, split, at=3, metrics=["last_place"]).means) == {
        "last_place@3",
        "users",
        "user_coverage",
    }
    with pytest.raises(SettingError):
        fr.register_metric(last_place, "ndcg")


def test_an_entry_point_that_cannot_be_loaded_is_named(monkeypatch):
    broken = EntryPoint("broken", "no_such_package.module:Broken", "federank.methods")
    monkeypatch.setattr(extensions, "_points", lambda kind: {"broken": broken} if kind == "methods" else {})
    with pytest.raises(SettingError, match="'broken'"):
        fr.fit("broken", two_tastes())
