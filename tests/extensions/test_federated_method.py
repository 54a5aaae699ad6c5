"""A federated method of one's own: rounds, policies, communication, checkpoints and audits work for it."""

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr
from federank.errors import BadFile, BadMessage, SettingError
from federank.methods.recommender import run_identity
from federank.privacy.policy import Policy, shared_profile
from federank.privacy.population import shared_profiles_of_all
from federank.simulation.custom import play
from federank.simulation.options import TrainingOptions
from federank.simulation.training import save_checkpoint


class Factors(fr.FederatedMethod):
    """Gradients of a square loss, and a vector of each device's own."""

    name = "own-factors"

    def first_shared(self, n_items, rng):
        return {"vectors": rng.normal(0, 0.1, (n_items, 4)).astype(np.float32)}

    def first_state(self, device):
        return {"own": device.rng.normal(0, 0.1, 4).astype(np.float32)}

    def compute(self, broadcast, device):
        vectors, own, wanted = broadcast["vectors"], device.state["own"], np.zeros(device.n_items, np.float32)
        wanted[device.profile] = 1
        error = wanted - vectors @ own
        change = np.outer(error, own)
        own += 0.1 * (error @ vectors)
        return {"vectors": change.astype(np.float32)}

    def aggregate(self, shared, updates, round_number):  # noqa: ARG002
        return {"vectors": shared["vectors"] + np.float32(0.02) * sum(update["vectors"] for update in updates)}

    def scores(self, broadcast, device):
        return broadcast["vectors"] @ device.state["own"]


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


def test_a_run_that_is_resumed_is_the_same_run(tmp_path):
    data, place = two_tastes(), tmp_path / "run.checkpoint"
    settings = {"online": 0.7, "dropout": 0.2, "rounds": 6}
    whole = Factors(**settings).fit(data)
    model = Factors(**settings)
    model.training = data.compact()
    identity = run_identity("own-factors" + model._ask_all(model.settings, data), model.settings, data)
    half = model.federation()
    play(half, 3)
    save_checkpoint(half, place, identity)
    again = model.fit(data, training_options=TrainingOptions(checkpoint=place, resume=True))
    np.testing.assert_array_equal(again.broadcast["vectors"], whole.broadcast["vectors"])
    np.testing.assert_array_equal(again.states["own"], whole.states["own"])
    assert again.communication() == whole.communication()


def test_policies_hold_whatever_the_maths_does():
    data, seen = two_tastes(), []

    class Watching(Factors):
        def compute(self, broadcast, device):
            seen.append((device.number, frozenset(device.profile.tolist())))
            return super().compute(broadcast, device)

    model = Watching(rounds=2, pi=0.3, seed=5)
    model.home_rounds = 0
    model.fit(data)
    policy = Policy(sharing="fixed-subset", pi=0.3, basis="shared")
    for user, profile in seen:
        assert profile == set(shared_profile(policy, 5, user, data.profiles.of(user), data.n_items).profile.tolist())
    with pytest.raises(SettingError, match="'all'"):
        Factors(sharing="all")


def test_people_who_hold_back_are_recommended_to_from_home():
    data = two_tastes()
    model = Factors(rounds=60, pi=0.5).fit(data)
    person = fr.enrol(model, history=data.item_ids[data.profiles.of(0)].tolist())
    assert {int(found.item) % 2 for found in person.recommend(3)} == {int(f.item) % 2 for f in model.recommend(0, 3)}


def test_what_it_sends_is_audited():
    model = Factors(rounds=3, online=0.6).fit(two_tastes())
    reading = fr.audit_model(model).findings[-1]
    # The first message of a dense gradient is strongest where the history is.
    assert reading.attacks["magnitude"]["auc"] > 0.9
    sums = fr.audit_model(model, sees="sums").findings[-1]
    assert set(sums.attacks) == {"popularity", "membership"}
    with pytest.raises(SettingError, match="'helper'"):
        fr.audit_model(model, sees="helper")


@pytest.mark.usefixtures("nothing_stays")
def test_an_attack_of_ones_own_is_judged_beside_ours():
    @fr.attack(on="pairs", sees=["updates"])
    def hopeless(view):
        return fr.Guess(np.zeros((len(view.popularity), 40)), np.ones(3))

    @fr.attack(on="steps")
    def loud(view):
        return fr.Guess(view.strength, np.full(len(view.strength), 5))

    fr.register_attack(loud)
    fr.register_attack(hopeless)
    model = Factors(rounds=2).fit(two_tastes())
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
    for model in (fr.FPL(sharing="smallest", epochs=1), fr.Frugal(sharing="smallest", messages=1)):
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


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (None, "'NoneType' or empty; a dictionary of arrays by name is needed"),
        ({"vectors": np.array(["a"])}, "arrays of numbers by name are needed"),
        ({"vectors": np.array([np.nan])}, "that are not finite numbers"),
    ],
)
def test_what_cannot_cross_is_refused(answer, sentence):
    class Broken(Factors):
        def compute(self, broadcast, device):  # noqa: ARG002
            return answer

    with pytest.raises(BadMessage, match=sentence):
        Broken(rounds=1).fit(two_tastes())


def test_no_device_can_write_to_the_servers_arrays():
    class Writing(Factors):
        def compute(self, broadcast, device):  # noqa: ARG002
            broadcast["vectors"][0] = 1

    with pytest.raises(ValueError, match="read-only"):
        Writing(rounds=1).fit(two_tastes())
