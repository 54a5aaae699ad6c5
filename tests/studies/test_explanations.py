"""What explains a difference from a paper: only a note whose evidence holds, and tests that are such evidence."""

import numpy as np
import pytest
from scipy.stats import poisson
from tests.studies.small_results import line

import federank as fr
from federank.data.datasets import KNOWN
from federank.data.splits import mirrored, split_temporal
from federank.errors import DataError
from federank.methods.registry import recommender_class
from federank.studies.documents import packaged
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


def as_in_the_papers(path):
    """Users with 20 interactions or more, each one's newest fifth held out."""
    return split_temporal(fr.load(str(path)).keep_users(20))


@pytest.fixture(scope="module")
def amazon(real_data):
    return as_in_the_papers(real_data / "amazon-digital-music" / "AmazonDigitalMusic.tsv.gz")


@pytest.fixture(scope="module")
def italy(real_data):
    return fr.load(str(real_data / "foursquare-italy" / "Italy.tsv.gz")).keep_users(20)


@pytest.fixture(scope="module")
def movielens(real_data):
    return as_in_the_papers(real_data / "ml-1m" / "ml-1m.zip")


def expected_hits(split, *, with_what_users_have=False):
    """How many of ten items a user, drawn from those in training, are in the test part on average."""
    train, test = split.train, split.test
    known = np.bincount(train.items, minlength=train.n_items) > 0
    can_be_hit = np.bincount(test.users[known[test.items]], minlength=train.n_users)
    candidates = known.sum() - (0 if with_what_users_have else np.bincount(train.users, minlength=train.n_users))
    return float((10 * can_be_hit / candidates).sum())


def likely(hits, expected):
    """Whether this many hits, or a number that is as far from what is expected, come in one of twenty draws or more."""
    return min(poisson.cdf(hits, expected), poisson.sf(hits - 1, expected)) > 0.05


def test_random_on_amazon_is_a_handful_of_lucky_guesses(amazon):
    guesses = 10 * amazon.train.n_users
    assert guesses == 18_350
    assert round(0.00005 * guesses) == 1  # the paper's precision
    assert expected_hits(amazon) == pytest.approx(2, abs=0.3)
    assert likely(1, expected_hits(amazon))


def test_random_on_italy_is_a_handful_of_lucky_guesses(italy):
    for split in (split_temporal(italy), split_temporal(mirrored(italy))):
        guesses = 10 * split.train.n_users
        assert guesses == 13_530
        assert round(0.00030 * guesses) == 4  # the paper's precision
        assert 1.5 < expected_hits(split) < 3.5
        assert likely(4, expected_hits(split))


def test_random_on_movielens_is_of_lists_that_may_hold_what_the_user_has(movielens):
    guesses = 10 * movielens.train.n_users
    paper = 0.00871
    assert expected_hits(movielens, with_what_users_have=True) / guesses == pytest.approx(paper, rel=0.03)
    assert expected_hits(movielens) / guesses > 1.1 * paper


def test_ties_move_the_coverage_of_user_knn_on_amazon(amazon):
    popular, rare = (
        fr.evaluate(fr.UserKNN(k=60, fill=True).fit(split.train), split).means
        for split in (with_items_in_order(amazon, sign * amazon.train.popularity) for sign in (-1, 1))
    )
    assert popular["item_coverage@10"] == pytest.approx(3_900, rel=0.03)
    assert rare["item_coverage@10"] == pytest.approx(5_000, rel=0.03)
    assert popular["gini_diversity@10"] == pytest.approx(0.030, abs=0.001)
    assert rare["gini_diversity@10"] == pytest.approx(0.042, abs=0.001)
    assert popular["precision@10"] == pytest.approx(rare["precision@10"], rel=0.05)


def with_items_in_order(split, order):
    """The same split with its items numbered in this order: of tied items the first is listed."""
    number = np.empty(split.train.n_items, dtype=np.int64)
    number[np.argsort(order, kind="stable")] = np.arange(split.train.n_items)
    parts = (fr.Interactions.from_columns(part.users, number[part.items]) for part in (split.train, split.test))
    return fr.split_given(*parts)


def test_coverage_at_bpr_mfs_rate_on_amazon_grows_with_pi(amazon):
    found, shares = {}, {}
    for pi in (0.2, 0.6, 1.0):
        model = fr.fit("fpl", amazon, triples=1, learning_rate=0.05, pi=pi, epochs=20, seed=1)
        found[pi] = fr.evaluate(model, amazon).means
        listed = np.sort(np.bincount(model.recommend(n=10).items.ravel()))[::-1]
        shares[pi] = listed[:10].sum() / listed.sum()
    coverage = [found[pi]["item_coverage@10"] for pi in (0.2, 0.6, 1.0)]
    assert coverage == sorted(coverage)
    assert coverage[0] < 0.9 * 349 < 349 < 0.9 * coverage[-1]  # the paper's
    assert coverage[1] == pytest.approx(349, rel=0.1)
    assert found[0.6]["precision@10"] == pytest.approx(0.0061, rel=0.1)  # the paper's, at the paper's coverage
    # Figure 3: whatever is sent, a few items take about as much of the lists.
    assert 0.3 < min(shares.values()) < max(shares.values()) < 0.55


@pytest.mark.slow
def test_at_one_rate_for_all_precision_on_italy_peaks_early_and_coverage_grows_with_pi(italy):
    # FPL (2020), Figures 2 and 3, for sFPL+: the paper has one rate for all, and its best pi is .2.
    split = split_temporal(mirrored(italy))
    found = []
    for pi in (0.1, 0.4, 1.0):
        model = fr.fit("fpl", split, triples="mean", learning_rate=0.005, pi=pi, epochs=15, seed=1)
        found.append(fr.evaluate(model, split).means)
    precision, coverage = ([means[name] for means in found] for name in ("precision@10", "item_coverage@10"))
    assert precision == sorted(precision, reverse=True)
    assert precision[-1] < 0.9 * precision[0]
    assert coverage == sorted(coverage)
    assert coverage[0] < 0.5 * coverage[-1]


def test_italys_file_has_homes_early_in_the_histories(italy):
    is_home = np.array(["Home (private)" in italy.categories.of(item) for item in range(italy.n_items)])[italy.items]
    order = np.lexsort((italy.times, italy.users))
    users, at_home = italy.users[order], is_home[order]
    starts = np.searchsorted(users, np.arange(italy.n_users + 1))
    place = (np.arange(len(users)) - starts[users]) / (np.diff(starts)[users] - 1)
    assert place[at_home].mean() == pytest.approx(0.374, abs=0.01)


def test_librarything_has_no_times_and_is_split_at_random():
    entry = next(one for one in packaged()["federank-table2"]["data"] if one["name"] == "librarything")
    assert entry["split"]["way"] == "random"
    books = fr.Interactions.from_columns([1, 1, 2], ["a", "b", "a"], ratings=[8, 6, 10])
    with pytest.raises(DataError, match="time"):
        split_temporal(books)
    assert "without times" in KNOWN["librarything"].how_to_obtain


def test_pfedrec_gains_from_never_drawing_what_is_held_out(real_data):
    data = fr.load(str(real_data / "ml-100k" / "ml-100k.zip"))
    split = fr.split_leave_last_out(data.take(data.users < 200))
    ours, theirs = (
        fr.evaluate(
            recommender_class("pfedrec")(rounds=20, leak=leak).with_held_out(split.test).fit(split.train),
            split,
            negatives=99,
        ).means["sampled_hit_rate@10"]
        for leak in (False, True)
    )
    assert theirs > ours + 0.1
