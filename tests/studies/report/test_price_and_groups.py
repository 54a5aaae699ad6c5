"""Tables of a report: metrics by group, and what differential privacy costs."""

from federank.studies.results import Line
from federank.studies.rows import gather
from federank.studies.run_tables import groups_table, price_table


def line(group, method, precision, **metrics):
    return Line(
        id=group, group=group, data="north", model=method, seed=1, metrics={"precision@10": precision, **metrics}
    )


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


FLOOR, WHOLE = line("Top-Pop", "popular", 0.08), line("Frugal", "frugal", 0.1)


def test_the_price_is_a_share_of_the_gain_over_popularity():
    private = line("Private", "frugal", 0.09, noise_epsilon=1.0, **{"item_coverage@10": 155})
    [row] = texts(price_table(gather([FLOOR, WHOLE, private])))
    assert row[:8] == ["north", "Private", "1", "0.09000", "90%", "80%", "50%", "155"]


def test_without_noise_or_popularity_there_is_no_price():
    private = line("Private", "frugal", 0.09, noise_epsilon=1.0)
    assert price_table(gather([FLOOR, WHOLE])) is None
    assert price_table(gather([WHOLE, private])) is None


def test_groups_have_a_column_each():
    found = line("Frugal", "frugal", 0.1, **{"recall@10/activity-1": 0.25, "recall@10/popularity-4": 0.5})
    [row] = texts(groups_table(gather([found, FLOOR])))
    assert row == ["north", "Frugal", "0.25000", *["-"] * 6, "0.50000"]
    assert groups_table(gather([FLOOR])) is None
