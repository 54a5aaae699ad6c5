"""Ratings in the world: their wire format, scale, first values, samples for its lifetime, and what an Update can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rated_worlds import rated_world, rating_federation

from federank.errors import BadMessage, SettingError
from federank.federation.method import Scale
from federank.federation.rng import IMPLICIT_FACTORS, ITEM_FACTORS, USER_FACTORS, words_wrap_around
from federank.methods.fedrec.method import (
    beside_of,
    compute_ratings,
    share_ratings,
    solved_taste,
    uniform_rows,
    virtual_items,
)
from federank.methods.fedrec.settings import (
    RatingFederationSettings,
    SVDPlusPlusFederationSettings,
    rating_recipe,
    step_of,
)
from federank.methods.fedrec.simulation import RatingFederation, play_reference
from federank.methods.fedrec.wire import (
    RatingBroadcast,
    RatingRows,
    RatingUpdate,
    decode_rating_rows,
    decode_rating_update,
    encode_rating_message,
    encode_rating_rows,
    rating_rows_bytes,
    why_implausible_ratings,
)

FACTORS, ITEMS = 4, 30


def model_rows(implicit=False, seed=0):
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(ITEMS, FACTORS)).astype(np.float32) for _ in range(2)]
    heard = (np.arange(ITEMS) % 3 > 0).astype(np.int8)
    return RatingRows(
        3, 5, 2, np.arange(ITEMS, dtype=np.int32), tables[0], heard, tables[1] if implicit else tables[1][:0]
    )


@pytest.mark.parametrize("implicit", [False, True])
def test_rows_of_a_model_come_back_from_the_wire(implicit):
    rows = model_rows(implicit)
    content = encode_rating_rows(rows)
    found = decode_rating_rows(content, FACTORS, ITEMS, implicit=implicit)
    assert found[:3] == (3, 5, 2)
    for one, other in zip(found[3:], rows[3:], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(content) == rating_rows_bytes(ITEMS, FACTORS, implicit=implicit)


def test_a_version_that_changed_no_row_is_a_broadcast_too():
    rows = model_rows(implicit=True)
    empty = rows._replace(
        **{name: getattr(rows, name)[:0] for name in ("items", "vectors", "heard", "implicit_vectors")}
    )
    assert len(decode_rating_rows(encode_rating_rows(empty), FACTORS, ITEMS, implicit=True).items) == 0


def test_rows_of_the_wrong_form_are_refused():
    rows = model_rows()
    for broken, match in (
        (rows._replace(heard=rows.heard + 5), "0 or 1"),
        (rows._replace(heard=rows.heard.astype(np.float32)), "0 or 1"),
        (rows._replace(vectors=rows.vectors * np.float32(np.inf)), "not finite"),
        (rows._replace(items=rows.items[::-1].copy()), "ascend"),
        (model_rows(implicit=True), "parts"),
    ):
        with np.errstate(invalid="ignore"):
            content = encode_rating_rows(broken)
        with pytest.raises(BadMessage, match=match):
            decode_rating_rows(content, FACTORS, ITEMS, implicit=False)
    with pytest.raises(BadMessage, match="shape"):
        decode_rating_rows(encode_rating_rows(rows), FACTORS, ITEMS, implicit=True)


def test_an_update_of_pmf_has_no_rows_of_w():
    items = np.array([1, 4], np.int32)
    vectors = np.ones((2, FACTORS), np.float32)
    body = encode_rating_message(RatingUpdate(items, vectors, items, vectors))
    assert decode_rating_update(body, FACTORS, ITEMS, implicit=True).implicit_items.tolist() == [1, 4]
    with pytest.raises(BadMessage):
        decode_rating_update(body, FACTORS, ITEMS, implicit=False)


def test_servers_and_devices_draw_the_first_values_of_a_simulation():
    federation = rating_federation(rated_world(), method="svdpp", seed=9)
    for purpose, table in (
        (ITEM_FACTORS, federation.item_vectors),
        (IMPLICIT_FACTORS, federation.implicit_vectors),
        (USER_FACTORS, federation.user_vectors),
    ):
        drawn = uniform_rows(len(table), FACTORS, seed=9, purpose=purpose, span=0.5)
        np.testing.assert_array_equal(drawn, table[:, :FACTORS])
    one = uniform_rows(1, FACTORS, seed=9, purpose=USER_FACTORS, span=0.5, first_row=3)
    np.testing.assert_array_equal(one[0], federation.user_vectors[3, :FACTORS])


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        (Scale(1, 5, 1), (1, 3, 5), (0, 5.5, 4.5, float("nan"), float("inf"))),
        (Scale(0.5, 5, 0.5), (0.5, 4.5), (0, 4.2)),
        (Scale(1, 5, 0), (1, 2.71), (0.99, 5.01)),
    ],
)
def test_a_scale_knows_its_ratings(scale, good, bad):
    assert all(scale.why_not(value) is None for value in good)
    assert all("ratings go from" in scale.why_not(value) for value in bad)


def test_the_step_of_a_scale_is_found_in_the_data():
    assert step_of(np.array([1, 4, 5], np.float32), 1.0) == 1.0
    assert step_of(np.array([0.5, 4, 5], np.float32), 0.5) == 0.5
    assert step_of(np.array([1, 3.14159], np.float32), 1.0) == 0.0
    with pytest.raises(SettingError, match=r"1.*5"):
        RatingFederationSettings(step=3)


def sample(profile, before=(), rho=1.0, n_items=ITEMS, round_number=0, sampling="fixed"):
    settings = RatingFederationSettings(rho=rho, sampling=sampling)
    recipe = rating_recipe(settings, np.array([len(profile)]), n_items)
    items, known = (np.array(sorted(part), np.int32) for part in (profile, before))
    with words_wrap_around():
        found = virtual_items(recipe, 7, round_number, items, int(recipe.virtual[0]), n_items, known)
    assert len(set(found.tolist())) == len(found)
    assert not set(found.tolist()) & set(profile)
    return found.tolist()


@given(
    profile=st.sets(st.integers(0, ITEMS - 1), min_size=2, max_size=20),
    more=st.sets(st.integers(0, ITEMS - 1), max_size=5),
)
def test_a_sample_for_life_outlives_a_history_that_grows(profile, more):
    first = sample(profile)
    extended = sample(profile | more, before=first)
    free = ITEMS - len(profile | more)
    stays = set(first) - more
    assert len(extended) == min(len(profile | more), free)
    assert stays <= set(extended) or len(extended) < len(stays)
    assert sample(profile, before=first) == first, "nothing has changed"


def test_a_fresh_sample_is_another_one_in_every_round():
    one, other = (sample({1, 2, 3}, sampling="fresh", round_number=number, before=[9]) for number in (0, 1))
    assert one != other


def test_what_leaves_a_device_is_plausible_and_what_is_made_up_is_not():
    data = rated_world()
    federation = RatingFederation.established(RatingFederationSettings(factors=FACTORS, initial_range=1.0), data)
    device, V = federation.device(2), federation.shared.vectors
    with words_wrap_around():
        update = share_ratings(compute_ratings(federation.recipe, device, RatingBroadcast(0, V, V[:0])))
    assert why_implausible_ratings(update, V, 0.001) is None
    rows = update.vectors.copy()
    rows[0] = rows[0][::-1] + 1
    assert "one person's vector" in why_implausible_ratings(update._replace(vectors=rows), V, 0.001)
    nothing = RatingUpdate(update.items[:0], rows[:0], update.items[:0], rows[:0])
    assert "no item" in why_implausible_ratings(nothing, V, 0.001)


def test_batch_gradients_of_svdpp_are_those_of_the_squared_error():
    """W's by differences: half the mean squared error over a device's ratings, and lambda |W|^2 / 2."""
    settings = SVDPlusPlusFederationSettings(factors=FACTORS, initial_range=1.0, rho=0, filling="none", regulariser=0.1)
    federation = RatingFederation.established(settings, rated_world())
    shared, device = federation.shared, federation.device(2)
    V, W, U = shared.vectors, shared.implicit_vectors, device.vector.copy()
    update = share_ratings(compute_ratings(federation.recipe, device, RatingBroadcast(0, V, W)))
    n, items = len(device.items), device.items
    assert update.implicit_items.tolist() == items.tolist()

    def error(implicit):
        rows = implicit[items].astype(np.float64)
        others = (rows.sum(axis=0) - rows) / np.sqrt(n - 1)
        told = np.einsum("kf,kf->k", U + others, V[items].astype(np.float64))
        return np.square(told - device.ratings).sum() / 2 / n + 0.05 * np.square(rows).sum()

    for place, factor in ((0, 1), (n - 1, 3)):
        up, down = W.astype(np.float64), W.astype(np.float64)
        up[items[place], factor] += 1e-4
        down[items[place], factor] -= 1e-4
        slope = (error(up) - error(down)) / 2e-4
        assert update.implicit_vectors[place, factor] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_batch_svdpp_learns_two_opinions():
    from tests.rated_worlds import two_opinions

    settings = SVDPlusPlusFederationSettings(
        factors=FACTORS, initial_range=0.5, filling="none", rho=0, learning_rate=0.1, decay=1.0
    )
    federation = RatingFederation.established(settings, two_opinions())
    play_reference(federation, 60)
    history = federation.device(0)
    shared = federation.shared
    beside = beside_of(shared.implicit_vectors[history.items], FACTORS)
    taste = solved_taste(shared.vectors[history.items], history.ratings, beside, 0.5)
    told = shared.vectors @ taste
    assert told[::2].min() > 3.5 > 2.5 > told[1::2].max()


def test_a_vector_solved_at_home_explains_a_few_stars():
    rng = np.random.default_rng(3)
    V, truth = rng.normal(size=(40, FACTORS)).astype(np.float32), np.array([1.5, -1, 0.5, 2], np.float32)
    nothing = beside_of(V[:0], FACTORS)
    np.testing.assert_allclose(solved_taste(V, V @ truth, nothing, 1e-6), truth, rtol=1e-4)
    few = solved_taste(V[:2], (V @ truth)[:2], nothing, 0.5)
    assert np.linalg.norm(few) < np.linalg.norm(truth), "where little is known it stays small"
