"""The report of a study: what its tables say, and that it says what a reader must know."""

import csv
import re
from html.parser import HTMLParser

import pytest
from tests.studies.small_results import WISHES, all_lines, line, results_folder

from federank.errors import BadFile
from federank.studies.report import make_report, write_report
from federank.studies.results import Label, Results, RunRecord
from federank.studies.rows import gather
from federank.studies.run_tables import groups_table, price_table

TABLES = WISHES.replace('[[figure]]\nkind = "f1-against-pi"\n', "")
"""The same wishes without the figure: drawing is most of a report's time."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return results_folder(tmp_path_factory.mktemp("study") / "results")


@pytest.fixture(scope="module")
def report(folder):
    return make_report(folder)


@pytest.fixture(scope="module")
def written(folder, tmp_path_factory):
    """A folder with the report in every form."""
    place = tmp_path_factory.mktemp("written")
    write_report(
        folder, html=place / "page" / "report.html", markdown=place / "north.md", csv=place / "csv", latex=place / "tex"
    )
    return place


def told(table):
    """A table's rows by their first cell, each as texts by the heads of the columns."""
    heads = [f"{column.bundle} {column.name}".strip() for column in table.columns]
    return {row[0].text: dict(zip(heads, row, strict=True)) for row in table.rows}


def table_called(report, title):
    return next(table for table in report.tables if table.title == title)


def test_a_row_is_the_mean_over_seeds_with_its_deviation_beside_the_paper(report):
    row = told(table_called(report, "Table 2: north"))["Popular"]
    assert row["P@10 ours"].value == pytest.approx(0.11)
    assert row["P@10 ours"].spread == pytest.approx(0.01)
    assert row["P@10 ours"].text == "0.11000 ± 0.01000"
    assert row["P@10 paper"].value == 0.11
    assert row["P@10 diff."].value == pytest.approx(0)
    assert row["IC@10 diff."].text == "+120.0 %"
    assert row["IC@10 diff."].notable


def test_a_sweep_has_a_row_for_each_value_though_other_settings_were_chosen_for_each(report):
    rows = told(table_called(report, "Table 2: north"))
    assert list(rows) == ["Popular", "FPL, pi = 0", "FPL, pi = 0.5", "FPL, pi = 1"]
    assert rows["FPL, pi = 0.5"]["P@10 paper"].value == 0.15
    assert rows["FPL, pi = 1"]["P@10 paper"].text == "-"


def test_rows_that_are_alike_are_the_best_together(tmp_path):
    def bold(alike):
        values = {pi: 0.3 * (1 + number * 1e-15) for number, pi in enumerate(alike)}
        lines = [
            one | {"metrics": {**one["metrics"], "precision@10": values[pi]}}
            if (pi := one["swept"].get("pi")) in values
            else one
            for one in all_lines()
        ]
        report = make_report(results_folder(tmp_path / f"results-{len(alike)}", TABLES, lines))
        rows = told(table_called(report, "Table 2: north"))
        return [name for name, row in rows.items() if row["P@10 ours"].best], report.finding

    names, finding = bold([0, 1])
    assert names == ["FPL, pi = 0", "FPL, pi = 1"]
    assert "pi = 0" in finding
    names, finding = bold([0, 0.5, 1])
    assert names == []  # most of the column
    assert "pi = 0 and 2" in finding


def test_lists_drawn_by_lot_are_never_the_best_however_even_they_are(tmp_path):
    """They show everything and favour nothing; that is what makes them a yardstick."""
    even = {"precision@10": 0.001, "recall@10": 0.001, "item_coverage@10": 999}
    by_lot = [line("Popular", seed=seed, id=f"lot{seed}") | {"group": "Random", "model": "random"} for seed in (1, 2)]
    lines = [*all_lines(), *(one | {"metrics": even} for one in by_lot)]
    table = table_called(make_report(results_folder(tmp_path / "results", TABLES, lines)), "Table 2: north")
    assert [name for name, row in told(table).items() if row["IC@10 ours"].best] == ["FPL, pi = 0.5"]


def test_one_run_has_three_significant_digits_and_several_have_a_deviation(tmp_path):
    once = [one for one in all_lines() if one["seed"] == 1]
    once = [one | {"metrics": {**one["metrics"], "precision@10": 0.0123456}} for one in once]
    rows = told(table_called(make_report(results_folder(tmp_path / "results", TABLES, once)), "Table 2: north"))
    assert rows["Popular"]["P@10 ours"].text == "0.0123"
    assert rows["Popular"]["R@10 ours"].text == "0.0500"
    assert rows["Popular"]["IC@10 ours"].text == "100", "a count stays whole"


def test_rows_that_differ_user_by_user_are_marked_and_the_reference_is_not(report):
    rows = told(table_called(report, "Table 2: north"))
    assert {name: row["P@10 ours"].mark for name, row in rows.items()} == {
        "Popular": "",
        "FPL, pi = 0": "**",
        "FPL, pi = 0.5": "**",
        "FPL, pi = 1": "**",
    }
    assert not any(row["R@10 ours"].mark for row in rows.values())  # people have no recall in these files


def test_differences_over_ten_percent_are_listed_with_their_note_or_as_unexplained(report):
    found = table_called(report, "Differences over 10 % from the paper")
    listed = {(row[1].text, row[2].text): row[-1].text for row in found.rows}
    assert listed == {
        ("Popular", "IC@10"): "Their city has fewer places. Shown by tests/test_it.py::test_this.",
        ("FPL, pi = 0.5", "P@10"): "unexplained",
    }
    assert found.caption.startswith("2 of 3 compared values")


def test_taking_the_best_of_a_sweep_by_the_test_part_is_an_error_under_the_title(tmp_path):
    specs = TABLES.replace('against = "Popular"', 'best = "precision@10"')
    report = make_report(results_folder(tmp_path / "results", specs))
    assert "chosen on the test part" in report.warnings[0]
    assert list(told(table_called(report, "Table 2: north"))) == ["Popular", "FPL, pi = 0.5"]


def test_the_best_point_that_was_chosen_on_validation_is_one_row_and_no_part_of_the_sweep(tmp_path):
    label = {"group": "FPL, best pi", "best": True}
    best = [line("FPL", seed=seed, pi=0.5, id=f"best{seed}") | label for seed in (1, 2)]
    report = make_report(results_folder(tmp_path / "results", TABLES, all_lines() + best))
    rows = told(table_called(report, "Table 2: north"))
    assert rows["FPL, best pi = 0.5"]["P@10 ours"].value == pytest.approx(0.21)
    assert len(rows) == 5


@pytest.mark.slow
def test_failed_runs_are_reported_with_their_reasons_and_leave_the_others_alone(tmp_path):
    reasons = {
        3: "In epoch 3 the factors stopped being finite numbers.",
        4: "In epoch 1 the factors stopped being finite numbers.",
    }
    failed = [
        line("FPL", seed=seed, pi=0.5, status="failed", reason=reason, metrics={}) for seed, reason in reasons.items()
    ]
    report = make_report(results_folder(tmp_path / "results", TABLES, [*all_lines(), *failed]))
    [row] = table_called(report, "Failed runs").rows  # one cause, one row
    assert [cell.text for cell in row] == [
        "north",
        "FPL",
        "test",
        "2",
        reasons[3],
    ]
    assert told(table_called(report, "Table 2: north"))["FPL, pi = 0.5"]["P@10 ours"].value == pytest.approx(0.21)
    assert "2 of 18 runs failed" in report.warnings[0]


def test_runs_are_reported_with_times_traffic_versions_and_fingerprints(report):
    runs = {row[1].text: [cell.text for cell in row] for row in table_called(report, "Runs").rows}
    assert runs["FPL, pi = 1"][2:8] == ["2", "3", "1.5", "100", "2.0", "30.0"]
    assert "24 seconds" in table_called(report, "Runs").caption
    versions = {row[0].text: row[1].text for row in table_called(report, "Versions and data").rows}
    assert versions == {
        "federank": "0.1.0",
        "data north": "fingerprint of north",
        "data south": "fingerprint of south",
    }


class Tags(HTMLParser):
    """Every tag of a page with what it refers to; raises where a tag is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_complete_and_loads_nothing_else(written):
    text = (written / "page" / "report.html").read_text(encoding="utf-8")
    page = Tags()
    page.feed(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert sum(tag == "svg" for tag, _ in page.tags) == 2
    assert not {"script", "link", "img", "iframe", "object"}.intersection(tag for tag, _ in page.tags)
    referred = [value for _, held in page.tags for name, value in held.items() if name in ("href", "xlink:href", "src")]
    assert all(value.startswith("#") and value[1:] in page.ids for value in referred)
    inside = set(re.findall(r"url\(#([^)]+)\)", text))
    assert inside <= set(page.ids)
    assert not re.search(r"url\((?!#)|@import", text)


@pytest.mark.slow
def test_names_out_of_a_users_study_have_no_power_over_any_form(tmp_path):
    evil = 'A <b>|"&_${x}%\\~ *'
    lines = [one | {"group": one["group"].replace("Popular", evil)} for one in all_lines()]
    folder = results_folder(tmp_path / "results", WISHES.replace("A study of two cities", "<i>|"), lines)
    write_report(
        folder, html=tmp_path / "r.html", markdown=tmp_path / "r.md", latex=tmp_path / "tex", csv=tmp_path / "csv"
    )
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "<i>" not in page
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    rows = [one for one in text.splitlines() if one.startswith("| A ")]
    assert rows
    assert all("<b>" not in row.replace("\\<", "").replace("\\>", "") for row in rows)
    latex = (tmp_path / "tex" / "table-2-north.tex").read_text(encoding="utf-8")
    assert r"\&\_\$\{x\}\%\textbackslash{}\textasciitilde{}" in latex
    with (tmp_path / "csv" / "table-2-north.csv").open(encoding="utf-8", newline="") as file:
        assert next(row for row in csv.DictReader(file) if row["Method"].startswith("A"))["Method"] == evil


def test_markdown_has_every_table_and_its_figures_beside_it(written):
    text = (written / "north.md").read_text(encoding="utf-8")
    figures = re.findall(r"\]\((north/[^)]+\.svg)\)", text)
    assert figures
    assert {written / figure for figure in figures} == set((written / "north").iterdir())
    for title in ("Table 2: north", "Table 2: south", "Differences over 10 % from the paper", "Runs"):
        assert f"## {title}" in text
    widths = {
        row.replace("\\|", "").count("|") for row in text.split("## Table 2: north")[1].split("\n\n")[1].splitlines()
    }
    assert len(widths) == 1


def test_csv_has_numbers_in_full_and_latex_the_same_rows(written):
    with (written / "csv" / "table-2-north.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["Method"]: row for row in csv.DictReader(file)}
    assert float(rows["FPL, pi = 0.5"]["P@10 ours"]) == pytest.approx(0.21, abs=1e-12)
    assert float(rows["FPL, pi = 0.5"]["P@10 ours deviation"]) == pytest.approx(0.01)
    assert rows["FPL, pi = 0.5"]["P@10 ours mark"] == "**"
    latex = (written / "tex" / "table-2-north.tex").read_text(encoding="utf-8")
    assert r"\textbf{0.21000 $\pm$ 0.01000}$^{**}$ & 0.15000 & \emph{+40.0 \%}" in latex
    rows_of_latex = latex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert {row.count("&") for row in rows_of_latex} == {7}
    assert {path.stem for path in (written / "csv").iterdir()} == {path.stem for path in (written / "tex").iterdir()}


@pytest.mark.slow
def test_the_same_results_make_the_same_report_byte_for_byte(folder, tmp_path):
    for name in ("one.html", "two.html"):
        write_report(folder, html=tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


@pytest.mark.slow
def test_a_study_without_wishes_gets_a_table_of_what_its_runs_have(tmp_path):
    report = make_report(results_folder(tmp_path / "results", 'title = "Mine"'))
    assert [table.title for table in report.results] == ["Results: north", "Results: south"]
    assert [column.name for column in report.results[0].columns] == ["Method", "P@10", "R@10", "IC@10"]
    assert {picture.kind for picture in report.pictures} == {
        *("f1-against-pi", "precision-against-coverage", "cost-against-precision"),
        *("item-updates", "popularity", "bias-disparity", "convergence"),
    }


def test_a_study_that_has_not_begun_has_a_report_that_says_so(tmp_path):
    report = make_report(results_folder(tmp_path / "results", lines=[]))
    assert report.warnings == ("No run has finished yet.",)
    assert report.tables == ()


def test_what_is_no_results_folder_is_an_error(tmp_path):
    with pytest.raises(BadFile, match=r"study\.toml"):
        write_report(tmp_path, html=tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_and_nothing_is_left_behind(tmp_path):
    folder = results_folder(tmp_path / "results", TABLES)
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(BadFile):
        write_report(folder, html=tmp_path / "taken" / "report.html")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_folder_in_the_place_of_a_file_is_an_error(folder, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadFile):
        write_report(folder, **{form: "."})
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_study_that_was_stopped_says_how_much_is_still_to_come(tmp_path):
    folder, lines = tmp_path / "results", all_lines()
    results_folder(folder, TABLES, lines)
    labels = [Label(*(one[name] for name in Label._fields[:-1])) for one in lines]
    Results.open(folder).keep_current(labels, len(lines) + 3)
    assert make_report(folder).warnings[0].startswith("Unfinished: 3 of the study's runs are still to come")
    Results.open(folder).keep_current(labels, len(lines))
    assert not any("Unfinished" in warning for warning in make_report(folder).warnings)


def north_line(group, method, precision, **metrics):
    return RunRecord(
        id=group, group=group, data="north", model=method, seed=1, metrics={"precision@10": precision, **metrics}
    )


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


FLOOR, WHOLE = north_line("Top-Pop", "popular", 0.08), north_line("Frugal", "frugal", 0.1)


def test_the_price_is_a_share_of_the_gain_over_popularity():
    private = north_line("Private", "frugal", 0.09, noise_epsilon=1.0, **{"item_coverage@10": 155})
    [row] = texts(price_table(gather([FLOOR, WHOLE, private])))
    assert row[:8] == ["north", "Private", "1", "0.09000", "90%", "80%", "50%", "155"]


def test_without_noise_or_popularity_there_is_no_price():
    private = north_line("Private", "frugal", 0.09, noise_epsilon=1.0)
    assert price_table(gather([FLOOR, WHOLE])) is None
    assert price_table(gather([WHOLE, private])) is None


def test_groups_have_a_column_each():
    found = north_line("Frugal", "frugal", 0.1, **{"recall@10/activity-1": 0.25, "recall@10/popularity-4": 0.5})
    [row] = texts(groups_table(gather([found, FLOOR])))
    assert row == ["north", "Frugal", "0.25000", *["-"] * 6, "0.50000"]
    assert groups_table(gather([FLOOR])) is None
