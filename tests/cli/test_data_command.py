"""`federank data ...` as a user types it."""

import gzip
import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.program import program
from tests.commands import run, told
from tests.data.publisher import serving

from federank.data.datasets import KNOWN
from federank.errors import BadFile, DataError, DownloadError, SettingError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Each test has a data folder of its own, and stands in a folder of its own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("FEDERANK_DATA", str(tmp_path / "sets"))
    return tmp_path / "sets"


def complaint(kind, *words):
    """The sentence of a command that must fail with this kind of error."""
    result = run(*words)
    assert type(result.exception) is kind, result.output + repr(result.exception)
    return str(result.exception)


def ratings_file(path, users=4, items=6):
    """Every user has every item, one after the other; a table with a header."""
    rows = [f"u{user}\ti{item}\t{1 + item % 5}\t{1000 + item}" for user in range(users) for item in range(items)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["user_id\titem_id\trating\tutc", *rows]) + "\n", encoding="utf-8")
    return path


def rows_of(path):
    """The (user, item) pairs of a written part, below its header; none may come twice."""
    header, *lines = [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]
    assert header[:2] == ("user", "item")
    pairs = {(line[0], line[1]) for line in lines}
    assert len(pairs) == len(lines)
    return pairs


def files_in(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def test_the_list_names_every_known_set_and_says_which_are_here(folder):
    ratings_file(folder / "amazon-digital-music" / "AmazonDigitalMusic.tsv")
    rows = {row["name"]: row for row in json.loads(told("data", "list", "--json"))}
    assert list(rows) == list(KNOWN)
    made_up = [name for name, known in KNOWN.items() if known.generated]
    assert [name for name, row in rows.items() if row["installed"]] == [*made_up, "amazon-digital-music"]
    table = told("data", "list")
    assert all(name in table for name in KNOWN)
    assert str(folder) in table


@pytest.fixture
def publisher(monkeypatch):
    """A publisher on loopback, from whom ml-1m is fetched in this test."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(b"PK what a publisher sends") as server:
        md5 = hashlib.md5(server.content).hexdigest()
        moved = replace(KNOWN["ml-1m"], address=server.address, size=len(server.content), md5=md5)
        monkeypatch.setitem(KNOWN, "ml-1m", moved)
        yield server


def test_get_fetches_prints_the_terms_and_the_second_time_says_it_is_here(publisher, folder):
    first = run("data", "get", "ml-1m")
    assert first.exit_code == 0
    assert (folder / "ml-1m" / "ml-1m.zip").read_bytes() == publisher.content
    assert "do not redistribute" in " ".join(first.stdout.split())
    assert "Harper and J. A. Konstan" in " ".join(first.stdout.split())
    assert "MovieLens 1M" in first.stderr  # the progress bar
    assert "already here" in told("data", "get", "ml-1m")
    assert len(publisher.requests) == 1


def test_get_refuses_what_is_not_the_known_file_and_names_the_other_way(publisher, folder):
    publisher.content = publisher.content[::-1]
    message = complaint(DownloadError, "data", "get", "ml-1m")
    assert "MD5" in message
    assert "federank data get ml-1m --from FILE" in message
    assert files_in(folder) == []
    assert not (folder / "ml-1m").exists()


def test_get_installs_a_copy_at_hand(publisher, folder, tmp_path):
    (tmp_path / "my copy.zip").write_bytes(publisher.content)
    told("data", "get", "ml-1m", "--from", tmp_path / "my copy.zip")
    assert files_in(folder) == ["ml-1m/ml-1m.zip"]
    told("data", "get", "ml-1m", "--from", tmp_path / "my copy.zip")
    assert publisher.requests == []


def test_stats_without_a_name_are_those_of_the_city():
    numbers = json.loads(told("data", "stats", "--json"))
    assert (numbers["users"], numbers["items"], numbers["interactions"]) == (1_000, 1_500, 40_000)
    assert numbers["density"] == pytest.approx(40_000 / 1_500_000)
    assert "synthetic" in told("data", "stats").splitlines()[0]


def test_stats_of_a_file_take_filters_and_columns(tmp_path):
    table = tmp_path / "log.csv"
    table.write_text("what,who,when\na,1,5\nb,1,6\na,2,7\n", encoding="utf-8")
    numbers = json.loads(told("data", "stats", table, "--users", "who", "--items", 0, "--times", "when", "--json"))
    assert (numbers["users"], numbers["items"], numbers["interactions"]) == (2, 2, 3)
    assert numbers["period"]["first"] == 5
    columns = ("--users", "who", "--items", "what")
    assert json.loads(told("data", "stats", table, *columns, "--min-interactions", 2, "--json"))["interactions"] == 2
    assert json.loads(told("data", "stats", table, *columns, "--times", "none", "--json"))["period"] is None


def test_names_out_of_the_data_have_no_power_over_the_terminal(tmp_path):
    table = tmp_path / "places.tsv"
    table.write_text("user\titem\tcategory\n1\ta\t[/red]\x1b[31mBar\n2\ta\t[/red]\x1b[31mBar\n", encoding="utf-8")
    shown = told("data", "stats", table)
    assert "[/red]\N{REPLACEMENT CHARACTER}[31mBar" in shown
    assert "\x1b" not in shown


def test_a_city_written_to_a_file_is_read_back_as_it_was(tmp_path):
    size = ("--people", 50, "--places", 60, "--checkins", 700, "--seed", 3)
    told("data", "city", *size, "--out", tmp_path / "city.tsv")
    numbers = json.loads(told("data", "stats", tmp_path / "city.tsv", "--json"))
    assert (numbers["users"], numbers["items"], numbers["interactions"]) == (50, 60, 700)
    assert "700" in told("data", "city", *size)


def test_the_record_of_a_split_holds_settings_counts_and_fingerprint(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    words = ("--min-interactions", 2, "--random", 0.5, "--validation", 0.4, "--seed", 9, "--out", "out")
    told("data", "split", table, *words)
    record = json.loads(Path("out/split.json").read_text(encoding="utf-8"))
    assert record["rows"] == {"train.tsv": 8, "validation.tsv": 4, "test.tsv": 12}
    expected = {"min_interactions": 2, "way": "random", "random": 0.5, "validation": 0.4, "seed": 9}
    assert expected.items() <= record.items()
    assert (record["users"], record["items"], record["interactions"]) == (4, 6, 24)
    assert len(record["fingerprint"]) == 32


@pytest.mark.parametrize(
    ("way", "test_rows"),
    [(("--leave-last-out",), 4), (("--global-temporal", 0.5), 12), (("--random", 0.2), 4), (("--temporal", 0.2), 4)],
)
def test_every_way_of_splitting_keeps_all_rows_and_repeats_none(tmp_path, way, test_rows):
    table = ratings_file(tmp_path / "ratings.tsv")
    told("data", "split", table, *way, "--out", "out")
    train, test = rows_of(Path("out/train.tsv")), rows_of(Path("out/test.tsv"))
    assert len(test) == test_rows
    assert not train & test
    assert len(train | test) == 24


def test_folds_have_a_folder_each_and_test_every_row_once(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    told("data", "split", table, "--folds", 3, "--seed", 2, "--out", "out")
    tests = [rows_of(Path(f"out/fold-{number}/test.tsv")) for number in (1, 2, 3)]
    assert [len(test) for test in tests] == [8, 8, 8]
    assert len(set.union(*tests)) == 24
    told("data", "split", table, "--folds", 3, "--seed", 2, "--out", "again")
    assert rows_of(Path("again/fold-1/test.tsv")) == tests[0]


def test_a_bare_split_has_no_header(tmp_path):
    told("data", "split", ratings_file(tmp_path / "ratings.tsv"), "--temporal", 0.5, "--bare", "--out", "out")
    assert Path("out/train.tsv").read_text(encoding="utf-8").startswith("u0\ti0\t1.0\t1000\n")


def test_an_earlier_split_is_replaced_entirely(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    told("data", "split", table, "--folds", 3, "--out", "out")
    told("data", "split", table, "--temporal", 0.5, "--out", "out")
    assert files_in(Path("out")) == ["split.json", "test.tsv", "train.tsv"]
    assert sorted(path.name for path in Path().iterdir()) == ["out"]


@pytest.mark.parametrize("file", ["notes.txt", "train.tsv", "deep/notes.txt"])
def test_a_folder_that_holds_anything_else_is_left_alone(tmp_path, file):
    kept = Path("out") / file
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    table = ratings_file(tmp_path / "ratings.tsv")
    assert file in complaint(DataError, "data", "split", table, "--temporal", 0.5, "--out", "out")
    assert files_in(Path("out")) == [file]
    assert kept.read_text() == "mine"


def test_a_file_added_to_an_earlier_split_is_not_lost(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    told("data", "split", table, "--temporal", 0.5, "--out", "out")
    Path("out/results.csv").write_text("mine")
    assert "results.csv" in complaint(DataError, "data", "split", table, "--temporal", 0.2, "--out", "out")
    assert len(rows_of(Path("out/test.tsv"))) == 12


def test_the_folder_one_stands_in_is_not_pulled_away(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    assert "name another" in complaint(DataError, "data", "split", table, "--temporal", 0.5, "--out", ".")


def test_a_split_that_cannot_be_made_leaves_the_earlier_one(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    told("data", "split", table, "--temporal", 0.5, "--out", "out")
    before = {file: (Path("out") / file).read_bytes() for file in files_in(Path("out"))}
    complaint(SettingError, "data", "split", table, "--temporal", 1.5, "--out", "out")
    complaint(DataError, "data", "split", table, "--min-interactions", 7, "--temporal", 0.5, "--out", "out")
    assert {file: (Path("out") / file).read_bytes() for file in files_in(Path("out"))} == before
    assert sorted(path.name for path in Path().iterdir()) == ["out"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "No way of splitting is chosen"),
        (("--temporal", 0.2, "--folds", 5), "2 ways of splitting are chosen"),
        (("--folds", 5, "--validation", 0.2), "leave --validation out"),
        (("--leave-last-out", "--validation", 0.2), "give --validation 1"),
    ],
)
def test_a_split_needs_exactly_one_way_that_fits(words, sentence):
    assert sentence in complaint(SettingError, "data", "split", "city", *words, "--out", "out")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("data", "stats", "no-such-file.csv"), "no-such-file.csv"),
        (("data", "split", "city", "--out", "out"), "give exactly one of"),
        (("data", "split", "city", "--temporal", "much", "--out", "out"), "not a valid float"),
    ],
)
def test_a_mistake_ends_with_exit_code_2(words, sentence):
    answer = program(*words)
    assert answer.returncode == 2
    assert sentence in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
    assert list(Path().iterdir()) == []


def test_results_go_to_stdout_alone():
    answer = program("data", "stats", "city", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["users"] == 1_000


def test_help_answers_without_the_heavy_packages():
    heavy = ("numba", "polars", "scipy", "matplotlib", "jax", "rich", "numpy")
    program = (
        "import sys\nfrom federank.cli import federank\n"
        "for words in ([], ['data'], ['data', 'stats'], ['data', 'split'], ['demo']):\n"
        "    federank([*words, '--help'], standalone_mode=False)\n"
        f"sys.exit(', '.join(set({heavy!r}) & set(sys.modules)) or 0)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stderr) == (0, "")


def examples(words):
    """The commands shown in a help text."""
    lines = [line.split() for line in told(*words, "--help").splitlines()]
    return [line[1:] for line in lines if line[:1] == ["federank"]]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("data",), ("data", "list"), ("data", "stats"), ("data", "split"), ("data", "city")])
def test_the_examples_of_every_help_work_as_they_stand(words):
    shown = examples(words)
    assert shown
    for example in shown:
        told(*example)


def test_get_refuses_a_copy_with_another_sum(folder, tmp_path):
    (tmp_path / "copy.zip").write_bytes(b"something else")
    message = complaint(BadFile, "data", "get", "ml-1m", "--from", tmp_path / "copy.zip")
    assert str(folder / "ml-1m" / "ml-1m.zip") in message
    assert files_in(folder) == []


def test_get_reads_a_copy_whose_sum_is_unknown_before_installing_it(folder, tmp_path):
    told("data", "get", "librarything", "--from", ratings_file(tmp_path / "books.tsv"))
    assert files_in(folder) == ["librarything/LibraryThing.tsv"]
    assert json.loads(told("data", "stats", "librarything", "--json"))["interactions"] == 24
    (tmp_path / "garbage.tsv").write_bytes(bytes(range(256)) * 10)
    complaint(BadFile, "data", "get", "foursquare-italy", "--from", tmp_path / "garbage.tsv")
    assert files_in(folder) == ["librarything/LibraryThing.tsv"]


def test_get_does_not_hide_one_copy_behind_another(folder, tmp_path):
    told("data", "get", "librarything", "--from", ratings_file(tmp_path / "books.tsv"))
    (tmp_path / "books.tsv.gz").write_bytes(gzip.compress((tmp_path / "books.tsv").read_bytes()))
    message = complaint(DataError, "data", "get", "librarything", "--from", tmp_path / "books.tsv.gz")
    assert "LibraryThing.tsv" in message


def test_stats_keep_likes_and_cores_where_asked(tmp_path):
    table = ratings_file(tmp_path / "ratings.tsv")
    likes = json.loads(told("data", "stats", table, "--min-rating", 5, "--json"))
    assert (likes["interactions"], likes["ratings"]) == (4, None)
    assert "Nothing of" in complaint(DataError, "data", "stats", table, "--k-core", 7)


@pytest.mark.slow
def test_stats_draw_a_picture_where_asked(tmp_path):
    told("data", "stats", "city", "--plot", tmp_path / "city.png")
    assert (tmp_path / "city.png").read_bytes().startswith(b"\x89PNG")
