"""The documentation as a site: it builds without a warning, works offline, and its notebook runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"


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
def test_generated_references_have_every_command_route_and_metric(site):
    from federank.cli import COMMANDS
    from federank.service.server.http.routes import ADMIN_ROUTES, PUBLIC_ROUTES
    from federank.studies.metric_words import KNOWN

    pages = {name: (site / f"{name}.html").read_text(encoding="utf-8") for name in ("commands", "rest", "metrics")}
    assert not [name for name in COMMANDS if f'id="federank-{name}"' not in pages["commands"]]
    assert not [entry.path for entry in (*PUBLIC_ROUTES, *ADMIN_ROUTES) if entry.path not in pages["rest"]]
    assert not [name for name in KNOWN if f"<code>{name}</code>" not in pages["metrics"]]


def executed(folder, cells):
    """The cells of a notebook after `make notebook`, which runs this script."""
    script = folder / "docs" / "_site" / "execute.py"
    script.parent.mkdir(parents=True)
    script.write_text((ROOT / "docs" / "_site" / "execute.py").read_text(encoding="utf-8"))
    notebook = folder / "docs" / "first-steps.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    # A kernel of the user's own, of a Python that is gone, is none of this notebook's business.
    kernel = folder / "jupyter" / "kernels" / "python3" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": [str(folder / "no-python")], "display_name": "old", "language": "python"}))
    env = os.environ | {"JUPYTER_PATH": str(folder / "jupyter")}
    ran = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def cell_of(source):
    return {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": [], "source": source}


def test_a_notebook_is_executed_by_this_python(tmp_path):
    sources = ("import sys\nprint(sys.prefix)\nprint('second')", "import federank\nprint(federank.__file__)")
    first, second = executed(tmp_path, [cell_of(source) for source in sources])
    assert [output["text"] for output in first["outputs"]] == [[f"{sys.prefix}\n", "second\n"]]
    import federank

    assert [output["text"] for output in second["outputs"]] == [[f"{federank.__file__}\n"]]
    assert (first["execution_count"], second["execution_count"]) == (1, 2)


@pytest.mark.slow
def test_the_notebook_holds_the_answers_of_its_code(tmp_path):
    cells = json.loads((ROOT / "docs" / "first-steps.ipynb").read_text(encoding="utf-8"))["cells"]
    for now, kept in zip(executed(tmp_path, cells), cells, strict=True):
        answers = [
            "".join(line for output in cell.get("outputs", []) for line in output["text"]) for cell in (now, kept)
        ]
        words, wanted_words = (re.sub(NUMBER, "#", answer) for answer in answers)
        numbers, wanted = ([float(number) for number in re.findall(NUMBER, answer)] for answer in answers)
        assert words == wanted_words
        assert numbers == pytest.approx(wanted, rel=0.02, abs=0.002)
