"""Compiled code is kept between processes, and never outlives the sources it was made from."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

import federank
from federank._numerics.compiling import _forget_old_generations, code_folder, compiled, sources_of
from federank.privacy.policy import words_of_items

FIRST_WORD = """
import numpy as np
from federank.privacy.policy import words_of_items
print(words_of_items(1, np.zeros(1, np.int64), np.zeros(1, np.int32))[0], WORD)
"""
KEPT_NOWHERE = FIRST_WORD.replace("WORD", "type(words_of_items._cache).__name__")
FIRST_NUMBER = FIRST_WORD.replace("WORD", "sum(words_of_items.stats.cache_hits.values())")


def first_number(package: Path, cache: Path) -> tuple[int, int]:
    """A number that a kernel draws with functions of another file, and whether its machine code was found."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", FIRST_NUMBER]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    number, hits = answer.stdout.split()
    return int(number), int(hits)


@pytest.mark.parametrize("home", ["/dev/null", "/proc/nowhere"], ids=["no folder", "not to be made"])
def test_kernels_work_without_a_home(home):
    environment = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"} | {"HOME": home}
    command = [sys.executable, "-c", KEPT_NOWHERE]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    number, kept = answer.stdout.split()
    assert int(number) == words_of_items(1, np.zeros(1, np.int64), np.zeros(1, np.int32))[0]
    assert kept == "NullCache", "nothing is kept beside the sources, where an edit would not be noticed"


@pytest.mark.slow
def test_an_edit_in_another_file_is_noticed_and_no_edit_is_not_compiled_again(tmp_path):
    package = tmp_path / "federank"
    shutil.copytree(Path(federank.__file__).parent, package)
    before, found = first_number(package, tmp_path)
    assert found == 0
    assert first_number(package, tmp_path) == (before, 1)
    draws = package / "federation" / "rng.py"
    draws.write_text(draws.read_text().replace("_mixed(a, b, c, d, 10, 26)", "_mixed(a, b, c, d, 9, 26)"))
    after, found = first_number(package, tmp_path)
    assert found == 0
    assert after != before
    # What the kernel does not use may change as it likes.
    (package / "privacy" / "ledger.py").write_text("")
    assert first_number(package, tmp_path) == (after, 1)


def test_the_sources_of_a_kernel_are_all_that_it_imports_and_nothing_else():
    package = Path(federank.__file__).parent
    found = {path.relative_to(package).as_posix() for path in sources_of(package / "methods" / "fpl" / "kernels.py")}
    # Directly; through another file; from a package by the name of a module.
    assert {"methods/fpl/kernels.py", "methods/fpl/method.py", "_numerics/rows.py", "federation/rng.py"} <= found
    assert not any(path.startswith(("service/", "cli/", "studies/")) for path in found)
    assert "__init__.py" not in found


def test_whatever_python_imports_for_a_kernel_is_among_its_sources():
    """A kernel's module is imported alone, and what comes along with it must be among its sources."""
    package = Path(federank.__file__).parent
    program = (
        "import sys, importlib; sys.modules['federank'] = type(sys)('federank');"
        f"sys.modules['federank'].__path__ = [{str(package)!r}];"
        "importlib.import_module('federank.methods.fpl.simulation');"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('federank.')), sep='\\n')"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {Path(line) for line in answer.stdout.split("\n") if line and Path(line).name != "__init__.py"}
    assert imported <= sources_of(package / "methods" / "fpl" / "simulation.py")


def test_one_function_compiled_in_two_ways_is_kept_as_two():
    def doubled(x):
        return 2 * x

    one, other = compiled(doubled), compiled(doubled, allocates=False)
    assert one._cache.cache_path != other._cache.cache_path


def test_threads_that_import_kernels_at_once_keep_all_of_them_in_the_one_folder():
    def kept_in(_):
        def doubled(x):
            return 2 * x

        return Path(compiled(doubled)._cache.cache_path)

    before, switches = numba.config.CACHE_DIR, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            folders = set(threads.map(kept_in, range(400)))
    finally:
        sys.setswitchinterval(switches)
    assert {folder.parent for folder in folders} == {Path(code_folder(__file__)) / "allocates"}
    assert before == numba.config.CACHE_DIR


def test_pruning_survives_a_folder_that_another_process_removes(tmp_path, monkeypatch):
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    real, gone = Path.stat, tmp_path / "7"

    def stat(self, **options):
        if self == gone and gone in seen:
            raise FileNotFoundError(self)
        seen.add(self)
        return real(self, **options)

    seen = set()
    monkeypatch.setattr(Path, "stat", stat)
    _forget_old_generations(tmp_path)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 16
