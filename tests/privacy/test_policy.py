"""Policies: what may leave a device, decided by draws and kept for its lifetime."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.errors import SettingError
from federank.privacy.policy import Policy, decoy_rate, most_allowed, shared_profile

HISTORY = np.array([1, 4, 5, 9, 12, 20, 21, 22, 30, 39], dtype=np.int32)
N_ITEMS = 40


def policy(sharing="fixed-subset", pi=0.3, basis=None, **others):
    basis = basis or ("shared" if sharing == "randomized-response" else "history")
    return Policy(sharing=sharing, pi=pi, basis=basis, **others)


def left(chosen, user=7, seed=1, history=HISTORY, n_items=N_ITEMS, **how):
    return shared_profile(chosen, seed, user, history, n_items, **how)


histories = st.sets(st.integers(0, N_ITEMS - 1)).map(lambda items: np.array(sorted(items), dtype=np.int32))


@given(history=histories, pi=st.floats(0, 1), user=st.integers(0, 2**32 - 1))
def test_fixed_subset_sharing_allows_the_share_of_pi_rounded_up(history, pi, user):
    allowed = left(policy(pi=pi), user, history=history).allowed
    assert allowed.sum() == math.ceil(pi * len(history) - 1e-9)


def test_a_decision_is_the_same_every_time_and_differs_between_users():
    same = [left(policy(), user=3).allowed.tolist() for _ in range(2)]
    assert same[0] == same[1]
    assert len({tuple(left(policy(), user=user).allowed) for user in range(20)}) > 5


@given(history=histories, budget=st.integers(0, 12))
def test_a_budget_is_never_exceeded(history, budget):
    for sharing in ("all", "fixed-subset"):
        allowed = left(policy(sharing, pi=0.8, budget=budget), history=history).allowed
        most = len(history) if sharing == "all" else math.ceil(0.8 * len(history) - 1e-9)
        assert allowed.sum() == min(budget, most)


@pytest.mark.parametrize("sharing", ["all", "fixed-subset"])
@pytest.mark.parametrize("basis", ["history", "shared"])
def test_what_must_never_be_sent_is_not_allowed_even_when_everything_is(sharing, basis):
    never = frozenset({4, 5, 39, 7})
    found = left(policy(sharing, pi=1.0, basis=basis, never_items=never))
    assert set(found.profile[found.allowed].tolist()) == set(HISTORY.tolist()) - never


def test_on_the_basis_of_history_all_of_it_is_trained_on():
    found = left(policy(pi=0.2))
    np.testing.assert_array_equal(found.profile, HISTORY)
    assert found.real.all()
    assert found.lifelong


def test_on_the_shared_basis_the_shared_profile_is_what_may_leave():
    whole, shared = left(policy(pi=0.4)), left(policy(pi=0.4, basis="shared"))
    np.testing.assert_array_equal(shared.profile, whole.profile[whole.allowed])
    assert shared.allowed.all()
    assert len(left(policy(pi=0.0, basis="shared")).profile) == 0


def test_as_published_the_coin_is_tossed_again():
    found = left(policy("all", pi=0.1))
    assert not found.lifelong
    assert found.allowed.all()


def test_what_was_sent_before_stays_chosen_when_a_history_grows():
    extended = HISTORY[:0]
    ever = set()
    for item in np.random.default_rng(4).permutation(200)[:100]:
        extended = np.union1d(extended, [item]).astype(np.int32)
        sent = np.array(sorted(ever), dtype=np.int32)
        now = left(policy(pi=0.3), history=extended, n_items=200, sent=sent)
        ever |= set(now.profile[now.allowed].tolist())
        assert len(ever) == math.ceil(0.3 * len(extended) - 1e-9)


doings = st.lists(st.tuples(st.sampled_from(["add", "remove", "forbid"]), st.integers(0, 11)), max_size=40)


@given(
    sharing=st.sampled_from(["all", "fixed-subset"]),
    basis=st.sampled_from(["history", "shared"]),
    pi=st.sampled_from([0.1, 0.3, 0.5, 0.9, 1.0]),
    budget=st.none() | st.integers(0, 5),
    doings=doings,
)
def test_no_more_than_the_bound_ever_leaves_whatever_is_added_removed_or_forbidden(sharing, basis, pi, budget, doings):
    history, never, ever = set(range(6)), set(), set()
    for doing, item in [("add", 0), *doings]:
        if doing == "forbid":
            never.add(item)
        else:
            history = history | {item} if doing == "add" else history - {item}
        chosen = policy(sharing, pi=pi, basis=basis, budget=budget, never_items=frozenset(never))
        profile = np.array(sorted(history), dtype=np.int32)
        now = left(chosen, history=profile, sent=np.array(sorted(ever), dtype=np.int32))
        leaving = set(now.profile[now.allowed].tolist())
        assert leaving <= history - never
        if budget is None and (sharing == "all" or pi == 1):
            assert leaving == history - never  # nothing is promised to be held back
        elif leaving - ever:
            assert len(ever | leaving) <= most_allowed(chosen, len(history - never))
        ever |= leaving
        assert budget is None or len(ever) <= budget


def test_what_was_sent_and_then_taken_back_still_counts():
    budgeted = policy("all", pi=1.0, budget=2)
    first = left(budgeted)
    sent = first.profile[first.allowed]
    forbidden = policy("all", pi=1.0, budget=2, never_items=frozenset(sent.tolist()))
    assert not left(forbidden, sent=sent).allowed.any()
    removed = np.setdiff1d(HISTORY, sent).astype(np.int32)
    assert not left(budgeted, history=removed, sent=sent).allowed.any()


def test_what_was_sent_stays_chosen_when_other_things_that_were_sent_are_removed():
    sent = left(policy(pi=0.9)).profile[left(policy(pi=0.9)).allowed]
    kept = np.setdiff1d(HISTORY, sent[:5]).astype(np.int32)
    now = left(policy(pi=0.9), history=kept, sent=sent)
    assert now.profile[now.allowed].tolist() == sent[5:].tolist()


@given(pi=st.floats(0.01, 0.99), epsilon=st.floats(0.01, 20))
def test_decoy_rate_follows_item_epsilon(pi, epsilon):
    q = decoy_rate(pi, epsilon)
    assert 0 < q < pi
    assert math.log(pi * (1 - q) / (q * (1 - pi))) == pytest.approx(epsilon, rel=1e-6)


def test_randomized_response_profiles_hold_real_items_and_decoys_at_their_rates():
    chosen = policy("randomized-response", pi=0.6, item_epsilon=1.5)
    found = [left(chosen, user) for user in range(1500)]
    real = sum(person.real.sum() for person in found) / (1500 * len(HISTORY))
    decoys = sum((~person.real).sum() for person in found) / (1500 * (N_ITEMS - len(HISTORY)))
    q = chosen.decoy_rate
    assert policy("fixed-subset", pi=0.6).decoy_rate == 0
    assert real == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / 15000))
    assert decoys == pytest.approx(q, abs=4 * math.sqrt(q * (1 - q) / 45000))
    for person in found:
        assert person.lifelong
        assert person.allowed.all()
        assert set(person.profile[person.real].tolist()) <= set(HISTORY.tolist())
        assert not set(person.profile[~person.real].tolist()) & set(HISTORY.tolist())
        assert (np.diff(person.profile) > 0).all()


def test_what_must_never_be_sent_answers_as_if_it_were_not_liked():
    chosen = policy("randomized-response", pi=0.9, item_epsilon=2.0, never_items=frozenset({4, 9}))
    without = np.setdiff1d(HISTORY, [4, 9]).astype(np.int32)
    for user in range(200):
        one, other = (
            left(chosen, user),
            left(policy("randomized-response", pi=0.9, item_epsilon=2.0), user, history=without),
        )
        np.testing.assert_array_equal(one.profile, other.profile)
        np.testing.assert_array_equal(one.real, other.real)


def test_one_item_more_changes_nothing_about_the_others():
    chosen = policy("randomized-response", pi=0.5, item_epsilon=1.0)
    for user in range(100):
        one, other = left(chosen, user).profile, left(chosen, user, history=HISTORY[1:]).profile
        assert set(one.tolist()) ^ set(other.tolist()) <= {HISTORY[0]}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"sharing": "shy"}, "sharing is 'shy'"),
        ({"pi": 1.5}, "pi is 1.5"),
        ({"basis": "rumours"}, "basis is 'rumours'"),
        ({"budget": -1}, "budget is -1"),
        ({"budget": 2.5}, "budget is 2.5"),
        ({"item_epsilon": 1.0}, "not randomized-response"),
        ({"sharing": "randomized-response"}, "item_epsilon"),
        ({"sharing": "randomized-response", "item_epsilon": 0.0}, "item_epsilon is 0.0"),
        ({"sharing": "randomized-response", "item_epsilon": 1.0, "pi": 1.0}, "less than 1"),
        (
            {"sharing": "randomized-response", "item_epsilon": 1.0, "basis": "history"},
            "Choose the basis shared",
        ),
        ({"sharing": "randomized-response", "item_epsilon": 1.0, "budget": 3}, "choose a smaller pi"),
    ],
)
def test_a_policy_that_cannot_keep_its_guarantee_is_refused(wrong, complaint):
    with pytest.raises(SettingError, match=complaint):
        policy(**wrong)
