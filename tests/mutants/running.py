"""Tests against mutants, in a copy of the tree."""

import os
import random
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

from tests.mutants.making import ROOT

TEST_SECONDS, STAGE_SECONDS, MOST_SLOW = 300, 1800, 4
COMPILING = ("tests/agreement", "tests/golden", "tests/methods", "tests/simulation")
OPTIONS = ("-q", "-x", "--hypothesis-profile=quick", "-p", "no:cacheprovider")


@cache
def stages(file):
    """What may detect a fault of a source file: (a marker, test files), the nearest first and slow tests last."""
    module, own = file.removeprefix("src/").removesuffix(".py").replace("/", "."), Path(file)
    named = re.compile(rf"{re.escape(module)}\b|from {re.escape(module.rpartition('.')[0])} import .*\b{own.stem}\b")
    tests = {test.relative_to(ROOT).as_posix(): test.read_text() for test in sorted(ROOT.glob("tests/**/*.py"))}
    naming = {name for name, text in tests.items() if named.search(text)}
    helpers = [name.removesuffix(".py").replace("/", ".") for name in naming if "/test_" not in name]
    through = {name for name, text in tests.items() if any(re.search(rf"{helper}\b", text) for helper in helpers)}
    folders = [f"tests/{folder.as_posix()}/" for folder in own.relative_to("src/federank").parents[:-1]]
    folder = next((folder for folder in folders if (ROOT / folder).is_dir()), "tests/methods/")
    beside = {name for name in tests if name.startswith(folder)}
    near = naming | {name for name in beside if own.stem in name}
    far = through | beside | {name for name in tests if name.startswith(("tests/golden/", "tests/agreement/"))}
    near_first = sorted(near, key=lambda name: (own.stem not in name, not name.startswith(folder), name))
    found = ("not slow", near_first), ("not slow", sorted(far - near)), ("slow", near_first[:MOST_SLOW])
    return [(marker, [name for name in names if "/test_" in name]) for marker, names in found]


def run_tests(folder, marker, tests):
    """Run tests of a tree in this process, which has libraries imported and nothing of the product."""
    os.setsid()
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": "src", "XDG_CACHE_HOME": str(folder.parent / "cache")}
    sys.path[:0] = [str(folder / "src"), str(folder)]
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "federank")]:
        del sys.modules[name]
    for stream in (1, 2):
        os.dup2(os.open(folder.parent / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), stream)
    os._exit(pytest.main([*OPTIONS, "-m", marker, f"--timeout={TEST_SECONDS}", "--timeout-method=thread", *tests]))


class Copy:
    """A copy of the tree in which one file at a time is changed."""

    def __init__(self, folder):
        self.folder, self.broken, self.processes = folder / "tree", set(), get_context("forkserver")
        self.processes.set_forkserver_preload(["numba", "polars", "pytest", "scipy.sparse"])
        ignored = shutil.ignore_patterns(".git", ".venv", "node_modules", "build", "dist", ".*_cache", "__pycache__")
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ROOT, self.folder, ignore=ignored)
        (self.folder / "node_modules").symlink_to(ROOT / "node_modules")
        if failed := self.failure("not slow", COMPILING):
            sys.exit(f"Without any mutant {failed} fails; see {folder / 'output.txt'}.")

    def failure(self, marker, tests):
        """The first test that fails; nothing where all pass, or take too long together."""
        chosen = [*tests, *(f"--deselect={one}" for one in self.broken)]
        running = self.processes.Process(target=run_tests, args=(self.folder, marker, chosen))
        running.start()
        running.join(STAGE_SECONDS)
        ended = running.exitcode
        if ended is None:
            os.killpg(running.pid, signal.SIGKILL)
        if ended in (None, 0, 5):  # 5: all tests are slow
            return None
        output = (self.folder.parent / "output.txt").read_text()
        return re.search(r"^(?:FAILED|ERROR|\++|ImportError) (.+?)(?: - | \+|$)", output, re.MULTILINE)[1]

    @contextmanager
    def changed(self, mutant):
        """The tree with this mutant; what is compiled meanwhile is not kept."""
        path, compiled = self.folder / mutant.file, set(self.folder.parent.glob("cache/federank/kernels/*/*"))
        source, times = path.read_bytes(), path.stat()
        path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
        os.utime(path, (times.st_atime, times.st_mtime + random.randrange(1, 10**6)))  # so that no .pyc is taken for it
        try:
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for folder in set(self.folder.parent.glob("cache/federank/kernels/*/*")) - compiled:
                shutil.rmtree(folder)

    def killer(self, mutant):
        """A test that fails with this mutant and passes without it, and whether it is slow; nothing where none does."""
        for marker, tests in stages(mutant.file):
            while tests:
                with self.changed(mutant):
                    failed = self.failure(marker, tests)
                if failed is None:
                    break
                if "::" not in failed or self.failure(marker, [failed]) is None:
                    return f"{marker}: {failed}"
                self.broken.add(failed)
        return None
