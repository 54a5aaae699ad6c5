"""What FedRec costs: the bytes of its messages, and the operations of clients and server."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.methods.fedrec.recommender import (
    bytes_of_paper,
    count_rating_communication,
    fedrec_of_paper,
    of_client,
    of_clients,
    rating_cost,
)
from federank.methods.fedrec.simulation import PMFSettings, choose_raters, play_reference


def test_the_papers_formula_counts_rows_up_and_the_complete_model_down():
    # Two users, three items, four ratings, d = 5, rho = 1: up 4 * 2 rows, down 3 rows for each user.
    assert bytes_of_paper(4, 1, 3, 2, 5) == 4 * 5 * (4 * 2 + 3 * 2)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("pmf", {"style": "stochastic"}),
        ("pmf", {"style": "batch", "filling": "average", "rho": 2}),
        ("svdpp", {"filling": "hybrid", "rho": 1.5, "t_predict": 0}),
    ],
)
def test_what_is_counted_is_what_a_run_really_sends(method, settings):
    federation, rounds = rating_federation(rated_world(), method, **settings), 7
    recipe = federation.recipe
    rows = up = down = talks = 0
    for number in range(rounds):
        clients = choose_raters(recipe, number)
        broadcast = federation.broadcast
        tables = {"vectors": broadcast.vectors} | (
            {"implicit_vectors": broadcast.implicit} if method == "svdpp" else {}
        )
        before = federation.user_vectors.copy(), federation.participations.copy()
        updates = [federation.update(int(user), broadcast) for user in clients]
        federation.user_vectors[:], federation.participations[:] = before
        talks += len(updates)
        rows += sum(len(getattr(update, name)) for update in updates for name in wire.indices(update))
        up += sum(len(wire.encode(update)) for update in updates)
        down += len(clients) * len(wire.encode_parts(tables, {"round": number}))
        play_reference(federation, 1)
    sizes, n_items = federation.profiles.sizes, len(federation.item_vectors)
    counted = count_rating_communication(recipe, sizes, n_items, rounds, settings.get("rho", 0))
    assert counted["uploads"] == counted["downloads"] == talks
    assert (counted["up"]["rows"], counted["up"]["bytes"]) == (rows, up)
    assert counted["down_dense"]["bytes"] == down
    per_iteration = (up + down) / rounds * recipe.rounds_per_epoch
    assert counted["papers"]["counted_per_iteration"] == pytest.approx(per_iteration)


def test_real_bytes_are_the_papers_and_the_frame_of_messages():
    # Many factors make the frame small; everyone takes part once in an iteration of batch style.
    rng = np.random.default_rng(0)
    data = Interactions.from_columns(rng.integers(0, 20, 900), rng.integers(0, 200, 900), rng.integers(1, 6, 900))
    federation = rating_federation(data, style="batch", factors=64, filling="average", rho=1)
    counted = count_rating_communication(federation.recipe, federation.profiles.sizes, data.n_items, 3, 1)
    papers = counted["papers"]
    assert 1 < papers["counted_per_iteration"] / papers["bytes_per_iteration"] < 1.05


DATA = rated_world(users=12, items=200, ratings=150)
SIZES = DATA.profiles.sizes
SIZE = len(DATA) / DATA.n_users
HYBRID = {"filling": "hybrid", "t_predict": 2, "t_local": 7}
D = 4


def counted(data=DATA, **settings):
    return rating_cost(rating_federation(data, **settings))


def paper(**settings):
    record = PMFSettings(factors=D, **settings)
    return fedrec_of_paper(record, ratings=len(DATA), users=DATA.n_users, items=DATA.n_items)


def test_a_batch_client_makes_five_multiplications_of_d_for_a_rating_and_three_to_step():
    for rho in (0, 2):
        found = counted(style="batch", rho=rho, filling="average").device_operations
        assert found == pytest.approx(5 * D * SIZE * (1 + rho) + 3 * D)


def test_a_stochastic_client_makes_six_multiplications_of_d_for_a_rating():
    for rho in (0, 2):
        found = counted(style="stochastic", rho=rho, filling="average").device_operations
        assert found == pytest.approx(6 * D * SIZE * (1 + rho))


@pytest.mark.parametrize(("style", "a_pass"), [("batch", 2 * D * SIZE + 3 * D), ("stochastic", 4 * D * SIZE)])
def test_hybrid_filling_costs_its_passes_over_the_own_ratings_and_a_prediction_of_each_virtual_one(style, a_pass):
    average = counted(style=style, rho=2, filling="average").device_operations
    hybrid = counted(style=style, rho=2, **HYBRID).device_operations
    assert hybrid - average == pytest.approx(7 * a_pass + 2 * D * SIZE)


@pytest.mark.parametrize("style", ["batch", "stochastic"])
@pytest.mark.parametrize("rho", [0, 0.3, 3])
def test_small_clients_tell_what_every_client_of_a_population_computes(style, rho):
    crowded = rated_world(users=12, items=30, ratings=300)  # with rho 3 most have too few items left to sample
    federation = rating_federation(crowded, style=style, rho=rho, **HYBRID)
    virtual = federation.recipe.virtual
    assert rho < 3 or (virtual < 3 * crowded.profiles.sizes).any()
    directly = [of_client(federation, federation.client(user), int(virtual[user])) for user in range(crowded.n_users)]
    assert of_clients(federation, crowded.profiles.sizes, virtual).tolist() == directly


@pytest.mark.parametrize("style", ["batch", "stochastic"])
@pytest.mark.parametrize("rho", [0, 2])
def test_the_server_does_and_the_wire_carries_what_the_paper_counts(style, rho):
    found, formula = (cost(style=style, rho=rho, filling="average") for cost in (counted, paper))
    assert found.server_operations == pytest.approx(formula.server_operations, rel=0.03)
    assert found.vectors_up == pytest.approx(formula.vectors_up)
    assert found.vectors_down == formula.vectors_down


def test_bytes_are_those_of_the_messages():
    found = counted(style="batch", rho=1, filling="average")
    encoded = [len(wire.encode(ItemGradients(*_rows(2 * int(size))))) for size in DATA.profiles.sizes]
    assert found.bytes_up == found.bytes_up_written_out == pytest.approx(np.mean(encoded))


def _rows(count):
    return np.zeros(count, dtype=np.int32), np.zeros((count, D), dtype=np.float32)


def test_fewer_vectors_are_sent_where_too_few_items_are_left_to_sample():
    crowded = rated_world(users=12, items=30, ratings=300)
    found = counted(crowded, style="batch", rho=3, filling="average")
    assert found.vectors_up < 4 * len(crowded) / crowded.n_users
    assert found.vectors_up <= crowded.n_items


def test_svdpp_sends_second_vectors_and_its_clients_are_not_counted():
    found = counted(method="svdpp", rho=1, filling="average")
    assert found.device_operations is None
    assert found.vectors_down == 2 * DATA.n_items
    assert found.vectors_up == pytest.approx(3 * SIZE)
    assert found.server_operations == pytest.approx(D * 3 * len(DATA))
