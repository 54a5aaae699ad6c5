"""Malicious clients in a study: what honest people get, with the defences and without, becomes a run's metrics."""

import pytest
from tests.studies.small_results import line
from tests.studies.worlds import carried_out, small_study

from federank.errors import SettingError
from federank.studies.figures.draw import draw_figures
from federank.studies.metric_words import KNOWN
from federank.studies.report import finding
from federank.studies.report_spec import report_spec_of
from federank.studies.results import read_record
from federank.studies.rows import gather
from federank.studies.spec import as_study

ONCE = {"seeds": [1], "choose": {"best_epoch": False, "epochs": 2}}
LIARS = {"attack": "loud", "aim": "push", "shares": [0.05, 0.1], "rounds": 4, "reports": 20}


def test_a_poisoned_run_tells_what_each_share_of_malicious_clients_reaches(tmp_path):
    model = {"group": "Loud", "method": "fpl", "poison": LIARS}
    [found] = carried_out(small_study(tmp_path, model=[model], **ONCE), tmp_path / "results")[0].records()
    assert found.status == "done", found.reason
    assert {"precision@10", "precision_defended"} <= found.metrics.keys()
    for percent in ("5", "10"):
        assert found.metrics[f"exposure_undefended_{percent}"] == 1.0
        assert found.metrics[f"exposure_{percent}"] == 0.0
        assert {f"rank_{percent}", f"precision_{percent}"} <= found.metrics.keys()
    assert found.metrics.keys() - {"precision@10"} <= KNOWN.keys(), "each has words for a table"


@pytest.mark.parametrize(
    ("poison", "sentence"),
    [
        ({"attack": "shouting"}, "attack"),
        ({"shares": []}, "one or more are needed"),
        ({"shares": [2.0]}, "share is 2"),
        ({"share": 0.1}, "share"),
    ],
)
def test_malicious_clients_that_cannot_be_are_refused_before_anything_is_run(tmp_path, poison, sentence):
    with pytest.raises(SettingError, match=sentence):
        small_study(tmp_path, model=[{"group": "Lies", "method": "fpl", "poison": poison}])
    with pytest.raises(SettingError):
        as_study({"data": [{"name": "city"}], "model": [{"method": "popular", "poison": {}}]}, "a study")


def test_the_figure_says_how_far_the_defences_hold():
    shares = {"exposure_undefended_1": 0.5, "exposure_1": 0.0, "exposure_undefended_5": 1.0, "exposure_5": 0.024}
    shares |= {"exposure_undefended_10": 1.0, "exposure_10": 0.4}
    attacked = line("Popular", metrics={"precision@10": 0.1, **shares})
    held = [read_record(attacked)]
    [drawn] = draw_figures(report_spec_of({"figure": [{"kind": "poisoning"}]}, ""), gather(held), held)
    assert drawn.panels[0].seen == (
        "With the defences on, 1 of 1 attacks show the item to 5% of users at most; Popular shows it to 2.4%."
    )
    specs = report_spec_of(
        {"table": [{"title": "Lies", "metrics": ["precision@10", "exposure_undefended_5", "exposure_5"]}]}, ""
    )
    assert finding(specs, gather(held)) == (
        "With the defences, 1 of 1 attacks on north show the pushed item to 5% of users at most, and Popular to 2%."
    )
