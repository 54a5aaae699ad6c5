"""Item-item weights from the sums of all messages."""

import os
import signal

import numpy as np
import pytest

import federank as fr
from federank.errors import BadMessage, SettingError
from federank.federation import wire
from federank.methods.frugal import ridge
from federank.methods.frugal.item_weights import ItemWeights, most_bytes, no_weights
from federank.methods.frugal.protocol import LEVELS
from federank.methods.frugal.ridge import (
    Block,
    Exposure,
    co_occurrences,
    from_sums,
    held_back,
    nearest,
    ridge_weights,
    strength_of,
)
from federank.methods.frugal.side_knowledge import side_knowledge
from federank.simulation.training import Stopped

SPLIT = fr.split_temporal(fr.city(people=300, places=120, checkins=9000, seed=4), test=0.2)
SETTINGS = {"item_weights": "ridge", "factors": 12, "min_support": 5}


@pytest.fixture(scope="module")
def model():
    return fr.Frugal(**SETTINGS).fit(SPLIT.train)


def test_co_occurrences_are_exact_inside_the_span():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(30, 6))
    whole = base @ base.T
    blocks = [Block(whole @ through, through) for through in (rng.normal(size=(30, 4)), rng.normal(size=(30, 4)))]
    factors = co_occurrences(blocks)
    np.testing.assert_allclose(factors @ factors.T, whole, atol=1e-6 * np.abs(whole).max())


def test_weights_solve_the_ridge_regression():
    rng = np.random.default_rng(2)
    factors = np.abs(rng.normal(size=(8, 5))).astype(np.float32)
    counts = (factors**2).sum(axis=1) + 5
    weights = ridge_weights(factors, counts, strength=0.7, wanted_norm=3.0)
    solutions = []
    for item in range(8):
        own = weights.items[weights.starts[item] : weights.starts[item + 1]]
        together = np.minimum(np.maximum(factors @ factors.T, 0), np.minimum.outer(counts, counts))
        regularisation = 0.7 * np.sqrt(counts * counts.mean())
        sides = together[np.ix_(own, own)]
        np.fill_diagonal(sides, (counts + regularisation)[own])
        solutions.append(np.linalg.solve(sides, together[own, item]))
    part = 3.0 / np.linalg.norm(np.concatenate(solutions))
    for item, expected in enumerate(solutions):
        codes = weights.codes[weights.starts[item] : weights.starts[item + 1]]
        step = part * np.abs(expected).max() / LEVELS
        np.testing.assert_allclose(codes * weights.scales[item], part * expected, atol=0.51 * step)


def test_items_that_users_share_by_chance_are_regularised():
    sparse, dense = strength_of(40_000, 600_000, 30_000), strength_of(3_300, 480_000, 6_000)
    assert sparse == pytest.approx(0.3, abs=0.01)
    assert dense == pytest.approx(0.3 + 50 * (80**2 / 3_300) ** 4)
    assert strength_of(100, 1e6, 1e4) == 1e6


def test_low_rank_scores_weigh_the_same_for_any_number_of_items():
    rng = np.random.default_rng(6)
    through = rng.random(size=(40, 5))
    base = rng.random(size=(40, 12))
    seen = np.column_stack((base @ base.T @ through, np.full(40, 20.0)))
    weights = from_sums(seen, np.column_stack((through, np.zeros(40))), 5, 300.0, 60.0, low_rank=2.0)
    norm = np.linalg.norm(weights.codes * np.repeat(weights.scales, np.diff(weights.starts)))
    assert 2.0 / np.sqrt(5) == pytest.approx(6 * norm / np.sqrt(40), rel=0.02)


def test_directions_in_which_rounds_disagree_are_dropped():
    rng = np.random.default_rng(7)
    base = rng.normal(size=(30, 3))
    throughs = [rng.normal(size=(30, 6)) for _ in range(2)]
    same = [Block(base @ base.T @ through, through) for through in throughs]
    off = [block._replace(seen=block.seen + 0.05 * rng.normal(size=(30, 6))) for block in same]
    assert co_occurrences(same, disagreement=0.5).shape[1] == 3
    assert co_occurrences(off).shape[1] > 3
    assert co_occurrences(off, disagreement=2.0).shape[1] == 3


def test_no_target_is_shown_to_more_users_than_may_see_it():
    rng = np.random.default_rng(8)
    histories = (rng.random((600, 250)) < 0.15).astype(np.float32)
    histories[:, :30] = rng.random((600, 30)) < 0.5
    counts, factors = (
        histories.sum(axis=0).astype(np.float64),
        np.linalg.cholesky(histories.T @ histories + np.eye(250)),
    )
    starts = np.arange(251, dtype=np.int32) * 30
    items = np.sort([rng.choice(250, 30, replace=False) for _ in range(250)], axis=1).astype(np.int32)
    items[0] = np.arange(30)  # the target is pushed by what many have
    codes, scales = rng.integers(-20, 60, 7500).astype(np.int8), np.full(250, 0.01, np.float32)
    codes[:30], scales[0] = 100, 0.03
    pushed = ItemWeights(starts, items.ravel(), codes, scales)
    nothing = np.zeros((250, 2))

    def shown(weights):
        scores = weights.scores(histories, np.zeros(histories.shape, np.float32))
        return (np.argsort(-scores, axis=1)[:, :10] == 0).any(axis=1).mean()

    held = held_back(pushed, factors, counts, 600.0, Exposure(nothing, nothing, 0.15))
    assert shown(pushed) > 0.9
    assert shown(held) < 0.25
    assert np.all(held.scales <= pushed.scales)
    few = Exposure(nothing, nothing, 0.05)
    assert held_back(pushed, factors, counts, 600.0, few) is pushed, "12 items cannot be shown to 5 % of users each"


def test_no_item_is_its_own_neighbour():
    rows = np.random.default_rng(3).normal(size=(40, 6)).astype(np.float32)
    assert all(item not in own for item, own in enumerate(nearest(rows)))


def test_neighbours_found_in_blocks_are_the_nearest(monkeypatch):
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(700, 9)) * rng.exponential(size=(700, 1)) + rng.normal(size=9)).astype(np.float32)
    rows[40:140] = rows[40]  # of equal cosines
    rows[300] = 0
    for name, value in {"MOST_NEIGHBOURS": 30, "MEAN_NEIGHBOURS": 10}.items():
        monkeypatch.setattr(ridge, name, value)
    monkeypatch.setattr(ridge, "_MOST_CELLS", 50 * 700)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)[:, None]
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1)
    each = -np.sort(-cosines, axis=1)[:, :30]
    least = -np.sort(-each.ravel())[10 * 700 - 1]
    found = nearest(rows)
    assert sum(len(own) for own in found) == 10 * 700
    for item, own in enumerate(found):
        assert len(own) <= 30
        assert np.all(np.diff(own) > 0)
        if len(own):
            np.testing.assert_allclose(np.sort(cosines[item, own]), np.sort(each[item])[-len(own) :], atol=1e-5)
            assert cosines[item, own].min() >= least - 1e-5


def test_engines_agree(model):
    plain = fr.Frugal(**SETTINGS).fit(SPLIT.train, training_options=fr.TrainingOptions(engine="reference"))
    users = np.arange(30, dtype=np.int32)
    np.testing.assert_allclose(model._score_users(users), plain._score_users(users), atol=0.03)


def test_it_recommends_better_than_popularity(model):
    popular = fr.MostPopular().fit(SPLIT.train)
    precision = [fr.evaluate(one, SPLIT, at=10).means["precision@10"] for one in (model, popular)]
    assert precision[0] > 1.2 * precision[1]


def test_a_saved_model_has_its_weights(model, tmp_path):
    model.save(tmp_path / "model")
    again = fr.load_model(tmp_path / "model")
    users = np.arange(20, dtype=np.int32)
    np.testing.assert_array_equal(again._score_users(users), model._score_users(users))


def test_weights_survive_the_wire(model):
    content = wire.encode(model.ridge)
    assert len(content) == wire.size(model.ridge) <= most_bytes(model.training.n_items)
    again = ItemWeights.decode(content, model.training.n_items)
    for name, part in wire.values(model.ridge).items():
        np.testing.assert_array_equal(getattr(again, name), part)


def test_no_weights_leave_scores_as_they_are():
    none = ItemWeights.decode(wire.encode(no_weights(4)), 4)
    low_rank = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(none.scores(np.ones((2, 4), dtype=np.float32), low_rank), low_rank)


GOOD = {"starts": [0, 2, 2, 3], "items": [1, 2, 0], "codes": [5, -127, 1], "scales": [0.5, 0, 0.1]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"starts": [0, 2, 3]},
        {"starts": [1, 2, 2, 3]},
        {"starts": [0, 3, 2, 3]},
        {"starts": [0, 2, 2, 2]},
        {"items": [2, 1, 0]},
        {"items": [1, 3, 0]},
        {"items": [-1, 2, 0]},
        {"codes": [5, -128, 1]},
        {"codes": [5, 1]},
        {"scales": [0.5, -1, 0.1]},
        {"scales": [0.5, np.nan, 0.1]},
        {"scales": [0.5, 0.1]},
    ],
    ids=str,
)
def test_weights_that_do_not_fit_are_refused(wrong):
    types = {"starts": np.int32, "items": np.int32, "codes": np.int8, "scales": np.float32}
    ItemWeights.read({name: np.array(part, types[name]) for name, part in GOOD.items()}, 3)
    with pytest.raises(BadMessage):
        ItemWeights.read({name: np.array(part, types[name]) for name, part in (GOOD | wrong).items()}, 3)


def test_more_weights_than_are_published_are_refused():
    n_items = 80
    starts = np.arange(n_items + 1, dtype=np.int32) * (n_items - 1)
    others = [np.delete(np.arange(n_items, dtype=np.int32), item) for item in range(n_items)]
    codes, scales = np.ones(starts[-1], dtype=np.int8), np.ones(n_items, dtype=np.float32)
    with pytest.raises(BadMessage):
        ItemWeights.read({"starts": starts, "items": np.concatenate(others), "codes": codes, "scales": scales}, n_items)


def test_a_new_user_is_scored_as_a_known_one(model):
    data = model.training
    newcomer = fr.enrol(model, [int(item) for item in data.item_ids[data.profiles.of(0)]])
    scores = model._score_users(np.array([0], np.int32))[0]
    np.testing.assert_allclose(newcomer.score(data.item_ids), scores, atol=1e-5)


def test_an_outsider_scores_with_the_weights(model):
    found = side_knowledge(model, sees="outsider", known=4)
    assert set(found) == {"model", "weights"}
    assert 0 < found["weights"]["inside"] <= 1


def test_only_downloads_grow(model):
    plain = fr.Frugal(**SETTINGS | {"item_weights": "none"}).fit(SPLIT.train)
    ridge, without = model.communication(), plain.communication()
    assert ridge["up"] == without["up"]
    assert ridge["down_changed"]["bytes"] > without["down_changed"]["bytes"]


@pytest.mark.parametrize("beside", [{"epsilon": 4.0}, {"cohorts": 2}, {"alpha": 1.0}])
def test_what_it_cannot_be_made_from_is_refused(beside):
    with pytest.raises(SettingError):
        fr.Frugal(item_weights="ridge", **beside)


def test_a_resumed_run_has_the_same_weights(model, tmp_path):
    def stop(epoch):
        if epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    kept = tmp_path / "checkpoint"
    with pytest.raises(Stopped):
        fr.Frugal(**SETTINGS).fit(SPLIT.train, training_options=fr.TrainingOptions(checkpoint=kept, after_epoch=stop))
    resumed = fr.Frugal(**SETTINGS).fit(SPLIT.train, training_options=fr.TrainingOptions(checkpoint=kept, resume=True))
    np.testing.assert_array_equal(resumed.ridge.codes, model.ridge.codes)
