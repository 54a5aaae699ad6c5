"""Frugal with a guarantee: messages of bounded length, sums that hide a person as far as is claimed, and no further."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.squares_worlds import people_with, some_people, squares_federation

from federank.errors import BadMessage, SettingError
from federank.federation.rng import HELPER, ROUNDING, SERVER, words, words_wrap_around
from federank.federation.secure import simulated_noise
from federank.methods.frugal import engines
from federank.methods.frugal import simulation as compiled
from federank.methods.frugal.private_messages import (
    directions_of,
    new_scratch,
    one_message,
    private_message,
)
from federank.methods.frugal.private_plan import PrivatePlan, guarantee_of, planned
from federank.methods.frugal.private_server import (
    PrivateModel,
    fold_of_cohort,
    fold_popularity,
    received_from,
)
from federank.methods.frugal.settings import FrugalSettings
from federank.methods.frugal.simulation import noise_of, published_sum, sum_in_ring
from federank.privacy.accountant import mu_for
from federank.privacy.policy import Policy
from federank.secagg.ring import C_INT, centred, round_message

PEOPLE = some_people()
ALL_USERS = np.arange(PEOPLE.n_users, dtype=np.int32)


def chances_of(seed, user, number, count):
    """The named draws of one message, sixteen bits each."""
    with words_wrap_around():
        drawn = words(seed, user, ROUNDING, number, np.arange((count + 7) // 8, dtype=np.uint32))
    halves = [half for word in drawn for half in (word & np.uint32(0xFFFF), word >> np.uint32(16))]
    return np.column_stack(halves).ravel()[:count].astype(np.uint16)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_removing_a_user_changes_a_sum_by_at_most_the_largest_length(rounds):
    federation = squares_federation(PEOPLE, messages=5, sigma=1.0)
    compiled.play(federation, rounds)
    with_everybody = sum_in_ring(federation, ALL_USERS)
    lengths = []
    for person in range(PEOPLE.n_users):
        without = sum_in_ring(federation, np.delete(ALL_USERS, person))
        difference = centred(with_everybody - without).astype(np.int64)
        lengths.append(int(difference @ difference))
    assert max(lengths) <= C_INT**2
    assert min(lengths) > (0.98 * C_INT) ** 2  # the noise is not wasted on short messages either


@pytest.mark.parametrize("rounds", [0, 2])
def test_a_message_is_the_rounded_history_times_where_it_points(rounds):
    federation = squares_federation(PEOPLE, messages=3, sigma=1.0, encoding="float32")
    compiled.play(federation, rounds)
    method, profile = federation.method, PEOPLE.profiles.of(7)
    known = directions_of(federation.state.vectors, federation.state.weights)
    workspace = new_scratch(method.n_items, 1 if rounds == 0 else method.columns)
    assert private_message(known, profile, method.seed, 7, rounds, rounds, workspace)
    has = np.zeros(method.n_items)
    has[profile] = 1
    if rounds == 0:
        meant = has[:, None] / np.sqrt(len(profile))
    else:
        history = known.scales * has
        history -= (known.popular @ history) * known.popular
        meant = np.outer(history, known.wanted.T @ history)
        meant /= np.linalg.norm(meant)
    whole = round_message(meant.ravel(), 1.0, chances_of(method.seed, 7, rounds, meant.size))
    np.testing.assert_array_equal(workspace.whole, whole)


@pytest.mark.parametrize("rounds", [0, 3])
def test_rounding_on_average_gives_the_sum_that_many_roundings_come_near(rounds):
    federation = squares_federation(PEOPLE, messages=5, sigma=1.0, rounding="mean")
    compiled.play(federation, rounds)
    mean = centred(sum_in_ring(federation, ALL_USERS)).astype(np.float64)
    drawn = []
    for seed in range(40):
        federation.rounds_on_average, federation.method = False, replace(federation.method, seed=seed)
        drawn.append(centred(sum_in_ring(federation, ALL_USERS)).astype(np.float64))
    # Each number is rounded by at most one; lengthening by rounding is taken back, which shortens a message a little.
    error = np.sqrt(PEOPLE.n_users / 4 / len(drawn))
    assert np.abs(np.mean(drawn, axis=0) - mean).max() < 6 * error + 0.002 * np.abs(mean).max()
    assert np.linalg.norm(drawn[0] - mean) > 0


def test_rounding_on_average_is_refused_where_nothing_is_rounded():
    with pytest.raises(SettingError):
        FrugalSettings(min_support=1, rounding="mean")
    with pytest.raises(SettingError):
        engines.play_reference(squares_federation(PEOPLE, messages=2, sigma=1.0, rounding="mean"), 1)


def test_what_is_held_back_is_in_no_message():
    items = np.arange(12)
    policy = Policy(sharing="fixed-subset", pi=0.5, basis="shared", never_items=frozenset({3}))
    worlds = [people_with([[0, 1, 2, 5], [0, 4, 6, *extra], [1, 2, 7, 8]], 12) for extra in ([], [3])]
    sums = []
    for world in worlds:
        federation = squares_federation(world, policies=[policy] * 3, messages=3, sigma=1.0, factors=4)
        for user in range(3):
            assert 3 not in items[federation.shared_profile.of(user)]
        sums.append(sum_in_ring(federation, np.array([1], dtype=np.int32)))
    # The share of four items is two, of three items two as well; what is forbidden is in neither.
    np.testing.assert_array_equal(*sums)


def test_a_budget_is_divided_over_the_messages_and_nothing_is_left():
    plan = planned(mu_for(4.0, 1e-6), 5, 6040, 3666, None)
    assert guarantee_of(plan, 5, 1e-6) == pytest.approx(4, abs=0.002)
    assert guarantee_of(plan, 5, 1e-6) <= 4
    told = [guarantee_of(plan, sent, 1e-6) for sent in range(6)]
    assert told == sorted(told)
    assert told[0] == 0
    assert planned(math.inf, 5, 6040, 3666, None).sigmas(5) == (0,) * 5
    assert guarantee_of(planned(math.inf, 5, 6040, 3666, None), 5, 1e-6) is None


def test_sigma_says_the_same_as_that_noise_on_every_message():
    settings = FrugalSettings(min_support=1, sigma=4.0, messages=10)
    plan = planned(settings.mu, 10, 1000, 100, None)
    assert guarantee_of(plan, 10, 1e-6) == pytest.approx(3.75, abs=0.01)


def test_the_published_sum_carries_the_noise_of_both_servers_and_each_server_knows_its_own():
    federation = squares_federation(people_with([[0, 1], [1, 2]], 20_000), epsilon=1.0)
    length, plan = 20_000, federation.method.plan
    noisy = C_INT * published_sum(federation, np.zeros(length, dtype=np.uint32), 2).residuals[:, 0]
    leaders, helpers = (noise_of(federation, length, server) for server in (SERVER, HELPER))
    np.testing.assert_array_equal(noisy, leaders + helpers)
    assert helpers.std() == pytest.approx(plan.deviations[0], rel=0.03)
    assert noisy.std() == pytest.approx(plan.noise(0) * C_INT, rel=0.03)
    assert abs(np.corrcoef(leaders, helpers)[0, 1]) < 0.03


def lower_bound(plan, messages, trials, delta=1e-6):
    """The least epsilon that trials allow: an observer, who is the leader, weighs sums with and without a canary.

    It knows everyone else's messages and its own noise, so what it sees is the helper's noise, and maybe the canary's
    message; the likelihood ratio of both worlds is a sum of products (Jagielski et al., 2020, with exact binomial
    bounds).
    """
    from scipy.stats import beta

    weights = [1 / max(deviation, 1) ** 2 for deviation in plan.deviations]
    seen = np.zeros((2, trials))
    for trial in range(2 * trials):
        there = trial % 2
        for number, message in enumerate(messages):
            noise = simulated_noise(trial, number, plan.deviations[number], len(message), HELPER)
            seen[there, trial // 2] += weights[number] * ((there * message + noise) @ message)
    half = trials // 2
    best = 0.0
    for threshold in np.quantile(
        seen[:, :half], np.linspace(0.5, 0.999, 40)
    ):  # chosen on one half, judged on the other
        false, true = ((seen[world, half:] > threshold).sum() for world in (0, 1))
        low = beta.ppf(0.025, true, half - true + 1) if true else 0.0
        high = beta.ppf(0.975, false + 1, half - false)
        if low > delta:
            best = max(best, math.log((low - delta) / high))
    return best


def canary():
    """Every message of one person in a run of a small world, as its devices send them."""
    federation = squares_federation(PEOPLE, messages=3, sigma=0.5)
    messages = []
    for _ in range(3):
        messages.append(centred(sum_in_ring(federation, np.array([5], dtype=np.int32))).astype(np.float64))
        compiled.play(federation, 1)
    return messages


@pytest.mark.slow
def test_an_attack_on_a_canary_stays_below_the_guarantee_and_without_noise_goes_far_beyond_it():
    claimed = 3.0
    plan = planned(mu_for(claimed, 1e-6), 3, PEOPLE.n_users, PEOPLE.n_items, 5)
    found = lower_bound(plan, canary(), 3000)
    assert 0.3 < found < claimed
    silent = plan._replace(deviations=(0, 0, 0))
    assert lower_bound(silent, canary(), 3000) > 2 * claimed


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"epsilon": 0.0}, "above 0"),
        ({"epsilon": 4.0, "sigma": 2.0}, "in two ways"),
        ({"epsilon": 4.0, "messages": 1}, "2 or more"),
        ({"epsilon": 4.0, "cohorts": 5}, "cohorts"),
        ({"epsilon": 4.0, "alpha": 1.0}, "alpha"),
        ({"epsilon": 4.0, "delta": 0.0}, "delta"),
        ({"sigma": -1.0}, "sigma"),
        ({"epsilon": 4.0, "factors": 1}, "factors"),
    ],
)
def test_what_does_not_go_with_noise_is_refused_with_a_reason(settings, reason):
    with pytest.raises(SettingError, match=reason):
        FrugalSettings(**settings)


def test_noise_that_cannot_be_drawn_is_refused():
    with pytest.raises(SettingError, match="too little"):
        planned(100.0, 5, 100, 100, None)
    with pytest.raises(SettingError, match="drowns"):
        planned(1e-4, 5, 100, 100, None)
    with pytest.raises(SettingError, match="wrap"):
        planned(1.0, 5, 600_000, 100, None)


@pytest.mark.parametrize("messages", [20, 60, 2_000, 100_000])
def test_more_messages_than_noise_can_be_divided_over_are_refused_with_how_many_go(messages):
    mu = mu_for(2.0, 1e-6)
    with pytest.raises(SettingError, match=f"messages is {messages:,}, .* at most 19 .* ask for fewer messages"):
        planned(mu, messages, 50_000, 3_000, None)
    assert len(planned(mu, 19, 50_000, 3_000, None).deviations) == 19


@given(mu=st.floats(0.004, 60), messages=st.integers(2, 60))
def test_as_many_messages_as_the_refusal_names_are_accepted(mu, messages):
    try:
        planned(mu, messages, 1_000, 1_000, None)
    except SettingError as refusal:
        most = int(re.search(r"at most (\d+)", str(refusal)).group(1))
        assert most < messages
        planned(mu, most, 1_000, 1_000, None)
        with pytest.raises(SettingError):
            planned(mu, most + 1, 1_000, 1_000, None)


ITEMS, FACTORS, STAGES = 30, 5, 3
PLAN = PrivatePlan((0,) * STAGES, FACTORS, 0.3)


def people(count, seed):
    """Two tastes: people have most items of one half of the catalogue."""
    rng = np.random.default_rng(seed)
    half = ITEMS // 2
    return [np.sort(rng.choice(half, 6, replace=False) + half * (who % 2)).astype(np.int32) for who in range(count)]


def model_of_two_tastes(seed=1):
    sums = np.sum([one_message(0, ITEMS, one, None, chances(ITEMS, seed)) for one in people(40, seed)], axis=0)
    return fold_popularity(PLAN, 1, sums / C_INT)


def chances(count, seed=2):
    return np.random.default_rng(seed).integers(0, 2**16, count).astype(np.uint16)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_clients_message_is_the_simulations_but_for_the_last_bits(stage):
    """The kernel may fuse a product and a sum; so a number is the same, or off by one where chance was at its edge."""
    _, weights, vectors = model_of_two_tastes()
    columns = 1 if stage == 0 else FACTORS - 1
    differing = 0
    for user, profile in enumerate(people(20, 3)):
        workspace = new_scratch(ITEMS, columns)
        private_message(directions_of(vectors, weights), profile, 1, user, stage, stage, workspace)
        own = directions_of(vectors, weights)
        made = one_message(stage, ITEMS, profile, own, workspace.chances[: ITEMS * columns])
        differing += int((made != workspace.whole).sum())
        assert np.abs(made - workspace.whole).max() <= 1
    assert differing <= 2


def test_a_message_is_never_longer_than_allowed():
    _, weights, vectors = model_of_two_tastes()
    known = directions_of(vectors, weights)
    for number, profile in enumerate(people(30, 4)):
        whole = one_message(1, ITEMS, profile, known, chances(ITEMS * (FACTORS - 1), number)).astype(np.int64)
        assert 0 < whole @ whole <= C_INT**2


def test_a_history_without_a_direction_sends_zeros_and_what_is_not_finite_sends_nothing():
    weights = np.ones(ITEMS, dtype=np.float32)
    nowhere = directions_of(np.zeros((ITEMS, FACTORS), dtype=np.float32), weights)
    assert not one_message(1, ITEMS, np.array([3], dtype=np.int32), nowhere, chances(ITEMS * 4)).any()
    broken = directions_of(np.full((ITEMS, FACTORS), np.nan, dtype=np.float32), weights)
    with pytest.raises(BadMessage, match="not finite"):
        one_message(1, ITEMS, np.array([3], dtype=np.int32), broken, chances(ITEMS * 4))


def begun():
    none = np.zeros((ITEMS, 0))
    zeros = np.zeros(ITEMS)
    first = np.zeros((ITEMS, FACTORS), dtype=np.float32)
    return PrivateModel(first, np.ones(ITEMS, dtype=np.float32), zeros, zeros, none, none, received_from(none))


def played(model, cohort, folds, stages=STAGES):
    """The model after a cohort has played this many stages."""
    for stage in range(stages):
        columns = 1 if stage == 0 else FACTORS - 1
        known = directions_of(model.vectors, model.weights) if stage else None
        made = [one_message(stage, ITEMS, one, known, chances(ITEMS * columns, n)) for n, one in enumerate(cohort)]
        sums = np.sum(made, axis=0).reshape(ITEMS, columns) / C_INT
        rounds = 1 + folds // STAGES  # of popularity, whose sums are added up
        sums = sums + model.summed[:, None] if stage == 0 else sums
        model = fold_of_cohort(PLAN, 1, 0.9, folds + stage, model, model.vectors, sums, rounds=rounds)
    return model


def tells_tastes_apart(model):
    """How much nearer items of one half are to one another than to the other half."""
    placed = model.vectors[:, :-1] * np.sqrt(model.weights)[:, None]
    near = placed @ placed.T
    half = ITEMS // 2
    return near[:half, :half].mean() + near[half:, half:].mean() - 2 * near[:half, half:].mean()


def test_a_small_cohort_does_not_undo_what_a_large_one_has_said():
    known = played(begun(), people(200, 6), 0)
    few = people(3, 7)[::2]  # of one taste alone
    joined = played(known, few, STAGES)
    assert tells_tastes_apart(joined) > 0.5 * tells_tastes_apart(known) > 0


def test_between_cohorts_the_model_stays_what_it_was_but_for_popularity():
    known = played(begun(), people(200, 6), 0)
    begun_again = played(known, people(10, 9), STAGES, stages=1)
    assert tells_tastes_apart(begun_again) == pytest.approx(tells_tastes_apart(known), rel=0.2)
    assert begun_again.summed.sum() > known.summed.sum()


def test_popularity_of_later_cohorts_is_held_against_all_their_noise():
    noisy = PLAN._replace(deviations=(C_INT,) * STAGES)
    summed = np.zeros(ITEMS)
    summed[0] = 100.0
    once, thrice = (fold_popularity(noisy, 1, summed, cohorts)[0][1] for cohorts in (1, 3))
    assert thrice == pytest.approx(np.sqrt(3) * once)
