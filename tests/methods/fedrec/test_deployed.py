"""FedRec on real clients: the wire, the scale, first values, samples for a lifetime, what is plausible, agreement."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rated_worlds import rated_world, rating_federation, simulated, two_opinions

from federank.errors import BadMessage, SettingError
from federank.federation.method import Client, ItemGradients, Scale
from federank.federation.rng import USER_FACTORS, uniform_rows, words_wrap_around
from federank.methods.fedrec.method import PMF, SVDPlusPlus, rating_recipe, step_of
from federank.methods.fedrec.reference import folded_in, implicit_part, virtual_items
from federank.methods.fedrec.simulation import PMFSettings, RatingFederation, play_compiled

FACTORS, ITEMS = 4, 30


def test_first_values_are_those_of_a_simulation():
    federation = rating_federation(rated_world(), method="svdpp", seed=9)
    method = SVDPlusPlus(
        n_items=len(federation.item_vectors), factors=FACTORS, seed=9, initial_range=0.5, first_prediction="zero"
    )
    state = method.initial_state()
    np.testing.assert_array_equal(state.vectors, federation.item_vectors[:, :FACTORS])
    np.testing.assert_array_equal(state.implicit_vectors, federation.implicit_vectors[:, :FACTORS])
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
        PMF(step=3)


def sample(profile, before=(), rho=1.0, n_items=ITEMS, round_number=0, sampling="fixed"):
    settings = PMF(rho=rho, sampling=sampling)
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
def test_a_sample_for_a_lifetime_outlives_a_history_that_grows(profile, more):
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


def client_of(data, user):
    here = slice(data.profiles.starts[user], data.profiles.starts[user + 1])
    return Client(3, user, 0, data.profiles.of(user), data.ratings[here])


def test_what_a_client_sends_is_plausible_and_what_is_made_up_is_not():
    data = rated_world()
    method = PMF(n_items=data.n_items, factors=FACTORS, initial_range=1.0)
    broadcast = method.broadcast(method.initial_state())
    update = method.client_update(client_of(data, 2), broadcast).update
    method.check(broadcast, update)
    rows = update.vectors.copy()
    rows[0] = rows[0][::-1] + 1
    for wrong in (replace(update, vectors=rows), ItemGradients(update.items[:0], rows[:0])):
        with pytest.raises(BadMessage):
            method.check(broadcast, wrong)


def test_batch_gradients_of_svdpp_are_those_of_the_squared_error():
    """W's by differences: half the mean squared error over a client's ratings, and lambda |W|^2 / 2."""
    data = rated_world()
    chosen = {"initial_range": 1.0, "first_prediction": "zero", "rho": 0.0, "filling": "none", "regulariser": 0.1}
    method = SVDPlusPlus(n_items=data.n_items, factors=FACTORS, **chosen)
    broadcast, client = method.broadcast(method.initial_state()), client_of(data, 2)
    V, W = broadcast.vectors, broadcast.implicit_vectors
    U = uniform_rows(1, FACTORS, seed=3, purpose=USER_FACTORS, span=1.0, first_row=2)[0]
    update, items, n = method.client_update(client, broadcast).update, client.items, len(client.items)
    assert update.implicit_items.tolist() == items.tolist()

    def error(implicit):
        rows = implicit[items].astype(np.float64)
        others = (rows.sum(axis=0) - rows) / np.sqrt(n - 1)
        predicted = np.einsum("kf,kf->k", U + others, V[items].astype(np.float64))
        return np.square(predicted - client.ratings).sum() / 2 / n + 0.05 * np.square(rows).sum()

    for place, factor in ((0, 1), (n - 1, 3)):
        up, down = W.astype(np.float64), W.astype(np.float64)
        up[items[place], factor] += 1e-4
        down[items[place], factor] -= 1e-4
        slope = (error(up) - error(down)) / 2e-4
        assert update.implicit_vectors[place, factor] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_batch_svdpp_learns_two_opinions():
    data = two_opinions()
    chosen = {"filling": "none", "rho": 0.0, "learning_rate": 0.1, "decay": 1.0, "prior_count": 0.0}
    simulation = simulated(SVDPlusPlus(factors=FACTORS, initial_range=0.5, first_prediction="zero", **chosen), data, 60)
    broadcast, method = simulation.broadcast(), simulation.method
    [predicted] = method.scores(broadcast, method.fold_in(client_of(data, 0), broadcast)[None])
    assert predicted[::2].min() > 3.5 > 2.5 > predicted[1::2].max()


@pytest.mark.parametrize("settings", [{}, {"filling": "average", "rho": 1}, {"rho": 1.5, "t_predict": 1, "t_local": 3}])
def test_the_method_learns_what_compiled_batch_rounds_learn(settings):
    """The kernels sum in 32 bits; otherwise rounds with everyone and no prior count are those of the simulation."""
    data, chosen = rated_world(), {"factors": FACTORS, "initial_range": 0.5, "learning_rate": 0.4, "seed": 3}
    chosen |= {"rho": 0.0, "filling": "none"} | ({"filling": "hybrid"} if "rho" in settings else {}) | settings
    compiled = RatingFederation.established(PMFSettings(style="batch", sampling="fixed", **chosen), data)
    play_compiled(compiled, 5)
    simulation = simulated(PMF(first_prediction="zero", prior_count=0.0, **chosen), data, 5)
    np.testing.assert_allclose(simulation.state.vectors, compiled.item_vectors[:, :FACTORS], atol=2e-5)
    np.testing.assert_allclose(
        simulation.client_states["vector"], compiled.user_vectors[:, :FACTORS], atol=2e-5, rtol=2e-5
    )
    assert simulation.state.progress[0] == pytest.approx(5)


def test_a_vector_solved_at_home_explains_a_few_ratings():
    rng = np.random.default_rng(3)
    V, truth = rng.normal(size=(40, FACTORS)).astype(np.float32), np.array([1.5, -1, 0.5, 2], np.float32)
    nothing = implicit_part(V[:0], FACTORS)
    np.testing.assert_allclose(folded_in(V, V @ truth, nothing, 1e-6), truth, rtol=1e-4)
    few = folded_in(V[:2], (V @ truth)[:2], nothing, 0.5)
    assert np.linalg.norm(few) < np.linalg.norm(truth), "where little is known it stays small"
