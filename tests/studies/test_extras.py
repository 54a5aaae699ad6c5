"""Extras of a run: what figures need beyond metrics."""

import numpy as np
import pytest
from tests.rated_worlds import rated_world

import federank as fr
from federank.errors import SettingError
from federank.studies.figures.draw import KINDS
from federank.studies.report_spec import NEEDS, report_spec_of, wanted_extras
from federank.studies.task import extras, largest_shares


@pytest.fixture(scope="module")
def split():
    return fr.split_temporal(fr.city(people=60, places=80, checkins=1500).keep_users(min_interactions=10))


@pytest.fixture(scope="module")
def closed(split):
    return fr.FPL(pi=0.0, epochs=3).fit(split.train)


@pytest.fixture(scope="module")
def open_hearted(split):
    return fr.FPL(pi=1.0, epochs=3).fit(split.train)


def wanted(document):
    return wanted_extras(report_spec_of(document, "a study"))


def test_only_what_figures_draw_is_wanted():
    assert wanted({"figure": [{"kind": "f1-against-pi"}, {"kind": "convergence"}]}) == set()
    assert wanted({"figure": [{"kind": "popularity"}, {"kind": "item-updates"}]}) == {"popularity", "item_updates"}
    assert wanted({"table": [{"metrics": ["precision@10", "cce"]}]}) == {"communication"}
    assert wanted({"table": [{"metrics": ["rmse", "share:formula:server_operations"]}]}) == {"complexity"}
    assert NEEDS.keys() <= KINDS.keys()


def test_what_a_figure_does_not_show_of_a_group_is_not_wanted_of_it():
    drawn = [{"kind": "item-updates", "groups": ["FPL, best pi"]}, {"kind": "popularity"}]
    specs = report_spec_of({"figure": drawn}, "a study")
    assert wanted_extras(specs, "FPL") == {"item_updates", "popularity"}
    assert wanted_extras(specs, "FPL+") == {"popularity"}


def test_item_updates_are_the_rows_that_were_really_sent(open_hearted, closed):
    for model in (open_hearted, closed):
        assert model.item_updates().sum() == model.communication()["up"]["rows"]


def test_with_nothing_shared_updates_do_not_follow_popularity_and_with_everything_they_do(open_hearted, closed):
    popularity = open_hearted.training.popularity
    assert np.corrcoef(open_hearted.item_updates(), popularity)[0, 1] > 0.8
    assert np.corrcoef(closed.item_updates(), popularity)[0, 1] < 0.2


def test_the_cost_of_an_epoch_is_the_papers_formula_with_nothing_rounded(split):
    parallel = fr.FPL(pi=0.4, epochs=1, clients_per_round="all", triples="mean").fit(split.train)
    data = parallel.training
    found = extras(parallel, split, ["communication"])
    triples = len(data) / data.n_users
    assert found["cce"] == pytest.approx(len(data) * (data.n_items + triples * 1.4))
    rounds = parallel.report["rounds"]  # of the one epoch that was played
    assert found["rounds_per_epoch"] == rounds == int(triples)
    assert found["normalised_freshness"] == pytest.approx(rounds / len(data))


def test_the_cost_of_a_round_is_counted_and_has_the_papers_formula_beside_it():
    split = fr.split_random(rated_world(users=12, items=40, ratings=200), test=0.2)
    pmf, svdpp, fcf = (
        extras(model.fit(split.train), split, ["complexity"])
        for model in (fr.PMF(iterations=1), fr.SVDPlusPlus(iterations=1), fr.FCF(rounds=1))
    )
    ratings, people, items = len(split.train), split.train.n_users, split.train.n_items
    assert pmf["server_operations"] == 20 * ratings
    assert pmf["formula:server_operations"] == people + 20 * ratings
    assert fcf["formula:device_bytes_written_out"] == 8 * 20 * items
    assert fcf["device_bytes"] == fcf["bytes_up"] + fcf["bytes_down"] < fcf["device_bytes_written_out"]
    assert svdpp["server_operations"] == 2 * 20 * ratings
    assert not any(name.startswith("formula:") for name in svdpp)
    assert extras(fr.PMF(federated=False, iterations=1).fit(split.train), split, ["complexity"]) == {}


def test_shares_of_recommendations_and_feedback_add_up_to_one(open_hearted, split):
    found = extras(open_hearted, split, ["popularity"], at=5)
    assert sum(found["recommended"]) == pytest.approx(1, abs=1e-4)  # the catalogue is smaller than the most kept
    assert sum(found["feedback"]) == pytest.approx(1, abs=1e-4)
    assert found["recommended"] == sorted(found["recommended"], reverse=True)


def test_a_centralised_method_has_no_messages_to_count(split):
    found = extras(fr.MostPopular().fit(split.train), split, ["communication", "item_updates", "popularity"])
    assert set(found) == {"recommended", "feedback"}


def test_the_largest_shares_are_of_all_though_few_are_kept():
    assert largest_shares(np.array([1, 5, 4]), 2) == [0.5, 0.4]
    assert largest_shares(np.zeros(3, dtype=np.int64), 2) == [0.0, 0.0]


def test_an_extra_that_is_not_known_is_refused(open_hearted, split):
    with pytest.raises(SettingError, match="'popularitty'"):
        extras(open_hearted, split, ["popularitty"])
