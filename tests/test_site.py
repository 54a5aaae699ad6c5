"""The documentation as a site: it builds without a warning, works offline, and its notebook runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the site is built with MkDocs: install federank[docs]")
    place = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return place


@pytest.mark.slow
def test_every_page_is_there_and_every_link_leads_somewhere(site):
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert {"index.html", "reference.html", "first-steps.html", "extending.html"} <= set(pages)
    for page, text in pages.items():
        if page == "404.html":
            continue
        for target in re.findall(r'(?:href|src)="([^"#?]+)', text):
            if not target.startswith(("http", "mailto:", "data:")):
                assert (site / page).parent.joinpath(target).exists(), f"{page} leads to {target}"


@pytest.mark.slow
def test_a_page_fetches_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//', text), path
        assert not re.search(r'<link[^>]+rel="(?:stylesheet|preconnect)"[^>]+href="(?:https?:)?//', text), path


@pytest.mark.slow
def test_the_reference_has_every_name_of_the_front_door(site):
    import federank

    text = (site / "reference.html").read_text(encoding="utf-8")
    missing = [name for name in federank.__all__ if f".{name}" not in text]
    assert not missing


@pytest.mark.slow
def test_the_notebook_runs_and_holds_its_answers(tmp_path):
    cells = json.loads((ROOT / "docs" / "first-steps.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] for cell in code)
    program = "\n".join("".join(cell["source"]) for cell in code)
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
