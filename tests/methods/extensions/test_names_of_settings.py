"""A method's setting may have the name of an option of a command: both can be given, and neither is lost."""

from dataclasses import fields, make_dataclass

import numpy as np
import pytest
from tests.commands import run, succeeded
from tests.studies.worlds import small_data

import federank as fr
from federank.errors import SettingError

pytestmark = pytest.mark.usefixtures("nothing_stays")

OF_TRAIN = [
    *("patience", "test", "folds", "threads", "out", "split", "way", "data", "source", "json", "as_json", "count"),
    *("no_count", "method", "help", "quiet", "users", "preset", "search", "values", "given", "settings"),
]
OF_AUDIT = ["threads", "sample", "sees", "split", "json"]


# ruff: noqa: ARG002 (the functions of a method have the arguments that every method has)


def own_method(name):
    """A method of one integer setting with this name."""
    record = make_dataclass("Record", [(name, int, 3)], frozen=True, kw_only=True)

    class Own(fr.Recommender):
        """Items in the order of their numbers."""

        settings_type = record

        def _learn(self, train, training_options):
            self.order = -np.arange(train.n_items, dtype=np.float32)

        def _score_users(self, users):
            return np.tile(self.order, (len(users), 1))

        def _shared_arrays(self):
            return {"order": self.order}

        def _restore(self, shared, private):
            self.order = shared["order"]

    Own.name = "own"
    return fr.register(Own)


def own_federated_method(name):
    """The same, in rounds."""

    def initial_state(self):
        return fr.ItemVectors(np.zeros((self.n_items, self.factors)))

    def client_update(self, client, broadcast):
        rows = np.full((len(client.items), self.factors), getattr(self, name))
        return fr.ClientResult(fr.ItemGradients(client.items, rows), fr.UserVector(np.ones(self.factors)))

    def server_update(self, state, aggregate):
        return fr.ItemVectors(state.vectors + aggregate.vectors)

    functions = (initial_state, client_update, server_update)
    content = {function.__name__: function for function in functions} | {"name": "votes", "__doc__": "Votes."}
    bases = (fr.FederatedMethod,)
    return fr.register(
        make_dataclass("Votes", [(name, int, 3)], bases=bases, namespace=content, frozen=True, kw_only=True)
    )


def flag_in_help(command, setting):
    """The flag that a command offers for the setting."""
    words = command.split()
    method = words[-1]
    text = run(*words, "--help-all").output + succeeded(*words, "--help").output
    flag = setting.replace("_", "-")
    return f"--{method}-{flag}" if f"--{method}-{flag}" in text else f"--{flag}"


@pytest.mark.parametrize("name", OF_TRAIN)
def test_train_takes_the_setting_beside_its_own_options(name, tmp_path):
    own_method(name)
    out = tmp_path / "model"
    succeeded(
        *("train", "own", "--data", small_data(tmp_path), "--out", out, "--test", 0.3),
        *(flag_in_help("train own", name), 7),
    )
    model = fr.load_model(out)
    assert [getattr(model.settings, field.name) for field in fields(model.settings)] == [7]
    assert len(fr.load_split(out).test) == 30 * 3  # of 12 interactions each, three tenths


@pytest.mark.parametrize("name", ["patience", "test", "folds", "threads"])
def test_without_the_flag_the_setting_keeps_its_default(name, tmp_path):
    own_method(name)
    succeeded("train", "own", "--data", small_data(tmp_path), "--out", tmp_path / "model")
    assert getattr(fr.load_model(tmp_path / "model").settings, name) == 3


@pytest.mark.parametrize("name", OF_AUDIT)
def test_audit_takes_the_setting_beside_its_own_options(name, tmp_path):
    own_federated_method(name)
    words = ("audit", "votes", "--data", small_data(tmp_path), "--sample", 5, "--json", "--threads", 1)
    succeeded(*words, "--rounds", 1, flag_in_help("audit votes", name), 7)


@pytest.mark.parametrize("name", ["patience", "metric", "training_options"])
def test_fit_refuses_a_name_that_could_mean_two_things(name):
    own_method(name)
    data = fr.load([(user, item) for user in range(5) for item in range(user, user + 4)])
    with pytest.raises(SettingError, match=name):
        fr.fit("own", fr.split_random(data, test=0.2, validation=0.2), **{name: 5})
    assert fr.fit("own", data).settings == fr.fit("own", data).settings_type()


def test_a_flag_that_the_command_has_no_use_for_is_the_settings(tmp_path):
    own_method("patience")
    succeeded("train", "own", "--data", small_data(tmp_path), "--out", tmp_path / "model", "--patience", 2)
    assert fr.load_model(tmp_path / "model").settings.patience == 2
