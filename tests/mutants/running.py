"""Tests against mutants, in a copy of the tree."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context

import coverage
import pytest

from tests.mutants.making import ROOT

TEST_SECONDS, MUTANT_SECONDS = 60, 240
MOST_TESTS, MOST_FILES = 60, 24
OPTIONS = (
    "-q",
    "-x",
    "-m",
    "not slow",
    "--hypothesis-profile=quick",
    "-p",
    "no:cacheprovider",
    "--timeout-method=thread",
)
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "build", "dist", ".*_cache", "__pycache__")


def run_tests(folder, tests, broken):
    """Run tests of a tree in this process, which has libraries imported and nothing of the product."""
    os.setsid()
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": "src", "XDG_CACHE_HOME": str(folder.parent / "cache")}
    sys.path[:0] = [str(folder / "src"), str(folder)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "federank")]:
        del sys.modules[name]
    for stream in (1, 2):
        os.dup2(os.open(folder.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), stream)
    os._exit(pytest.main([*OPTIONS, f"--timeout={TEST_SECONDS}", *(f"--deselect={one}" for one in broken), *tests]))


class Copy:
    """A copy of the tree in which one file at a time is changed."""

    def __init__(self, folder):
        self.tree, self.work, self.processes = folder / "tree", folder / "work", get_context("forkserver")
        self.processes.set_forkserver_preload(["numba", "polars", "pytest", "scipy.sparse"])
        if not self.tree.is_dir():
            shutil.copytree(ROOT, self.tree, ignore=LEFT_OUT)
            (self.tree / "node_modules").symlink_to(ROOT / "node_modules")
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.tree, self.work, symlinks=True)
        if not any(folder.glob("seconds.*")):
            self._record(folder)
        self.broken, self.seconds, self.tests = set(), {}, {}
        for times in folder.glob("seconds.*"):
            self.seconds |= json.loads(times.read_text())
        for data in folder.glob("lines.*"):
            self._read(data)

    def _record(self, folder):
        """Run the fast suite once, and record which test runs which line."""
        environment = {**os.environ, "RECORDING": str(folder), "PYTHONPATH": "src:."}
        suite = ["-n", "2", "-m", "not slow", "--hypothesis-profile=quick", "-p", "tests.mutants.recording"]
        subprocess.run([sys.executable, "-m", "pytest", *suite], cwd=self.work, env=environment, check=False)

    def _read(self, file):
        """Add the tests of each line that one process recorded."""
        data = coverage.CoverageData(str(file))
        data.read()
        for path in data.measured_files():
            lines = self.tests.setdefault("src/federank/" + path.rpartition("src/federank/")[2], {})
            for line, names in data.contexts_by_lineno(path).items():
                lines.setdefault(line, set()).update(name for name in names if name in self.seconds)

    @cache  # noqa: B019
    def importing(self, file):
        """The test files that import a source file."""
        module, stem = file.removeprefix("src/").removesuffix(".py").replace("/", "."), file[:-3].rpartition("/")[2]
        named = re.compile(rf"{re.escape(module)}\b|{re.escape(module.rpartition('.')[0])} import .*\b{stem}\b")
        texts = {test.relative_to(self.tree).as_posix(): test.read_text() for test in self.tree.glob("tests/**/*.py")}
        direct = {name for name, text in texts.items() if named.search(text)}
        helpers = [name[:-3].replace("/", ".") for name in direct if "/test_" not in name]
        through = {name for name, text in texts.items() if any(re.search(rf"{one}\b", text) for one in helpers)}
        return {name for name in direct | through if "/test_" in name}

    def chosen(self, mutant):
        """What may kill a mutant: the nearest and fastest tests that run its line, and then whole files."""
        near = self.importing(mutant.file)
        running = self.tests.get(mutant.file, {}).get(mutant.line, set())
        folder, _, stem = mutant.file[:-3].replace("src/federank", "tests").rpartition("/")

        def distance(name):
            file = name.partition("::")[0]
            beside = file.startswith(f"{folder}/")
            return not (beside and stem in file), not beside, file not in near, self.seconds.get(name, 0), name

        ordered = sorted(running, key=distance)
        # Compiled lines, and those that another process runs, have no coverage: they meet whole files.
        recorded = {name.partition("::")[0] for name in self.seconds} if running else set()
        beside = {file.relative_to(self.tree).as_posix() for file in self.tree.glob("tests/**/test_*.py")}
        beside = {name for name in beside if not running and name.startswith((f"{folder}/", "tests/agreement/"))}
        files = sorted((near | beside) - recorded, key=distance)
        chosen = [*ordered[:MOST_TESTS], *files[:MOST_FILES]]
        return [name for name in chosen if name not in self.broken]

    def failure(self, tests):
        """The first test that fails, or "crash" where pytest itself ends; nothing where all pass or time is up."""
        (self.work.parent / "output.txt").unlink(missing_ok=True)
        running = self.processes.Process(target=run_tests, args=(self.work, tests, self.broken))
        running.start()
        running.join(MUTANT_SECONDS)
        ended = running.exitcode
        if ended is None:
            os.killpg(running.pid, signal.SIGKILL)
        if ended in (None, 0, 5):  # 5: no test ran
            return None
        output = (self.work.parent / "output.txt").read_text()
        found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
        return found[1] if found else "crash"

    @contextmanager
    def changed(self, mutant):
        """The tree with this mutant; what is compiled meanwhile is not kept."""
        path, kernels = self.work / mutant.file, "cache/federank/kernels/*/*"
        source, times, compiled = path.read_bytes(), path.stat(), set(self.work.parent.glob(kernels))
        path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
        os.utime(path, (times.st_atime, times.st_mtime + random.randrange(1, 10**6)))  # so that no .pyc is taken for it
        try:
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for folder in set(self.work.parent.glob(kernels)) - compiled:
                shutil.rmtree(folder)

    def killer(self, mutant):
        """A test that fails with this mutant and passes without it; nothing where none does."""
        while tests := self.chosen(mutant):
            with self.changed(mutant):
                failed = self.failure(tests)
            if failed is None:
                return None
            without = self.failure([failed] if "::" in failed else tests)
            if without is None:
                return failed
            if "::" not in without:
                return None  # pytest itself ends without the mutant too, or a test takes too long here
            self.broken.add(without)
        return None
