"""The documentation works when pasted: every command and every piece of Python in it runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUNNABLE = [page for page in PAGES if re.search(r"^```(sh|python)$", page.read_text(encoding="utf-8"), re.MULTILINE)]


def blocks(page):
    return re.findall(r"^```(sh|python)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_what_a_page_says_to_type_works(page, tmp_path):
    for kind, text in blocks(page):
        if kind == "python":
            command = [sys.executable, "-c", text]
        else:
            lines = [line for line in text.splitlines() if not line.startswith("make ")]
            script = "\n".join(lines).replace("federank ", f"'{sys.executable}' -m federank ")
            command = ["sh", "-euc", script]
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, f"{text}\n{answer.stdout}\n{answer.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
