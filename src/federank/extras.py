"""Extras: packages that only some of the product needs, such as JAX for Mult-VAE or a web server for the service.

Whatever needs one asks here before it imports it, so that a missing package is an error that says what to install.
"""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec

from federank.errors import MissingExtra

PACKAGES = {
    "cluster": ("ray",),
    "privacy": ("dp_accounting",),
    "service": (
        *("cryptography.hazmat.primitives.hpke", "httptools", "httpx", "prometheus_client", "psycopg", "segno"),
        *("starlette", "threadpoolctl", "uvicorn", "uvloop"),
    ),
    "tracking": ("mlflow", "tensorboardX"),
    "vae": ("jax", "optax"),
}
"""What each extra of pyproject.toml installs, by the names that are imported."""


def need(extra: str, purpose: str, *packages: str) -> None:
    """Raise `MissingExtra` where packages of an extra, by default all, are not installed; nothing is imported."""
    missing = [package for package in packages or PACKAGES[extra] if not is_installed(package)]
    if missing:
        names, python = ", ".join(name.partition(".")[0] for name in missing), shlex.quote(sys.executable)
        raise MissingExtra(
            f"{purpose} needs {names} of the extra {extra!r}, and this Python does not have it. "
            f'Install it with: {python} -m pip install "federank[{extra}]"',
            extra=extra,
        )


def is_installed(package: str) -> bool:
    """Whether a package, or a module of one, could be imported."""
    try:
        return find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # the package around a module is missing; a module made by hand
        return False
