"""Compiled functions that are kept between runs, and never outlive their sources.

Numba keeps machine code beside the file of the function it belongs to, and renews it when that file changes. But
our kernels call functions of other files: after an edit there, Numba would go on running the old code. So the
code of a file's kernels is kept in a folder named after a digest of that file and of all files of ours that it
imports, directly or through others, the versions of Numba and of Python, and the processor: change any of them and the
folder is another one. An edit elsewhere leaves it as it is, and nothing is compiled again.

The folder is in the user's cache. Where it cannot be written, as for a service account without a home, nothing is kept
and every process compiles what it calls.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import llvmlite.binding
import numba
import platformdirs

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]
_IMPORTED = re.compile(
    r"^\s*(?:from\s+(federank[\w.]*)\s+import\s+(\([^)]*\)|.*)|import\s+(federank[\w.]*))", re.MULTILINE
)
_KEPT_GENERATIONS = 16
_ONE_AT_A_TIME = threading.Lock()


@cache
def code_folder(file: str) -> str:
    """Where machine code is kept for the functions of this very file, with all that it imports as it is now."""
    digest = hashlib.sha256()
    for source in sorted(sources_of(Path(file))):
        digest.update(source.as_posix().encode())
        digest.update(source.read_bytes())
    features = llvmlite.binding.get_host_cpu_features().flatten()
    for part in (numba.__version__, sys.version, llvmlite.binding.get_host_cpu_name(), features):
        digest.update(part.encode())
    home = Path(platformdirs.user_cache_dir("federank")) / "kernels" / _name(Path(file))
    folder = home / digest.hexdigest()[:20]
    if is_writable(home) and not folder.is_dir():
        _forget_old_generations(home)
    return str(folder)


@cache
def is_writable(folder: Path) -> bool:
    """Whether files can be kept in a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def sources_of(file: Path) -> set[Path]:
    """A file and all files of ours that it imports, directly or through others."""
    result, left = {file}, [file]
    while left:
        new = _imported_by(left.pop()) - result
        result |= new
        left += new
    return result


@cache
def _imported_by(file: Path) -> frozenset[Path]:
    """The files of ours that a file's import statements name, wherever in the file they stand."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:  # written at a prompt or in a notebook: nothing else has its name
        return frozenset()
    names = set()
    for module, members, alone in _IMPORTED.findall(text):
        names |= {module or alone} | {f"{module}.{member}" for member in re.findall(r"\w+", members)}
    return frozenset(path for name in names if (path := _file_of(name)) is not None)


def _file_of(module: str) -> Path | None:
    """Where a module of ours is; nothing for the name of a function, or federank/__init__.py, which no kernel uses."""
    place = _PACKAGE.parent / module.replace(".", "/")
    result = [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]
    return result[0] if result and result[0] != _PACKAGE / "__init__.py" else None


def _name(file: Path) -> str:
    inside = file.is_relative_to(_PACKAGE)
    return ".".join(file.relative_to(_PACKAGE).with_suffix("").parts) if inside else file.stem


@overload
def compiled(function: Function) -> Function: ...
@overload
def compiled(*, allocates: bool = True, **options: Any) -> Callable[[Function], Function]: ...
@overload
def compiled(function: Function, *, allocates: bool = True, **options: Any) -> Function: ...
def compiled(function: Function | None = None, *, allocates: bool = True, **options: Any) -> Any:
    """Compile a function with Numba on first call, and keep the machine code for the next process.

    Arithmetic is as written, but that a product and a sum may be fused; division by zero gives infinity, as in NumPy.
    A function that makes no arrays can say so (`allocates=False`): then none of its arrays' references are counted,
    which in a short loop with branches is most of the time.
    """

    def compile_later(function: Function) -> Any:
        # Numba finds kept code by the function alone: the same function compiled in two ways needs two folders.
        way = "-".join(sorted(name for name, value in (options | {"allocates": allocates}).items() if value))
        folder = Path(code_folder(function.__code__.co_filename)) / way
        settings = {"error_model": "numpy", "fastmath": {"contract", "nsz"}, "nogil": True, **options}
        settings |= {"_nrt": allocates, "cache": is_writable(folder)}
        # The folder is a setting of the process: two threads that import kernels at once must not swap theirs.
        with _ONE_AT_A_TIME:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder)
            try:
                return numba.njit(**settings)(function)
            finally:
                numba.config.CACHE_DIR = before

    return compile_later if function is None else compile_later(function)


def _forget_old_generations(home: Path) -> None:
    """Remove machine code of sources long gone, all but the youngest few folders."""
    by_age = sorted((folder for folder in home.iterdir() if folder.is_dir()), key=_modified)
    for folder in by_age[: max(0, len(by_age) - _KEPT_GENERATIONS)]:
        shutil.rmtree(folder, ignore_errors=True)


def _modified(folder: Path) -> float:
    """When a folder was changed; one that another process has just removed counts as the youngest."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


# Threads for compiled code: the same work, divided by number.


def at_once(work: Callable[[int], None], workers: int) -> None:
    """Run the same work in this thread and in as many others as it takes; each gets its number."""
    others = [threading.Thread(target=work, args=(worker,)) for worker in range(1, workers)]
    for other in others:
        other.start()
    work(0)
    for other in others:
        other.join()
