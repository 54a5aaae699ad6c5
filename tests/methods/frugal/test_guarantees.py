"""What few messages guarantee: how many leave in a lifetime, what they are made from, and how long they are."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.squares_worlds import people_with, some_people, squares_federation

from federank.federation.wire import values
from federank.methods.frugal import engines
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.engines import FrugalClients, added_up
from federank.methods.frugal.method import Frugal
from federank.methods.frugal.protocol import FrugalUpdate, dense, message_norm
from federank.privacy.policy import Policy

PEOPLE = some_people()
OWN_BUDGETS = np.arange(PEOPLE.n_users) % 4

LIVES = {
    "everybody": {"messages": 3},
    "cohorts": {"messages": 2, "cohorts": 4},
    "own budgets": {"messages": 3, "allowed": OWN_BUDGETS},
    "own budgets in cohorts": {"messages": 3, "cohorts": 3, "allowed": OWN_BUDGETS},
    "often away": {"messages": 2, "online": 0.5, "rounds": 9},
    "answers get lost": {"messages": 3, "dropout": 0.5, "rounds": 9},
    "all of it": {"messages": 2, "cohorts": 2, "online": 0.6, "dropout": 0.3, "rounds": 12, "allowed": OWN_BUDGETS},
}


def played(federation):
    """Every upload of a run that arrived, as {(round, user): Update}."""
    clients, sent = FrugalClients(federation), {}
    for number in range(federation.schedule.rounds):
        asked, arrived = federation.invite()
        updates = dict(zip(asked.tolist(), clients.train(asked, federation.model), strict=True))
        updates = {user: updates[user] for user in arrived.tolist()}
        sent |= {(number, user): update for user, update in updates.items()}
        federation.finish(asked, added_up(federation, updates))
    return sent


@pytest.mark.parametrize("life", LIVES)
def test_no_user_ever_sends_more_messages_than_they_allow(life):
    federation = squares_federation(PEOPLE, **LIVES[life])
    sent = played(federation)
    times = np.bincount([user for _, user in sent], minlength=PEOPLE.n_users)
    allowed = np.minimum(LIVES[life].get("allowed", 99), LIVES[life]["messages"])
    assert (times <= allowed).all()
    assert (federation.sent <= allowed).all()
    assert (times <= federation.sent).all()  # what was lost is spent too
    assert times.sum() > 0


@pytest.mark.parametrize("play", [compiled.play, engines.play_reference], ids=["compiled", "reference"])
@pytest.mark.parametrize("life", ["own budgets in cohorts", "all of it"])
def test_a_run_that_is_cut_and_gone_on_with_spends_no_message_twice(life, play):
    whole, cut = (squares_federation(PEOPLE, **LIVES[life]) for _ in range(2))
    rounds = whole.schedule.rounds
    play(whole, 3 * rounds)
    for _ in range(3 * rounds):
        play(cut, 1)
    np.testing.assert_array_equal(whole.sent, cut.sent)
    assert (whole.sent <= whole.schedule.uploads).all()


def test_every_user_who_is_there_sends_all_they_allow():
    federation = squares_federation(PEOPLE, messages=3, cohorts=3, allowed=OWN_BUDGETS)
    engines.play_reference(federation, federation.schedule.rounds)
    np.testing.assert_array_equal(federation.sent, np.minimum(OWN_BUDGETS, 3))


def test_a_client_that_has_spent_its_messages_sends_no_more():
    federation = squares_federation(PEOPLE, messages=1)
    clients, one = FrugalClients(federation), np.zeros(1, np.int32)
    assert len(list(clients.train(one, federation.model))) == 1
    federation.sent[0] = 1
    with pytest.raises(AssertionError):
        list(clients.train(one, federation.model))


def test_nothing_that_is_held_back_changes_any_message():
    careful = [Policy(sharing="fixed-subset", pi=0.4, basis="shared") for _ in range(PEOPLE.n_users)]
    histories = [PEOPLE.profiles.of(user) for user in range(PEOPLE.n_users)]
    federation = squares_federation(PEOPLE, policies=careful, messages=3)
    messages = played(federation)
    user, compared = 5, 0
    shared = federation.shared_profile.of(user)
    others = np.setdiff1d(np.arange(PEOPLE.n_items), histories[user])
    for gone, new in product(np.setdiff1d(histories[user], shared), others):
        changed = [*histories]
        changed[user] = np.append(np.setdiff1d(histories[user], [gone]), new)
        world = squares_federation(people_with(changed, PEOPLE.n_items), policies=careful, messages=3)
        if not np.array_equal(world.shared_profile.of(user), shared):
            continue  # the new item's own word has put it among those that may leave
        if compared == 3:
            break
        compared += 1
        sent = played(world)
        assert sent.keys() == messages.keys()
        for key, update in sent.items():
            for one, two in zip(values(update).values(), values(messages[key]).values(), strict=True):
                np.testing.assert_array_equal(one, two)
    assert compared == 3


def test_at_home_the_complete_history_is_used_whatever_is_held_back():
    careful = [Policy(sharing="fixed-subset", pi=0.4, basis="shared") for _ in range(PEOPLE.n_users)]
    federation = squares_federation(PEOPLE, policies=careful, messages=2)
    compiled.play(federation, 2)
    shared_profile = compiled.vectors_at_home(federation.method, federation.model, federation.shared_profile)
    assert np.abs(compiled.home_vectors(federation) - shared_profile).max() > 0.01


numbers = st.floats(-10, 10, width=32)


@given(strengths=st.lists(numbers, min_size=1, max_size=8), vector=st.lists(numbers, min_size=1, max_size=5))
def test_a_message_written_out_is_its_outer_products(strengths, vector):
    update = FrugalUpdate.of(np.array(strengths, np.float32), np.array(vector, np.float32), np.float32(0.5))
    longer = [*vector, 1.0]  # a constant 1 stands behind the vector
    written = dense(update)
    np.testing.assert_allclose(written.residuals, 0.5 * np.outer(strengths, longer), rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(written.squares, 0.5 * np.outer(longer, longer), rtol=1e-5, atol=1e-30)


@given(strengths=st.lists(numbers, min_size=6, max_size=6), vector=st.lists(numbers, min_size=3, max_size=3))
def test_the_norm_of_a_message_is_that_of_all_its_numbers_written_out(strengths, vector):
    update = FrugalUpdate.of(np.array(strengths, np.float32), np.array(vector, np.float32), np.float32(1))
    assert message_norm(update.strengths, update.vector) == pytest.approx(norm_of(update), rel=1e-4)


def norm_of(update):
    return np.sqrt(sum((part.astype(np.float64) ** 2).sum() for part in dense(update)))


@settings(max_examples=50)
@given(
    strengths=st.lists(numbers, min_size=30, max_size=30),
    vector=st.lists(numbers, min_size=5, max_size=5),
    clip=st.floats(0.01, 100),
)
def test_no_message_is_longer_than_the_clip(strengths, vector, clip):
    update = FrugalUpdate.of(np.array(strengths, np.float32), np.array(vector, np.float32), 1.0)
    assert norm_of(Frugal(clip=clip).bounded(update, clip)) <= clip * (1 + 1e-5)


def test_a_clip_that_no_message_reaches_changes_nothing():
    free, bounded = (squares_federation(PEOPLE, messages=1, **more) for more in ({}, {"clip": 1e6}))
    one, two = played(free), played(bounded)
    assert all(one[key].scale == two[key].scale for key in one)


def test_someone_who_takes_part_with_nothing_is_never_asked():
    paused = [
        Policy(sharing="fixed-subset", pi=1.0 if user else 0.0, basis="shared", paused=user == 1)
        for user in range(PEOPLE.n_users)
    ]
    federation = squares_federation(PEOPLE, policies=paused, messages=2)
    sent = played(federation)
    assert not {0, 1} & {user for _, user in sent}
    assert len(sent) == 2 * (PEOPLE.n_users - 2)
