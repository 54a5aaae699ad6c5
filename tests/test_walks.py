"""The two walks of docs/design.md, gone: every file that they name is passed."""

import re
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from federank.studies.report import write_report
from tests.service.federations import PATIENT, in_a_loop, serving, some_update
from tests.studies.worlds import carried_out, small_data, small_study

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "src" / "federank"

pytestmark = pytest.mark.slow


def named(start, end):
    """The files that the page names between two of its phrases."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.py)`", text.split(start)[1].split(end)[0])
    assert len(files) == len(set(files)) > 10, "each once"
    return files


@contextmanager
def passed():
    """The files of which a function is called meanwhile, in any thread."""
    files = set()

    def note(frame, event, _):
        if event == "call":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def test_a_row_of_a_csv_goes_the_way_that_is_told_up_to_the_table_of_a_report(tmp_path):
    study = small_study(
        tmp_path,
        data=[{"name": "visits", "source": small_data(tmp_path), "filters": {"k_core": 2}}],
        model=[{"group": "FPL", "method": "fpl", "settings": {"factors": 4}}],
        seeds=[1],
        choose={"metric": "precision@5", "epochs": 1},
    )
    with passed() as files:
        carried_out(study, tmp_path / "results")
        write_report(tmp_path / "results", markdown=tmp_path / "report.md")
    told = named("*One row of a CSV", "*One Update")
    assert [file for file in told if str(HOUSE / file) not in files] == []


@in_a_loop
async def test_an_update_goes_the_way_that_is_told_up_to_the_next_broadcast(tmp_path):
    rounds = {"target": 1, "over_selection": 1.0} | PATIENT
    with passed() as files:
        async with serving(f"sqlite:///{tmp_path}/federation.sqlite", rounds) as running:
            device = await running.device()
            await device.take_part(some_update(1))
            await running.version(1)
            await device.task(await device.ticket(), have=0)
    told = named("*One Update", "## Why")
    assert [file for file in told if str(HOUSE / file) not in files] == []
