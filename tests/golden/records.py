"""Records of values: digests of integers and bytes, projections of floats.

Integers and bytes are compared by SHA-256. Floats differ in their last bits between processors: compilers fuse products
and sums, and BLAS adds in another order. So floats are compared by shape, norm and `PROBES` projections onto fixed
random directions, to a relative error of `TOLERANCE`. Their SHA-256 is recorded too: it tells which are bit-identical.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("golden.json")
PROBES, TOLERANCE = 4, 2e-5


def record(values):
    """What is stored of an entry's values."""
    return {name: _record_of(value) for name, value in sorted(values.items())}


def _record_of(value):
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    array = np.asarray(value)
    exact = array.dtype.kind in "biu"
    plain = np.ascontiguousarray(array, dtype="<i8" if exact else "<f4")
    stored = {"shape": list(array.shape), "sha256": hashlib.sha256(plain.tobytes()).hexdigest()}
    if not exact:
        numbers = plain.astype(np.float64).ravel()
        # Raw words of a bit generator: NumPy guarantees that they stay the same.
        drawn = np.random.PCG64(7).random_raw(PROBES * numbers.size).reshape(PROBES, -1)
        probes = (drawn * 2.0**-63 - 1) @ numbers
        stored |= {"norm": _rounded(np.linalg.norm(numbers)), "probes": [_rounded(probe) for probe in probes]}
    return stored


def _rounded(number):
    return float(f"{number:.9g}")


def differences(found, expected):
    """The names of values that are not the recorded ones."""
    names = sorted(found.keys() | expected.keys())
    return [name for name in names if not _equal(found.get(name), expected.get(name))]


def _equal(found, expected):
    if found == expected:
        return True
    if not (found and expected and "probes" in found and "probes" in expected) or found["shape"] != expected["shape"]:
        return False
    allowed = TOLERANCE * expected["norm"]
    pairs = [(found["norm"], expected["norm"]), *zip(found["probes"], expected["probes"], strict=True)]
    return all(abs(one - other) <= allowed for one, other in pairs)


def read():
    """All records, by entry."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def write(records):
    """Store records: one value per line."""
    lines = []
    for name, values in records.items():
        inside = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items())
        lines.append(f"{json.dumps(name)}: {{\n{inside}\n}}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
