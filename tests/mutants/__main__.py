"""Try a sample of mutants, and show how many were killed."""

import json
import time
from collections import Counter
from pathlib import Path

import click

from tests.mutants.making import Mutant, sample
from tests.mutants.running import Copy


def show(results):
    """Folders with their numbers."""
    mutants = Counter(Path(mutant.file).parent.as_posix() for mutant in results)
    killed = Counter(Path(mutant.file).parent.as_posix() for mutant, killer in results.items() if killer)
    click.echo("| folder | mutants | killed |\n|---|---|---|")
    for folder in sorted(mutants):
        click.echo(f"| `{folder}` | {mutants[folder]} | {killed[folder]} |")
    click.echo(f"| all | {mutants.total()} | {killed.total()} |")


@click.command
@click.argument("folder", type=Path)
@click.option("--mutants", default=200)
@click.option("--seed", default=1)
def main(folder, mutants, seed):
    """Try the mutants that have no result yet, and show the table."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = Copy(folder.resolve())
    wanted = sample(tree.tree, mutants, seed)
    with (folder / "results.jsonl").open("a+") as file:
        file.seek(0)
        known = {Mutant(*result["mutant"]): result["killer"] for result in map(json.loads, file)}
        for number, mutant in enumerate(wanted, 1):
            if mutant not in known:
                start = time.monotonic()
                known[mutant] = tree.killer(mutant)
                file.write(json.dumps({"mutant": mutant, "killer": known[mutant]}) + "\n")
                file.flush()
                before = " ".join((tree.tree / mutant.file).read_bytes()[mutant.start : mutant.end].decode().split())
                change = f"{mutant.file}:{mutant.line} {before[:50]!r} -> {mutant.text[:50]!r}"
                fate = f"killed by {known[mutant]}" if known[mutant] else "SURVIVED"
                click.echo(f"{number} ({time.monotonic() - start:.0f} s) {change} {fate}")
    show({mutant: known[mutant] for mutant in wanted})


if __name__ == "__main__":
    main()
