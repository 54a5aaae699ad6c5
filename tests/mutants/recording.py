"""A plugin for pytest: records which test runs which line of the product, and how long each test takes."""

import json
import os
import time
from pathlib import Path

import coverage
import pytest

FOLDER = Path(os.environ["RECORDING"])
SECONDS: dict[str, float] = {}
RECORD = coverage.Coverage(data_file=FOLDER / f"lines.{os.getpid()}", source=["src/federank"], config_file=False)


def pytest_configure():
    RECORD.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    RECORD.switch_context(item.nodeid)
    start = time.process_time()
    try:
        return (yield)
    finally:
        SECONDS[item.nodeid] = time.process_time() - start
        RECORD.switch_context("")


def pytest_unconfigure():
    RECORD.stop()
    if SECONDS:  # the process that only distributes tests has none
        RECORD.save()
        (FOLDER / f"seconds.{os.getpid()}.json").write_text(json.dumps(SECONDS))
