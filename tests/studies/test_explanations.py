"""What explains a difference from a paper: only a note whose evidence holds."""

import pytest
from tests.studies.small_results import line

from federank.studies.report_spec import Note, Published, ReportSpec
from federank.studies.results import read_record
from federank.studies.rows import gather
from federank.studies.run_tables import explanations
from federank.studies.tables import Difference

METRIC = "precision@10"


def rows_of(*lines):
    return gather([read_record(one) for one in lines])


def difference(row, paper):
    ours = row.mean(METRIC)
    return Difference(row, METRIC, ours, paper, 100 * (ours - paper) / paper)


def explained(*notes, paper=0.15, beside=()):
    """What is said of the row Popular in the north, .10, with these notes and with other compared rows beside it."""
    [popular] = rows_of(line("Popular"))
    far = difference(popular, paper)
    sweep = rows_of(*(line("FPL", pi=pi) for pi in (0.0, 0.5, 1.0)))
    specs = ReportSpec(title="A study", notes=notes, papers=[Published()])
    return explanations(specs, [far, *beside], [popular, *sweep, *(one.row for one in beside)])(far)


def test_without_a_note_or_without_evidence_it_is_unexplained():
    assert explained() == "unexplained"
    assert explained(Note(text="Luck.")) == "unexplained: Luck."
    assert explained(Note(text="Luck.", group="FPL", shown_by={"test": "it"})) == "unexplained"


def test_a_test_shows_what_it_is_named_for():
    told = explained(Note(text="Ties.", shown_by={"test": "tests/test_ties.py::test_ties"}))
    assert told == "Ties. Shown by tests/test_ties.py::test_ties."
    told = explained(Note(text="Few users.", shown_by={"paper": "its footnote"}))
    assert told == "Few users. The paper says so itself: its footnote."


@pytest.mark.parametrize(("paper", "shown"), [(0.21, True), (0.05, True), (0.30, False), (0.01, False)])
def test_a_sweep_shows_it_where_the_papers_value_is_among_its_own(paper, shown):
    told = explained(Note(text="It depends on pi.", shown_by={"sweep": "FPL"}), paper=paper)
    assert told.startswith("unexplained: ") is not shown
    assert "0.05000 to 0.20000" in told


def test_only_points_of_a_sweep_that_are_as_precise_as_the_paper_show_its_coverage():
    [popular] = rows_of(line("Popular"))
    sweep = rows_of(*(line("FPL", pi=pi) for pi in (0.0, 0.5, 1.0)))  # IC is 1,000 times the precision: 50, 200 and 150
    specs = ReportSpec(title="A study", notes=[Note(text="It depends on pi.", shown_by={"sweep": "FPL"})])

    def told(paper_precision):
        coverage = Difference(popular, "item_coverage@10", 100.0, 60.0, 66.7)
        return explanations(specs, [coverage, difference(popular, paper_precision)], [popular, *sweep])(coverage)

    assert told(0.05).startswith("unexplained: ")
    assert told(0.19).startswith(
        "unexplained: It depends on pi. Yet points of FPL that are as precise have 200 to 200."
    )
    assert told(0.90).endswith("No point of the sweep that would show it, FPL, is as precise.")


def test_a_row_shows_it_only_where_it_is_within_ten_percent():
    note = Note(text="Another form.", group="Popular", shown_by={"group": "FPL"})
    near = difference(rows_of(line("FPL", pi=1.0))[0], 0.15)
    assert explained(note, beside=[near]) == "Another form. Shown by FPL (0.15000, +0.0 %)."
    far = difference(rows_of(line("FPL", pi=0.5))[0], 0.15)
    assert (
        explained(note, beside=[far]) == "unexplained: Another form. FPL is not within 10 % either (0.20000, +33.3 %)."
    )
    assert "is not there" in explained(note)


def test_a_row_that_is_far_but_explained_itself_shows_it_too():
    notes = [
        Note(text="Another form.", group="Popular", shown_by={"group": "FPL"}),
        Note(text="Ties.", group="FPL", shown_by={"test": "tests/test_ties.py::test_ties"}),
    ]
    far = difference(rows_of(line("FPL", pi=0.5))[0], 0.15)
    assert explained(*notes, beside=[far]) == "Another form. Shown by FPL (0.20000, +33.3 %, explained there)."


def test_rows_that_name_each_other_explain_nothing():
    notes = [
        Note(text="As FPL.", group="Popular", shown_by={"group": "FPL"}),
        Note(text="As Popular.", group="FPL", shown_by={"group": "Popular"}),
    ]
    far = difference(rows_of(line("FPL", pi=0.5))[0], 0.15)
    assert explained(*notes, beside=[far]).startswith("unexplained: ")


def test_the_same_row_on_other_data_shows_it():
    note = Note(text="Other days.", data="north", shown_by={"data": "south"})
    near = difference(rows_of(line("Popular", data="south", seed=2))[0], 0.12)
    assert explained(note, beside=[near]).startswith("Other days. Shown by Popular on south (0.12000")


def test_all_evidence_must_hold():
    note = Note(text="Both.", shown_by={"test": "tests/test_it.py::test_this", "sweep": "FPL"})
    assert not explained(note, paper=0.2).startswith("unexplained")
    assert explained(note, paper=0.3).startswith("unexplained: ")
