import numpy as np
import pytest
from tests.rated_worlds import rated_world, rating_federation

from federank.data.interactions import Interactions
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.federation.rng import words_wrap_around
from federank.methods.fedrec.communication import bytes_of_paper, count_rating_communication
from federank.methods.fedrec.method import ImplicitGradients
from federank.methods.fedrec.simulation import choose_raters, play_reference


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
        with words_wrap_around():
            clients = choose_raters(recipe, number)
        broadcast = federation.broadcast
        tables = {"vectors": broadcast.vectors} | (
            {"implicit_vectors": broadcast.implicit_vectors} if method == "svdpp" else {}
        )
        before = federation.user_vectors.copy(), federation.participations.copy()
        updates = [federation.update(int(user), broadcast) for user in clients]
        federation.user_vectors[:], federation.participations[:] = before
        talks += len(updates)
        rows += sum(len(update.items) + len(update.implicit_items) for update in updates)
        records = [
            ImplicitGradients(*update) if method == "svdpp" else ItemGradients(*update[:2]) for update in updates
        ]
        up += sum(len(wire.encode(record)) for record in records)
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
