"""The price of privacy in a report: losses, servers, the goal and the picture."""

import pytest
from tests.studies.audited_lines import audited_line, audited_lines
from tests.studies.small_results import results_folder

from federank.errors import SettingError
from federank.studies.figures.draw import draw_figures
from federank.studies.figures.privacy import shapes_of
from federank.studies.report import make_report
from federank.studies.report_spec import FigureSpec, ReportSpec
from federank.studies.results import RunRecord, read_record
from federank.studies.rows import best_attack, compared, gather, seen_rows

PRICES = """
title = "Prices"

[[table]]
title = "Prices"
metrics = ["precision@10", "loss:precision@10", "audit:gain_held_back", "audit:attack_held_back"]
against = "As published"
goal = { "audit:gain_held_back" = 0.02, "loss:precision@10" = 0.05 }
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = results_folder(tmp_path_factory.mktemp("prices") / "results", PRICES, audited_lines(1, 2))
    return make_report(folder).results[0]


def cells(table):
    """Each row by what is shared and seen, its other cells by their heads."""
    heads = [column.name for column in table.columns]
    return {(row[0].text, row[1].text): dict(zip(heads, row, strict=True)) for row in table.rows}


def test_a_row_is_reported_once_for_every_server_that_watched_it(table):
    assert list(cells(table)) == [
        ("As published, pi = 0.1", "messages, linked"),
        ("As published, pi = 0.3", "messages, linked"),
        ("Fixed-subset, pi = 0.1", "messages, linked"),
        ("Fixed-subset, pi = 0.1", "one message"),
        ("Fixed-subset, pi = 0.3", "messages, linked"),
        ("Fixed-subset, pi = 0.3", "one message"),
        ("Fixed-subset, rounds of 50, pi = 0.1", "sums over 50"),
        ("Fixed-subset, rounds of all, pi = 0.1", "sums over all"),
    ]
    gains = [row["Hidden: gain"].text for row in cells(table).values()]
    assert gains[:4] == ["-", "-", "+0.030 ± 0.000", "+0.010 ± 0.000"]


def test_a_loss_is_counted_run_by_run_against_the_same_point_of_the_sweep(table):
    lost = {key[0]: row["Loss of P@10"] for key, row in cells(table).items()}
    assert lost["As published, pi = 0.3"].value == 0
    assert lost["Fixed-subset, pi = 0.3"].value == pytest.approx((1 - 0.30 / 0.40 + 1 - 0.32 / 0.42) / 2)
    assert lost["Fixed-subset, pi = 0.3"].spread == pytest.approx(abs(0.30 / 0.40 - 0.32 / 0.42) / 2)
    assert lost["Fixed-subset, pi = 0.1"].text.startswith("+4.8%")


def test_a_goal_is_met_where_no_bound_is_passed_and_is_no_question_where_nothing_was_hidden(table):
    assert [row["Goal"].text for row in cells(table).values()] == [
        *("-", "-", "not met", "met", "not met", "not met"),
        *("met", "not met"),
    ]
    assert "0.020 and Loss of P@10 +5.0" in table.caption


def test_the_best_attack_is_named_or_all_that_were_in_some_run(table):
    assert cells(table)["Fixed-subset, pi = 0.1", "one message"]["Best attack"].text == "sum vector1 or sum vector2"
    assert cells(table)["As published, pi = 0.1", "messages, linked"]["Best attack"].text == "-"


def test_a_column_that_no_audited_row_can_fill_is_left_out(tmp_path):
    specs = PRICES.replace('"loss:precision@10", ', '"loss:precision@10", "noise_epsilon", ')
    plain = make_report(results_folder(tmp_path / "plain", specs, audited_lines())).results[0]
    assert not any(column.name == "ε of noise" for column in plain.columns)
    noisy = [line | {"metrics": line["metrics"] | {"noise_epsilon": 3.0}} for line in audited_lines()]
    table = make_report(results_folder(tmp_path / "noisy", specs, noisy)).results[0]
    assert any(column.name == "ε of noise" for column in table.columns)


def test_where_all_but_crumbs_was_sent_nothing_is_an_error_of_what_was_held_back():
    content = audited_line("Fixed-subset", 0.3)
    for sent, told in ((0.9994, 0.04), (0.9996, None)):
        content["metrics"]["updates:disclosed_share"] = sent
        (_, row), *_ = seen_rows(gather([read_record(content)]))
        assert row.mean("audit:gain_held_back") == told
        assert best_attack(row) == ("-" if told is None else "sum vector1")
        assert row.mean("audit:gain") == pytest.approx(0.2)


def test_a_loss_without_a_group_to_compare_with_is_refused():
    with pytest.raises(SettingError, match="against ="):
        compared(gather(map(read_record, audited_lines())), ["loss:precision@10"], None, {})


def test_a_row_whose_reference_was_not_run_has_no_loss():
    rows = gather(read_record(line) for line in audited_lines() if line["id"] != "As published-0.3-1-north")
    lost = {
        row.label: row.mean("loss:precision@10") for row in compared(rows, ["loss:precision@10"], "As published", {})
    }
    assert lost["Fixed-subset, pi = 0.3"] is None
    assert lost["Fixed-subset, pi = 0.1"] == pytest.approx(0.05)


def drawn(lines, **spec):
    held = [read_record(line) for line in lines]
    figures = [FigureSpec(kind="price", **spec)]
    return list(draw_figures(ReportSpec(title="", figures=figures), gather(held), held))


def test_the_picture_tells_who_hides_nothing_who_keeps_to_the_goal_and_who_is_not_beaten():
    [picture] = drawn(audited_lines())
    [panel] = picture.panels
    assert panel.name == "north"
    assert panel.seen == (
        "Of 8 rows 2 had nothing left to hide and 4 keep to the band. No other is both more accurate and more private "
        "than Fixed-subset, rounds of all, pi = 0.1 (sums over all); "
        "Fixed-subset, rounds of 50, pi = 0.1 (sums over 50); "
        "Fixed-subset, pi = 0.3 (messages, linked)."
    )
    assert [again.panels[0].svg for again in drawn(audited_lines())] == [panel.svg]


def test_without_an_audit_there_is_no_picture():
    lines = [line | {"metrics": {"precision@10": 0.1}} for line in audited_lines()]
    assert drawn(lines) == []


def test_sums_over_all_users_are_stars_and_each_server_has_a_shape_of_its_own():
    shapes = shapes_of([row for _, row in seen_rows(gather(map(read_record, audited_lines())))])
    assert shapes == {"messages, linked": "o", "one message": "v", "sums over 50": "s", "sums over all": "*"}


TWINS = {"PMF, federated": "PMF, unfederated"}


def rows():
    errors = {"PMF, unfederated": (0.74, 0.76), "PMF, federated": (0.75, 0.77)}
    return gather(
        RunRecord(
            id=f"{group} {fold}", group=group, data="d", task="test", status="done", fold=fold, metrics={"mae": error}
        )
        for group, of_folds in errors.items()
        for fold, error in enumerate(of_folds)
    )


def test_md_and_stdr_stand_beside_the_federated_row():
    asked = ["mae", "md:mae", "stdr:mae"]
    unfederated, federated = compared(rows(), asked, None, TWINS)
    assert federated.mean("md:mae") == pytest.approx(0.01 / 0.75 * 100)
    assert federated.mean("stdr:mae") == pytest.approx(0.02 / 0.75 * 100)
    assert federated.mean("mae") == pytest.approx(0.76)
    assert unfederated.mean("md:mae") is None


def test_md_needs_to_know_what_is_compared():
    with pytest.raises(SettingError):
        compared(rows(), ["md:mae"], None, {})
