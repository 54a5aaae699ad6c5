"""A paper's formulas in a report: counted beside them, and rows as shares of another."""

import pytest
from tests.studies.small_results import line, results_folder

from federank.errors import SettingError
from federank.studies.report import make_report

WISHES = """
title = "What a round costs"

[[table]]
title = "Shares"
metrics = ["share:server_operations", "share:formula:server_operations"]
against = "Popular"

[[table]]
title = "Counted"
metrics = ["server_operations", "vectors_up"]

[[paper]]
data = "north"
group = ["Popular", "FPL"]
formulas = ["server_operations"]

[[note]]
group = "FPL"
text = "Constants are left out."
shown_by = { test = "tests/test_it.py::test_this" }
"""


def costs(group, counted, formula, **point):
    extra = {"server_operations": counted, "formula:server_operations": formula, "vectors_up": counted / 10}
    return line(group, extra={name: value for name, value in extra.items() if value is not None}, **point)


LINES = [costs("Popular", 1000, 1010), costs("FPL", 300, 202, pi=0.0), costs("FPL", 600, None, pi=1.0)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return make_report(results_folder(tmp_path_factory.mktemp("costs") / "results", WISHES, LINES))


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_what_is_counted_stands_beside_the_formulas_figure_and_their_ratio(report):
    table = report.results[1]
    assert [f"{column.bundle} {column.name}".strip() for column in table.columns] == [
        "Method",
        *(f"Server operations {name}" for name in ("counted", "formula", "ratio")),
        "Vectors up",
    ]
    assert texts(table) == [
        ["Popular", "1,000", "1,010", "0.99", "100"],
        ["FPL, pi = 0", "300", "202", "1.49", "30.0"],
        ["FPL, pi = 1", "600", "-", "-", "60.0"],
    ]
    assert [row[3].notable for row in table.rows] == [False, True, False]


def test_shares_are_of_the_only_row_of_the_group_that_is_named(report):
    assert texts(report.results[0]) == [
        ["Popular", "100.0%", "100.0%"],
        ["FPL, pi = 0", "30.0%", "20.0%"],
        ["FPL, pi = 1", "60.0%", "-"],
    ]
    assert report.results[0].columns[2].name == "Server operations (formula), share"


def test_a_share_of_no_user_is_refused(tmp_path):
    alone = WISHES.replace('against = "Popular"', "")
    with pytest.raises(SettingError, match="server_operations"):
        make_report(results_folder(tmp_path / "results", alone, LINES))
