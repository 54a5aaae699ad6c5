"""Compiled functions that are kept between runs, and never outlive their sources.

Numba keeps machine code beside the file of the function it belongs to, and renews it when that file changes. But
our kernels call functions of other files: after an edit there, Numba would go on running the old code. So the
code is kept in a folder named after a digest of every source file that a kernel may be made of (models, protocol,
engines, and whatever else speaks of `compiled`), the versions of Numba and of Python, and the processor: change any of
them and the folder is another one.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import llvmlite.binding
import numba
import platformdirs

Function = TypeVar("Function", bound=Callable[..., Any])

_KERNEL_PACKAGES = {"models", "protocol", "engines"}
_KEPT_GENERATIONS = 16
_ONE_AT_A_TIME = threading.Lock()


@cache
def code_folder() -> str:
    """Where machine code for these very sources is kept."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        content = source.read_bytes()
        if source.relative_to(package).parts[0] in _KERNEL_PACKAGES or b"compiled" in content:
            digest.update(source.relative_to(package).as_posix().encode())
            digest.update(content)
    features = llvmlite.binding.get_host_cpu_features().flatten()
    for part in (str(package), numba.__version__, sys.version, llvmlite.binding.get_host_cpu_name(), features):
        digest.update(part.encode())
    home = Path(platformdirs.user_cache_dir("federank")) / "compiled"
    folder = home / digest.hexdigest()[:20]
    if not folder.is_dir():
        _forget_old_generations(home)
    return str(folder)


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
        settings = {"error_model": "numpy", "fastmath": {"contract", "nsz"}, "nogil": True, "cache": True, **options}
        settings["_nrt"] = allocates
        # Numba finds kept code by the function alone: the same function compiled in two ways needs two folders.
        way = "-".join(sorted(name for name, value in (options | {"allocates": allocates}).items() if value))
        # The folder is a setting of the whole process: two threads that import kernels at once must not swap theirs.
        with _ONE_AT_A_TIME:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(Path(code_folder()) / way)
            try:
                return numba.njit(**settings)(function)
            finally:
                numba.config.CACHE_DIR = before

    return compile_later if function is None else compile_later(function)


def _forget_old_generations(home: Path) -> None:
    """Remove machine code of sources long gone, all but the youngest few folders."""
    if not home.is_dir():
        return
    by_age = sorted((folder for folder in home.iterdir() if folder.is_dir()), key=lambda f: f.stat().st_mtime)
    for folder in by_age[: max(0, len(by_age) - _KEPT_GENERATIONS)]:
        shutil.rmtree(folder, ignore_errors=True)
