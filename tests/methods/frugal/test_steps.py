"""The four steps of few messages: rounded Broadcasts, sums that are refused or solved from."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.squares_worlds import people_with, some_people, squares_federation, update_of, vector_of
from tests.worlds import random_world, two_tastes

import federank as fr
from federank._numerics.topn import gram_matrix
from federank.errors import BadMessage, Diverged, SettingError
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.engines import FrugalClients, added_up, play_reference
from federank.methods.frugal.objective import Objective, residuals, solve_user
from federank.methods.frugal.protocol import LEVELS, FrugalUpdate, restored, rounded
from federank.methods.frugal.settings import FrugalSettings, factors_for

PEOPLE = some_people()
FACTORS = 5
ENGINES_BY_NAME = {"compiled": compiled.play, "reference": play_reference}


rows_of_numbers = arrays(np.float32, (4, 6), elements=st.floats(-1e6, 1e6, width=32))


@given(vectors=rows_of_numbers)
def test_a_rounded_number_is_off_by_half_a_step_of_its_row_at_most(vectors):
    codes, scales = rounded(vectors)
    assert np.abs(codes.astype(int)).max() <= LEVELS
    step = np.abs(vectors).max(axis=1) / LEVELS
    off = np.abs(restored(codes, scales) - vectors)
    assert (off <= (0.5 + 1e-3) * step[:, None] + 1e-30).all()


@given(vectors=rows_of_numbers)
def test_what_was_rounded_once_is_not_changed_by_rounding_it_again(vectors):
    once = restored(*rounded(vectors))
    np.testing.assert_allclose(restored(*rounded(once)), once, rtol=1e-5, atol=1e-30)


def update(strengths=PEOPLE.n_items, factors=FACTORS, scale=1.0, fill=0.5):
    return FrugalUpdate.of(np.full(strengths, fill, np.float32), np.full(factors, fill, np.float32), np.float32(scale))


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (update(strengths=PEOPLE.n_items - 1), "a strength for each of the 30 items"),
        (update(factors=FACTORS + 1), "a vector of 5 numbers"),
        (update(fill=np.nan), "not finite"),
        (update(fill=np.inf), "not finite"),
        (update(scale=np.nan), "not finite"),
        (update(scale=2.0), "scaled down or not at all"),
        (replace(update(), strengths=np.ones(PEOPLE.n_items)), "32-bit floats"),
    ],
)
def test_a_round_refuses_a_bad_message(bad, complaint):
    with pytest.raises(BadMessage, match=complaint):
        added_up(squares_federation(PEOPLE, messages=2), dict(enumerate([update(), bad, update()])))


@pytest.mark.parametrize("updates", [[], [update(fill=0.0), update(fill=0.0)]], ids=["none", "zeros"])
@pytest.mark.parametrize(
    "server", [{}, {"alpha": 1.0}, {"regulariser": 1.0}, {"alpha": 1.0, "regulariser": 0.0}, {"server": "adam"}]
)
def test_messages_that_say_nothing_change_nothing_but_the_number_of_the_round(server, updates):
    federation = squares_federation(PEOPLE, messages=2, **server)
    before = federation.state
    federation.finish(np.zeros(0, np.int32), added_up(federation, dict(enumerate(updates))))
    after = federation.state
    np.testing.assert_array_equal(after.vectors, before.vectors)
    assert (after.regulariser, after.folds, federation.round_number) == (before.regulariser, 1, 1)


@pytest.mark.parametrize("histories", [[[0, 1], [2, 3]], [[0, 1, 2, 3]]])
def test_users_who_share_nothing_leave_the_first_model_and_finite_numbers(histories):
    model = fr.Frugal(min_support=1, factors=2, messages=3, encoding="float32").fit(people_with(histories, 4))
    first = squares_federation(model.training, factors=2, messages=3, encoding="float32")
    np.testing.assert_array_equal(model.item_vectors, first.state.vectors)
    assert np.isfinite(model.user_vectors).all()


def test_someone_who_shares_nothing_with_those_before_still_has_something_to_say():
    data = people_with([[0, 1], [0, 1], [2, 3], [2, 3]], 6)
    federation = squares_federation(data, factors=4, messages=1)
    for first in (0, 2):
        users = np.array([first, first + 1], np.int32)
        updates = {user: update_of(federation.method, federation.model, data.profiles.of(user)) for user in users}
        assert all(update.vector.any() for update in updates.values())
        federation.finish(users, added_up(federation, updates))
    others = vector_of(federation.method, federation.model, [2]) @ federation.state.vectors.T
    assert others[3] > 3 * np.abs(others[[0, 1, 4, 5]]).max()


def test_lambda_follows_what_all_cohorts_said_where_each_is_of_two_users():
    federation = squares_federation(PEOPLE, messages=1, cohorts=40, alpha=1.0)
    compiled.play(federation, federation.schedule.rounds)
    assert federation.state.regulariser[0] > 0.5
    assert np.abs(federation.state.vectors).max() < 5


def test_a_shrinkage_above_1_loses_no_direction():
    federation = squares_federation(PEOPLE, messages=4, shrinkage=1.5)
    compiled.play(federation, 4)
    assert np.linalg.matrix_rank(federation.state.vectors) == FACTORS


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_users_who_cannot_be_solved_for_are_reported(engine, alpha):
    data = people_with([[0, 1]] * 6, 5)  # they span one direction, and nothing pulls towards zero
    federation = squares_federation(data, factors=3, regulariser=0.0, alpha=alpha)
    first = federation.state
    federation.state = replace(first, vectors=first.vectors[:, [0, 0, 2]])
    with pytest.raises(Diverged):
        ENGINES_BY_NAME[engine](federation, 1)


@pytest.mark.parametrize(
    ("people", "items", "factors"),
    [
        (5000, 3000, 64),
        (400, 3000, 50),
        (3000, 300, 18),
        (30, 3000, 8),
        (900, 5, 5),
        (None, 3000, 64),
        (5000, 5120, 80),
        (5000, 40_000, 96),
    ],
)
def test_vectors_are_shorter_where_users_or_items_are_few_and_longer_where_items_are_many(people, items, factors):
    assert factors_for(FrugalSettings(), people, items) == factors
    assert factors_for(FrugalSettings(min_support=1, factors=3), people, items) == 3


def test_the_sums_of_the_compiled_engine_are_those_of_the_messages_written_out():
    fast, plain = (squares_federation(PEOPLE, messages=1, clip=2.0, encoding="float32") for _ in range(2))
    seen = []
    compiled.play(fast, 1, watch=lambda _, sums: seen.append(sums))
    asked, _ = plain.invite()
    written = added_up(plain, dict(enumerate(FrugalClients(plain).train(asked, plain.model))))
    for one, other in zip(*seen, written, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)
    assert written.messages == PEOPLE.n_users


def test_a_new_user_is_solved_for_as_those_are_who_were_there():
    model = fr.Frugal(min_support=1, messages=2, factors=4).fit(PEOPLE)
    for user in (0, 7, 33):
        vector = model.enrolled(PEOPLE.profiles.of(user))
        np.testing.assert_array_equal(vector, model.user_vectors[user])
        newcomer = fr.enrol(model, history=PEOPLE.item_ids[PEOPLE.profiles.of(user)].tolist())
        np.testing.assert_array_equal(newcomer.vector, model.user_vectors[user])


@pytest.mark.parametrize("settings", [{"messages": 3}, {"messages": 1, "cohorts": 3}, {"messages": 3, "alpha": 1.0}])
def test_an_item_that_no_user_has_is_in_no_users_list_before_others(settings):
    tastes = two_tastes(people=60, items=24, seen=8)
    data = people_with([tastes.profiles.of(user) for user in range(60)], n_items=25)
    federation = squares_federation(data, **(settings | {"factors": 4}))
    compiled.play(federation, federation.schedule.rounds)
    scores = compiled.home_vectors(federation) @ federation.model.vectors.T
    for user in range(60):
        unseen = np.setdiff1d(np.arange(user % 2, 24, 2), data.profiles.of(user))
        assert (scores[user, unseen] > scores[user, 24]).all()


@pytest.mark.parametrize("settings", [{}, {"alpha": 1.0}, {"cohorts": 2, "messages": 1}])
def test_a_history_of_everything_or_of_nothing_is_an_answer_like_any_other(settings):
    histories = [PEOPLE.profiles.of(user) for user in range(20)]
    data = people_with([np.arange(PEOPLE.n_items), np.zeros(0, int), *histories], PEOPLE.n_items)
    federation = squares_federation(data, **settings)
    compiled.play(federation, federation.schedule.rounds)
    vectors = compiled.home_vectors(federation)
    assert np.isfinite(vectors).all()
    assert np.isfinite(federation.state.vectors).all()
    assert vectors[0].any()
    assert not vectors[1].any()  # nothing is known of them
    assert federation.sent[1] == 0  # and nothing is asked


def test_where_no_user_has_anything_to_take_part_with_that_is_an_error():
    with pytest.raises(SettingError):
        fr.Frugal(min_support=1, factors=3, pi=0.0).fit(PEOPLE)


OBJECTIVES = [
    Objective(np.float32(1 + alpha), np.float32(weight)) for alpha, weight in ((1, 1), (10, 1), (0, 1), (1, 0))
]
every_objective = pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
LAMBDA = 0.5


@pytest.fixture
def data():
    return random_world(users=14, items=20, interactions=120, seed=2).compact()


@pytest.fixture
def items(data):
    return np.random.default_rng(1).normal(size=(data.n_items, FACTORS)).astype(np.float32)


def cost(objective, data, items, users):
    """The objective written out over all pairs, in double precision."""
    liked = data.matrix().toarray().astype(np.float64)
    confidence = np.where(liked == 1, objective.liked, objective.unobserved)
    users, items = users.astype(np.float64), items.astype(np.float64)
    return (confidence * (liked - users @ items.T) ** 2).sum() + LAMBDA * ((users**2).sum() + (items**2).sum())


def solved(objective, data, items):
    weights = np.ones(len(items), dtype=np.float32)
    gram = gram_matrix(items, weights)
    people = (data.profiles.of(user) for user in range(data.n_users))
    return np.array([solve_user(objective, LAMBDA, items, weights, gram, profile) for profile in people])


def test_the_gram_matrix_is_the_product_with_itself(items):
    weights = np.linspace(0, 2, len(items)).astype(np.float32)
    double = items.astype(float)
    expected = (double * weights[:, None]).T @ double
    np.testing.assert_allclose(gram_matrix(items, weights), expected, rtol=1e-9, atol=1e-12)


@every_objective
def test_no_small_change_of_a_solved_user_lowers_the_cost(objective, data, items):
    users = solved(objective, data, items).astype(np.float64)
    best = cost(objective, data, items, users)
    rng = np.random.default_rng(3)
    for _ in range(20):
        assert cost(objective, data, items, users + 1e-2 * rng.normal(size=users.shape)) > best


@every_objective
def test_the_summed_pulls_are_half_the_gradient_of_the_cost(objective, data, items):
    users = solved(objective, data, items)
    pulled = sum(np.outer(residuals(objective, items, x, data.profiles.of(u)), x) for u, x in enumerate(users))
    item, factor, step = 3, 2, 1e-3
    up, down = items.astype(np.float64), items.astype(np.float64)
    up[item, factor] += step
    down[item, factor] -= step
    slope = (cost(objective, data, up, users) - cost(objective, data, down, users)) / (2 * step)
    expected = -2 * pulled[item, factor] + 2 * LAMBDA * items[item, factor]
    assert slope == pytest.approx(expected, rel=1e-3, abs=1e-3)
