"""How long the program takes to start: `import federank` and `federank --help`, beside an empty Python.

    python benchmarks/starting.py [--runs 8]

Processor seconds, in turns, the least of all runs: on a busy machine the clock tells of others.
benchmarks/evaluation.py tells the same with its own figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from typing import Any

STARTS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import federank": [sys.executable, "-c", "import federank"],
    "federank --help": [sys.executable, "-m", "federank", "--help"],
}


def measure_starting(runs: int) -> dict[str, Any]:
    """Processor seconds of each way to start, the least of all runs, and what it takes beyond an empty Python."""
    found: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(runs):
        for name, words in STARTS.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            found[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    least = {name: round(min(seconds), 3) for name, seconds in found.items()}
    beyond = {name: round(seconds - least["python -c pass"], 3) for name, seconds in least.items()}
    return {"starting_seconds": least, "starting_beyond_python": beyond}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8)
    print(json.dumps(measure_starting(parser.parse_args().runs), indent=2))
