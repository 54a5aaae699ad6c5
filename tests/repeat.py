"""Run the fast suite several times on a busy machine, and list every test that fails: `python -m tests.repeat`."""

import os
import re
import subprocess
import sys
import time
from collections import Counter

import click

SPIN = "while True: pass"
SUITE = ("-m", "pytest", "-q", "-n", "auto", "-m", "not slow", "--hypothesis-profile=quick", "-p", "no:cacheprovider")


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--runs", default=10, show_default=True)
@click.option("--load", default=8, show_default=True, help="Processes that only compute beside the suite.")
@click.argument("pytest_arguments", nargs=-1)
def main(runs, load, pytest_arguments):
    """Run the fast suite RUNS times; the exit code is 1 where a run has a failure."""
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(load)]
    failures: Counter[str] = Counter()
    green = 0
    try:
        for run in range(1, runs + 1):
            start = time.monotonic()
            ended = subprocess.run(
                [sys.executable, *SUITE, *pytest_arguments], stdout=subprocess.PIPE, text=True, check=False
            )
            green += ended.returncode == 0
            failures.update(re.findall(r"^(?:FAILED|ERROR) (\S+)", ended.stdout, re.MULTILINE))
            summary = ended.stdout.strip().rpartition("\n")[2]
            click.echo(f"run {run}: {time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.1f}, {summary}")
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    for test, count in failures.most_common():
        click.echo(f"{count} of {runs} runs: {test}")
    click.echo(f"{green} of {runs} runs without a failure")
    sys.exit(green < runs)


if __name__ == "__main__":
    main()
