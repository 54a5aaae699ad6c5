"""A federated method of one's own: rounds, policies, communication and audits work for it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import BadFile, BadMessage, Diverged, SettingError
from federank.privacy.policy import Policy, shared_profile
from federank.privacy.population import shared_profiles_of_all


@dataclass(frozen=True)
class Changes:
    vectors: np.ndarray = fr.array("items", "factors")


@dataclass(frozen=True, kw_only=True)
class Factors(fr.FederatedMethod):
    """Gradients of a square loss, and a vector of each client's own."""

    name = "own-factors"
    records = fr.Records(update=Changes)
    factors: int = fr.setting(4, 1, 64)

    def initial_state(self):
        return fr.ItemVectors(np.random.default_rng(self.seed).normal(0, 0.1, (self.n_items, self.factors)))

    def client_update(self, client, broadcast):
        u = client.state.vector if client.state else client.rng.normal(0, 0.1, self.factors)
        error = np.bincount(client.items, minlength=self.n_items) - broadcast.vectors @ u
        return fr.ClientResult(Changes(np.outer(error, u)), fr.UserVector(u + 0.1 * error @ broadcast.vectors))

    def add(self, aggregate, update):
        aggregate.vectors += update.vectors

    def server_update(self, state, aggregate):
        return replace(state, vectors=state.vectors + 0.02 * aggregate.vectors)


@pytest.mark.usefixtures("nothing_stays")
def test_it_learns_two_tastes_and_is_kept(tmp_path):
    fr.register(Factors)
    split = fr.split_random(two_tastes(), 0.2)
    model = fr.fit("own-factors", split, rounds=150)
    lists = model.recommend(n=2)
    assert (model.item_ids[lists.items] % 2 == (lists.users % 2)[:, None]).mean() > 0.9
    model.save(tmp_path / "model", split)
    assert fr.load_model(tmp_path / "model").recommend(0, 5) == model.recommend(0, 5)
    sent = model.communication()
    assert sent["uploads"] == sent["downloads"] == 150 * model.training.n_users
    assert sent["up"]["rows"] == sent["uploads"] * model.training.n_items


def test_policies_hold_whatever_the_maths_does():
    data, seen = two_tastes(), []

    @dataclass(frozen=True, kw_only=True)
    class Watching(Factors):
        def client_update(self, client, broadcast):
            seen.append((client.user, frozenset(client.items.tolist())))
            return super().client_update(client, broadcast)

    Watching(seed=5).fit(data, rounds=2, pi=0.3)
    policy = Policy(sharing="fixed-subset", pi=0.3, basis="shared")
    assert len(seen) == 2 * data.n_users
    for user, items in seen:
        assert items == set(shared_profile(policy, 5, user, data.profiles.of(user), data.n_items).profile.tolist())
    with pytest.raises(SettingError, match="'all'"):
        Factors().fit(data, sharing="all")


def test_users_who_hold_back_are_recommended_to_from_home():
    data = two_tastes()
    model = Factors().fit(data, rounds=60, pi=0.5)
    person = fr.enrol(model, history=data.item_ids[data.profiles.of(0)].tolist())
    assert {int(found.item) % 2 for found in person.recommend(3)} == {int(f.item) % 2 for f in model.recommend(0, 3)}


def test_what_it_sends_is_audited():
    model = Factors().fit(two_tastes(), rounds=3, online=0.6)
    reading = fr.audit_model(model).findings[-1]
    # The first message of a dense gradient is strongest where the history is.
    assert reading.attacks["magnitude"]["auc"] > 0.9
    sums = fr.audit_model(model, sees="sums").findings[-1]
    assert set(sums.attacks) == {"popularity", "membership"}
    with pytest.raises(SettingError, match="'helper'"):
        fr.audit_model(model, sees="helper")


@pytest.mark.usefixtures("nothing_stays")
def test_an_attack_of_ones_own_is_judged_beside_ours():
    @fr.attack(on="fpl", sees=["updates"])
    def hopeless(view):
        return fr.Guess(np.zeros((len(view.popularity), 40)), np.ones(3))

    @fr.attack(on="updates")
    def loud(view):
        return fr.Guess(view.strength, np.full(len(view.strength), 5))

    fr.register_attack(loud)
    fr.register_attack(hopeless)
    model = Factors().fit(two_tastes(), rounds=2)
    found = fr.audit_model(model).findings[-1].attacks
    assert found["loud"]["auc"] == found["magnitude"]["auc"]
    assert "hopeless" not in found
    with pytest.raises(SettingError):
        fr.register_attack(lambda view: view)


@pytest.mark.usefixtures("nothing_stays")
def test_a_policy_of_ones_own_decides_what_stands_for_a_history(tmp_path):
    @fr.register_policy
    def smallest(history, pi, n_items, rng):
        return history[:2]

    data = two_tastes()
    for model in (fr.FPL(sharing="smallest", epochs=1), fr.Frugal(min_support=1, sharing="smallest", messages=1)):
        model.fit(data)
        shared_profiles = shared_profiles_of_all(model.choices, 1, data.profiles, data.n_items)
        assert (np.diff(shared_profiles.starts) == 2).all()
        model.save(tmp_path / model.name)
        assert fr.load_model(tmp_path / model.name).choices.kinds[0].sharing == "smallest"
    with pytest.raises(SettingError):
        Policy(sharing="smallest", pi=1.0, basis="history")
    with pytest.raises(SettingError, match="'smalest'"):
        Policy(sharing="smalest", pi=1.0, basis="shared")


@pytest.mark.usefixtures("nothing_stays")
def test_a_reader_of_ones_own_reads_files_of_its_suffix(tmp_path):
    fr.register_reader(lambda path: [tuple(line.split()) for line in path.read_text().splitlines()], ".pairs")
    (tmp_path / "some.pairs").write_text("ann tea\nbob milk\n")
    assert fr.load(tmp_path / "some.pairs").item_ids.tolist() == ["milk", "tea"]
    (tmp_path / "some.pairs").write_bytes(b"\xff")
    with pytest.raises(BadFile):
        fr.load(tmp_path / "some.pairs")
    with pytest.raises(SettingError):
        fr.register_reader(print, "csv")


@pytest.mark.parametrize("vectors", [None, np.array(["a"]), np.full((24, 4), np.nan), np.ones((24, 3))])
def test_a_wrong_update_is_refused(vectors):
    @dataclass(frozen=True, kw_only=True)
    class Broken(Factors):
        def client_update(self, client, broadcast):  # noqa: ARG002
            return fr.ClientResult(Changes(vectors), fr.UserVector(np.zeros(4)))

    with pytest.raises(BadMessage, match=r"Changes\.vectors"):
        Broken().fit(two_tastes(), rounds=1)


def test_another_result_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class Broken(Factors):
        def client_update(self, client, broadcast):  # noqa: ARG002
            return {"vectors": broadcast.vectors}

    with pytest.raises(BadMessage, match="dict"):
        Broken().fit(two_tastes(), rounds=1)


def test_no_client_can_write_to_the_servers_arrays():
    @dataclass(frozen=True, kw_only=True)
    class Writing(Factors):
        def client_update(self, client, broadcast):  # noqa: ARG002
            broadcast.vectors[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        Writing().fit(two_tastes(), rounds=1)


def test_a_method_that_diverges_ends_with_an_error():
    @dataclass(frozen=True, kw_only=True)
    class Exploding(Factors):
        def server_update(self, state, aggregate):
            return replace(state, vectors=aggregate.vectors * np.inf)

    with pytest.raises(Diverged):
        Exploding().fit(two_tastes(), rounds=1)


def test_a_half_made_method_is_not_registered():
    class NoDataclass(Factors):
        pass

    @dataclass(frozen=True, kw_only=True)
    class Half(fr.FederatedMethod):
        name = "half"

        def initial_state(self):
            return None

    with pytest.raises(SettingError, match="client_update, server_update"):
        fr.register(Half)
    with pytest.raises(SettingError, match="dataclass"):
        fr.register(NoDataclass)


@pytest.mark.parametrize("wrong", [{"factors": 0}, {"factors": "many"}, {"uploads": "secure"}, {"noise": 100}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Factors(**wrong)
