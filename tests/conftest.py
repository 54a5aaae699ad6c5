"""What the tests share: real data and programs where there are any, and how examples are generated."""

import asyncio
import gc
import inspect
import os
import shutil
import signal
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# No time limits, and the same examples every time: a test's outcome depends on the code alone. `make check` has fewer.
settings.register_profile("federank", deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("federank"), max_examples=20)
settings.load_profile("federank")

# Ray runs its workers at the lowest priority, where they wait for every other test, and starts one for each core before
# any is needed.
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("RAY_prestart_worker_first_driver", "false")


def pytest_configure() -> None:
    """Programs that tests start can be stopped with Ctrl-C, also where these tests run in the background of a shell."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: the garbage collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; the test is skipped where there is none."""
    folder = Path(os.environ.get("FEDERANK_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
    if not (folder / "ml-1m").exists():
        pytest.skip(f"real data sets are needed, and {folder} does not hold them: set FEDERANK_DATA")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What reads real data sets is slow."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def _program(name: str, found: Path | None) -> Path:
    """A program that tests start; where it is missing they are skipped, or fail if this machine must have it."""
    if found is None:
        message = f"{name} is needed for this test and is not installed"
        if name in os.environ.get("FEDERANK_TESTS_MUST_NOT_SKIP", "").split():
            pytest.fail(message)
        pytest.skip(message)
    return found


def _on_path(*names: str) -> Path | None:
    return next((Path(found) for found in map(shutil.which, names) if found), None)


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser."""
    return _program("chromium", _on_path("chromium", "chromium-browser"))


@pytest.fixture(scope="session")
def node() -> Path:
    """JavaScript without a browser."""
    return _program("node", _on_path("node", "nodejs"))


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus's own check of its files."""
    return _program("promtool", _on_path("promtool"))


@pytest.fixture(scope="session")
def axe() -> Path:
    """axe-core, which looks for what keeps people out of a page: one of the tools of package.json."""
    script = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
    return _program("axe-core", script if script.is_file() else None)


@pytest.fixture(scope="session")
def postgresql() -> Path:
    """The folder of PostgreSQL's programs (initdb, postgres, pg_ctl)."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = folders[-1] if folders else _on_path("initdb")
    return _program("postgresql", found and found.parent)
