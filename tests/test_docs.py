"""The documentation works when pasted: every command and every piece of Python in it runs."""

import re
import shlex
from itertools import takewhile

import click
import pytest

from federank.cli import federank
from tests.pasted import ROOT, Terminal, blocks

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "docs/results/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]

NOT_PASTED = {
    "docs/seasons.md": "needs a server and clients; test_operating.py and client/test_seasons.py run its commands",
    "docs/results/README.md": "a paper's study takes hours, on data that tests may not have",
}
"""Pages that are not pasted, with the reason."""
MACHINE = ("# As root", "# As a user with sudo")
"""How blocks begin that set a machine up: tests/deploy/test_operators_guide.py types them."""
NOT_RUN = {
    "ray start": "starts services of a machine that outlive a test; tests/two_nodes.py has a cluster of two machines",
}
"""Lines that are not run, with the reason."""

QUICK = {"README.md", "CONTRIBUTING.md", "methods.md", "data.md", "operating.md"}
"""Pages that take seconds: those of `make test`. The others are slow."""

MAKE = {
    "demo": "packaging/test_clone.py",
    "visit": "packaging/test_clone.py",
    "docs": "packaging/test_clone.py",
    "release": "packaging/test_clone.py",
    "bench": "packaging/test_clone.py",
    "scorecard": "test_scorecard.py",
    "test": "these tests",
    "test-all": "these tests",
    "check": "runs beside these tests, in .ci/run",
}
"""Where every target of make that the documentation names is exercised."""


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def pasted(page):
    """The blocks of a page that are pasted."""
    if name_of(page) in NOT_PASTED:
        return []
    return [block for block in blocks(page) if block.kind in ("sh", "python") and not block.text.startswith(MACHINE)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page.name in QUICK else pytest.mark.slow) for page in PAGES if pasted(page)],
    ids=name_of,
)
def test_what_a_page_says_to_type_works(page, tmp_path):
    with Terminal(tmp_path) as terminal:
        for block in pasted(page):
            terminal.paste(block, *NOT_RUN)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_stand_in_blocks_that_are_run(page):
    assert {block.kind for block in blocks(page)} <= {"sh", "python", "toml"}
    assert page.name in ("operating.md", "helper.md") or not any(
        block.text.startswith(MACHINE) for block in blocks(page)
    )
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ {4,}(?:\$ |# )?(?:federank|make|pip|python|ray|sudo) .*$", text, re.MULTILINE)


def commands_in(page):
    """Every command line of ours in a page, in blocks and in the text."""
    shell = "\n".join(block.text for block in blocks(page) if block.kind == "sh").replace("\\\n", " ")
    in_blocks = re.findall(r"^(?:.*bin/)?(federank [a-z].*)$", shell, re.MULTILINE)
    in_text = re.findall(r"`(?:\S*/)?(federank [a-z][^`]+)`", page.read_text(encoding="utf-8"))
    return [*in_blocks, *(line for line in in_text if "..." not in line)]


def unknown_flags(line):
    """The flags of a command line that the command does not have; the command itself where there is none."""
    _, *words = shlex.split(re.split(r"[;|&>]", line)[0], comments=True)
    command, context = federank, click.Context(federank)
    names = list(takewhile(lambda word: not word.startswith("-"), words))
    while isinstance(command, click.Group) and (names or command.name == "serve"):
        names = names or ["frugal"]
        inner = command.get_command(context, names.pop(0))
        if inner is None:
            break
        command, context = inner, click.Context(inner, info_name=inner.name)
    known = {flag for option in command.get_params(context) for flag in (*option.opts, *option.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_that_a_page_names_exist(page):
    assert {line: unknown for line in commands_in(page) if (unknown := unknown_flags(line))} == {}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_that_a_page_names_exist(page):
    for program, flags in re.findall(r"`python (benchmarks/\w+\.py)([^`]*)`", page.read_text(encoding="utf-8")):
        text = (ROOT / program).read_text(encoding="utf-8")
        assert all(f'"{flag}"' in text for flag in flags.split() if flag.startswith("--")), (program, flags)


def test_every_target_of_make_that_is_named_is_exercised():
    named = {target for page in PAGES for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text("utf-8"), re.M)}
    assert named <= set(MAKE)
    for place in MAKE.values():
        assert " " in place or (ROOT / "tests" / place).is_file()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
