"""The audit of few messages: plain ones are read, held-back items are not in them, and sums hide their members."""

import numpy as np
import pytest
from tests.squares_worlds import some_people, squares_federation
from tests.worlds import random_world, two_tastes

from federank import FCF, Frugal
from federank.audit.audit import audit_training
from federank.audit.observer import KnownPolicies
from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.attacks import UNSEEN, WITH, WITHOUT, MessagesView, SumsReader, fused, read_message
from federank.methods.frugal.audit import MessageReader, profiles_of, strengths_of
from federank.methods.frugal.engines import FrugalClients, added_up
from federank.methods.frugal.objective import Objective
from federank.privacy.policy import Policy

pytestmark = pytest.mark.slow

PEOPLE = some_people()
ALL_USERS = np.arange(PEOPLE.n_users, dtype=np.int32)


def fixed_subset(pi):
    return [Policy(sharing="fixed-subset", pi=pi, basis="shared") for _ in range(PEOPLE.n_users)]


def reference_messages(federation):
    """Every message of the reference engine as (round, user, Broadcast, Update), in order."""
    clients = FrugalClients(federation)
    for number in range(federation.schedule.rounds):
        (asked, _), model = federation.invite(), federation.model
        updates = dict(zip(asked.tolist(), clients.train(asked, model), strict=True))
        federation.finish(asked, added_up(federation, updates))
        for user, update in updates.items():
            yield number, user, model, update


def watched(federation, reader, rounds=None):
    def watch(answering, sums):
        reader.watch(answering, *([sums] if isinstance(reader, SumsReader) else []))

    compiled.play(federation, federation.schedule.rounds if rounds is None else rounds, watch=watch)
    return reader


@pytest.mark.parametrize(
    "settings",
    [
        {"messages": 2},
        {"messages": 2, "alpha": 3.0, "damping": 0.5},
        {"messages": 2, "server": "adam", "regulariser": 1.0, "unobserved_weight": 0.0, "encoding": "float32"},
        {"messages": 2, "clip": 0.5},
        {"messages": 2, "policies": fixed_subset(0.4)},
    ],
)
def test_a_message_of_the_reference_engine_gives_back_what_it_was_made_from(settings):
    federation = squares_federation(PEOPLE, **settings)
    read = np.zeros((PEOPLE.n_users, PEOPLE.n_items), dtype=bool)
    for _, user, broadcast, update in reference_messages(federation):
        scores = broadcast.vectors @ update.vector
        read[user] |= read_message(federation.method.objective, update.strengths[None], scores[None])[0]
    for user in range(PEOPLE.n_users):
        np.testing.assert_array_equal(np.flatnonzero(read[user]), federation.shared_profile.of(user))


def test_the_strengths_that_are_read_are_those_that_the_reference_engine_sends():
    federation = squares_federation(PEOPLE, messages=1, alpha=2.0)
    for _, user, broadcast, update in reference_messages(federation):
        profiles = profiles_of(federation.shared_profile, np.array([user]))
        told = broadcast.vectors
        vectors = compiled.vectors_at_home(federation.method, broadcast, profiles)
        np.testing.assert_allclose(vectors[0], update.vector, atol=1e-5)
        strengths = strengths_of(federation.method.objective, vectors @ told.T, profiles)
        np.testing.assert_allclose(strengths[0], update.strengths, atol=1e-4)


def test_a_reader_sees_the_shared_profile_of_those_who_have_answered_and_nothing_of_others():
    federation = squares_federation(PEOPLE, messages=2, cohorts=2, policies=fixed_subset(0.5))
    reader = watched(federation, MessageReader(federation, ALL_USERS), rounds=1)
    asked = federation.sent > 0
    assert 0 < asked.sum() < len(asked)
    for user in ALL_USERS:
        if asked[user]:
            np.testing.assert_array_equal(np.flatnonzero(reader.seen[user] == WITH), federation.shared_profile.of(user))
        else:
            assert (reader.seen[user] == UNSEEN).all()
            assert not reader.tastes[user].any()


def test_reading_takes_the_nearer_of_the_two_things_a_strength_can_mean():
    objective = Objective(np.float32(3), np.float32(1))
    scores = np.array([[0.2, 0.2, -0.5]], np.float32)
    strengths = np.array([[3 * 0.8, -0.2, 0.5]], np.float32)
    assert read_message(objective, strengths, scores).tolist() == [[True, False, False]]


def test_one_plain_message_gives_a_complete_history_away():
    for sees in ("updates", "anonymous"):
        [found], about = audit_training(Frugal(min_support=1, messages=1, factors=6), PEOPLE, sees=sees)
        for attack in ("reading", "fused"):
            assert found.attacks[attack]["precision"] == found.attacks[attack]["recall"] == 1
        assert found.disclosed_share == 1
        assert found.attacks["reading"]["auc_held_back"] is None  # nothing was
        assert (about["messages"], about["sees"]) == (1, sees)


def test_of_what_is_held_back_reading_knows_nothing_and_taste_does():
    data = two_tastes(people=60, items=40, seen=12)
    [found], _ = audit_training(Frugal(min_support=1, messages=2, factors=4, sharing="fixed-subset", pi=0.5), data)
    assert found.disclosed_share == pytest.approx(0.5)
    assert found.attacks["reading"]["precision"] == 1
    assert found.attacks["reading"]["recall"] == pytest.approx(0.5)
    assert found.attacks["reading"]["auc_held_back"] == pytest.approx(0.5, abs=0.02)
    assert found.attacks["vector"]["auc_held_back"] > 0.75  # half of the other items are of the other taste
    assert found.attacks["fused"]["auc_held_back"] > 0.75
    assert found.best["gain_held_back"] > 0.2


def test_how_long_a_history_is_follows_from_what_is_read_and_the_policy():
    seen = np.zeros((4, 100), np.uint8)
    seen[:3] = WITHOUT
    seen[0, :30] = seen[1, :30] = WITH  # the third has sent nothing of theirs, and nothing is known of the fourth
    policies = KnownPolicies(np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.0, 0.1, 0.0, 0.0]), np.zeros(4, bool))
    nothing = np.zeros((4, 100), np.float32)
    guess = fused(MessagesView(seen, nothing, nothing, nothing[0], 17, policies))
    assert guess.sizes.tolist() == [60, 50, 0, 17]


def test_decoys_are_read_as_if_they_were_liked():
    [found], _ = audit_training(
        Frugal(min_support=1, messages=1, sharing="randomized-response", pi=0.5, item_epsilon=1.0, factors=5), PEOPLE
    )
    assert found.attacks["reading"]["precision"] < 0.8
    assert found.attacks["reading"]["recall"] == pytest.approx(found.disclosed_share)


def test_nothing_of_a_message_that_is_lost_is_known():
    model = Frugal(min_support=1, messages=1, factors=5, dropout=0.5)
    [found], _ = audit_training(model, PEOPLE)
    assert 0.2 < found.attacks["reading"]["recall"] < 0.8
    assert found.disclosed_share == pytest.approx(found.attacks["reading"]["recall"])


def test_sums_over_all_users_distinguish_no_user():
    federation = squares_federation(PEOPLE, messages=3)
    reader = watched(federation, SumsReader(federation))
    for guess in (reader.counts(ALL_USERS), reader.tastes(ALL_USERS)):
        np.testing.assert_allclose(guess, np.tile(guess[0], (len(guess), 1)), rtol=1e-3, atol=1e-4)
    [found], _ = audit_training(Frugal(min_support=1, messages=3, factors=6), PEOPLE, sees="sums")
    assert abs(found.attacks["membership"]["gain"]) < 0.01
    assert found.best["gain"] < 0.05


def test_a_sum_over_one_client_is_its_message():
    few = random_world(users=6, items=20, interactions=60, seed=3).compact()
    federation = squares_federation(few, messages=1, cohorts=few.n_users, activity=0.0, encoding="float32")
    reader = watched(federation, SumsReader(federation))
    counts = reader.counts(np.arange(few.n_users, dtype=np.int32))
    np.testing.assert_allclose(counts, few.matrix().toarray(), atol=1e-3)
    [found], _ = audit_training(Frugal(min_support=1, messages=1, cohorts=few.n_users, factors=5), few, sees="sums")
    assert found.attacks["membership"]["auc"] == 1


@pytest.mark.parametrize("server", [{}, {"alpha": 0.5}, {"server": "adam", "regulariser": 1.0}])
def test_sums_tell_how_many_have_each_item_however_many_users_they_are_of(server):
    federation = squares_federation(PEOPLE, messages=2, encoding="float32", **server)
    reader = watched(federation, SumsReader(federation))
    truth = PEOPLE.matrix().toarray()
    if federation.method.user_weight_exponent:  # everyone counts with their weight
        truth = truth * truth.sum(axis=1, keepdims=True) ** -federation.method.user_weight_exponent
    else:
        truth = truth.astype(float)
    expected = truth.sum(axis=0) / truth.max(axis=1).sum()
    tolerance = 1e-3 if not server.get("alpha") else 0.1
    np.testing.assert_allclose(reader.popularity(), expected, atol=tolerance)


@pytest.mark.parametrize("factors", [3, 8])
def test_two_rounds_that_differ_by_one_member_give_that_member_away(factors):
    few = random_world(users=7, items=20, interactions=60, seed=4).compact()
    there = np.ones((2, few.n_users), dtype=bool)
    there[1, 2] = False
    settings = {"messages": 2, "rounds": 2, "factors": factors, "activity": 0.0, "encoding": "float32"}
    federation = squares_federation(few, trace=there, **settings)
    reader = watched(federation, SumsReader(federation))
    counts = reader.counts(np.arange(few.n_users, dtype=np.int32))
    np.testing.assert_allclose(counts[2], few.matrix().toarray()[2], atol=0.01)
    np.testing.assert_allclose(counts[0], counts[1], atol=1e-3)  # the others are in both: no one tells them apart


def test_the_smaller_the_cohort_the_more_its_sums_tell():
    data = two_tastes(people=60, items=40, seen=12)
    gains = {}
    for cohorts in (1, 6, 20):
        [found], _ = audit_training(Frugal(min_support=1, messages=1, cohorts=cohorts, factors=6), data, sees="sums")
        gains[cohorts] = found.attacks["membership"]["gain"]
    assert gains[1] < 0.02
    assert gains[1] < gains[6] < gains[20]


def test_fcf_is_audited_too_and_its_variant_without_the_unobserved():
    for weight in (1.0, 0.0):
        [found], _ = audit_training(FCF(factors=4, rounds=3, unobserved_weight=weight), PEOPLE)
        assert found.attacks["reading"]["recall"] == found.attacks["reading"]["precision"] == 1


def test_what_cannot_be_audited_is_an_error():
    with pytest.raises(SettingError, match="people is 0"):
        audit_training(Frugal(min_support=1, factors=4), PEOPLE, people=0)
    with pytest.raises(SettingError, match="'everything'"):
        audit_training(Frugal(min_support=1, factors=4), PEOPLE, sees="everything")


def test_only_so_many_users_are_followed_as_asked_for():
    [found], about = audit_training(Frugal(min_support=1, messages=1, factors=4), PEOPLE, people=7)
    assert (about["people_followed"], about["people_attacked"]) == (7, 7)
    assert found.attacks["reading"]["recall"] == 1


def test_no_user_is_found_where_none_answers():
    alone = Interactions.from_columns([0, 0, 1, 1], [0, 1, 1, 2])
    [found], _ = audit_training(Frugal(min_support=1, messages=1, factors=2, dropout=1.0), alone, sees="sums")
    assert found.disclosed_share == 0
    assert found.attacks["membership"]["auc"] == 0.5
