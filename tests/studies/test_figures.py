"""The figures of a report: what they need, what they draw, what they say."""

import re
from xml.etree import ElementTree

import pytest
from tests.studies.small_results import all_lines, line

from federank.errors import SettingError
from federank.studies.figures.draw import KINDS, draw_figures
from federank.studies.figures.style import BLUE, THEME, themed
from federank.studies.figures.sweep import pareto_front
from federank.studies.report_spec import report_spec_of
from federank.studies.results import read_record
from federank.studies.rows import gather


def pictures(*figures, lines=None, **specs):
    held = [read_record(one) for one in (all_lines() if lines is None else lines)]
    return list(draw_figures(report_spec_of({"figure": figures, **specs}, ""), gather(held), held))


def panels(kind, lines=None, **spec):
    drawn = pictures({"kind": kind, **spec}, lines=lines)
    return {panel.name: panel for panel in drawn[0].panels} if drawn else {}


def test_f1_against_pi_says_where_each_method_is_best_on_each_data_set():
    drawn = panels("f1-against-pi")
    assert list(drawn) == ["north", "south"]
    assert drawn["north"].seen == "FPL is best at pi = 0.5 (F1@10 0.140)."  # 2 * 0.21 * 0.105 / 0.315


def test_precision_against_coverage_says_where_most_items_are_shown():
    assert panels("precision-against-coverage", data=["south"])["south"].seen == (
        "FPL shows most items at pi = 0.5 (210)."
    )


def test_the_pareto_front_is_what_no_other_point_beats_in_both():
    assert pareto_front([(1, 5), (2, 4), (2, 3), (3, 1), (1, 1), (0, 4)]) == [(1, 5), (2, 4), (3, 1)]
    assert pareto_front([(1, 1), (1, 1)]) == [(1, 1)]


def test_points_that_are_alike_in_one_direction_are_judged_by_the_other():
    assert pareto_front([(3, 0.0), (2, 0.0005), (1, 0.1)], alike=0.001) == [(1, 0.1), (3, 0.0)]


def test_the_front_of_cost_and_precision_names_its_runs():
    seen = panels("cost-against-precision", data=["north"])["north"].seen
    assert seen == "No other run is both cheaper and more precise than FPL, pi = 0.5; FPL, pi = 0."


def test_item_updates_have_a_panel_for_each_method_and_tell_flat_from_steep():
    seen = panels("item-updates", data=["north"])["FPL, north"].seen
    assert "1.0 (pi = 0)" in seen
    assert "30.0 (pi = 1)" in seen


def test_popularity_tells_the_share_of_the_ten_most_recommended():
    seen = panels("popularity", data=["north"])["FPL, north"].seen
    assert "pi = 0: 29%" in seen
    assert "have 15%" in seen


def test_bias_disparity_has_a_bar_for_each_method_and_category():
    drawn = panels("bias-disparity", data=["north"])["north"]
    assert drawn.svg.count(f'style="fill: {BLUE}"') == 3  # two categories, and the legend
    hatched = re.search(r'<pattern id="(\w+)"', drawn.svg)[1]
    assert drawn.svg.count(f"fill: url(#{hatched})") == 3
    assert "pi = 0.5" in drawn.seen


def test_convergence_is_drawn_from_the_runs_that_chose_where_tests_kept_no_curves():
    lines = [one | {"curve": []} for one in all_lines()]
    curve = [{"epoch": 1, "precision@10": 0.3}, {"epoch": 2, "precision@10": 0.2}]
    chose = line("FPL", pi=0.5, task="choose", id="chose", curve=curve)
    other = chose | {"id": "other", "settings": {"pi": 0.5, "learning_rate": 7}, "curve": curve[::-1]}
    seen = panels("convergence", lines=[*lines, chose, other])["north"].seen
    assert seen == "Best by P@10: FPL, pi = 0.5 after 1 epoch (0.300)."


def test_convergence_is_drawn_from_the_longest_of_the_runs_that_a_search_by_halving_made():
    lines = [one | {"curve": []} for one in all_lines()]
    curve = [{"epoch": epoch, "precision@10": 0.1 * epoch} for epoch in (1, 2, 3, 4)]
    tried = [line("FPL", pi=0.5, task="choose", id=f"for {n}", curve=curve[:n]) for n in (2, 4)]
    for order in (tried, tried[::-1]):
        assert "after 4 epochs" in panels("convergence", lines=[*lines, *order])["north"].seen


def test_ratings_are_drawn_against_rho_in_panels_that_the_study_names():
    lines = [
        line("Popular", id=f"{method}{rho}")
        | {
            "group": f"{method} HF",
            "swept": {"rho": rho},
            "settings": {"rho": rho},
            "metrics": {"rmse": 0.9 + rho / 100 - (method == "SVD++") / 10},
        }
        for method in ("PMF", "SVD++")
        for rho in (0, 1, 2)
    ]
    drawn = panels("rho", lines=lines, panels=["PMF", "SVD++"])
    assert list(drawn) == ["PMF, north", "SVD++, north"]
    assert drawn["SVD++, north"].seen == "SVD++ HF is best at rho = 0 (RMSE 0.800)."


def test_a_guarantee_is_reported_as_the_share_that_is_kept_in_each_federation():
    def run(group, precision, **swept):
        found = {"group": group, "metrics": {"precision@10": precision}, "swept": swept, "settings": swept}
        return line("Popular", id=f"{group}{swept}") | found

    lines = [
        run("Top", 0.1),
        run("Few", 0.2),
        run("Few, noisy", 0.18, epsilon=4.0),
        run("Few, noisy", 0.05, epsilon=1.0),
    ]
    drawn = panels("guarantee", lines=lines, groups=["Few, noisy"], baselines=["Few", "Top"])
    assert list(drawn) == ["all data"]
    assert drawn["all data"].seen == "Of P@10 without noise is kept: north 25% at epsilon 1, 90% at epsilon 4."


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_without_anything_to_show_is_left_out(kind):
    assert pictures({"kind": kind}, lines=[line("Popular", curve=[], metrics={"ndcg@10": 0.5})]) == []


def test_a_kind_that_is_not_known_is_an_error_that_names_the_nearest():
    with pytest.raises(SettingError, match="'convergence'"):
        pictures({"kind": "convergense"})


def test_a_figure_on_a_page_takes_all_its_colours_from_the_page_and_has_its_own_ids():
    svg = panels("f1-against-pi", data=["north"])["north"].svg
    inline = themed(svg, "f1")
    assert not re.search(r"#[0-9a-f]{6}\b", inline)
    assert set(re.findall(r"var\(--(\w+)\)", inline)) <= THEME.keys()
    assert all(name.startswith("f1-") for name in re.findall(r'\bid="([^"]+)"', inline))
    assert ElementTree.fromstring(inline.replace("xlink:href", "href")).tag.endswith("svg")


@pytest.mark.slow
def test_names_of_methods_are_drawn_as_they_are_not_as_formulas_or_markup():
    lines = [one | {"group": f"{one['group']} $x^ <b> \x07"} for one in all_lines()]
    for kind in ("f1-against-pi", "precision-against-coverage", "bias-disparity", "convergence"):
        for panel in panels(kind, lines=lines).values():
            ElementTree.fromstring(panel.svg)
