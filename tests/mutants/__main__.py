"""Try a sample of mutants, and show how many were killed."""

import json
from pathlib import Path

import click

from tests.mutants.making import GROUPS, ROOT, Mutant, sample
from tests.mutants.running import Copy


def show(results):
    """Groups with their numbers, and every mutant that survived."""
    click.echo(f"{'':20} mutants  killed  by slow tests  survived")
    for group in (*GROUPS, "all"):
        killers = [killer or "" for mutant, killer in results.items() if group in (mutant.group, "all")]
        slow, survived = sum(killer.startswith("slow") for killer in killers), killers.count("")
        click.echo(f"{group:20} {len(killers):7} {len(killers) - survived:7} {slow:14} {survived:9}")
    for mutant in [mutant for mutant, killer in results.items() if not killer]:
        before = (ROOT / mutant.file).read_bytes()[mutant.start : mutant.end].decode()
        click.echo(f"  {mutant.file}:{mutant.line}  {' '.join(before.split())[:60]!r} -> {mutant.text[:60]!r}")


@click.command
@click.argument("folder", type=Path)
@click.option("--mutants", default=200)
@click.option("--seed", default=1)
def main(folder, mutants, seed):
    """Try the mutants that have no result yet, and show the table."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted, tree = sample(mutants, seed), Copy(folder.resolve())
    with (folder / "results.jsonl").open("a+") as file:
        file.seek(0)
        known = {Mutant(*result["mutant"]): result["killer"] for result in map(json.loads, file)}
        for mutant in wanted:
            if mutant not in known:
                known[mutant] = tree.killer(mutant)
                file.write(json.dumps({"mutant": mutant, "killer": known[mutant]}) + "\n")
                file.flush()
    show({mutant: known[mutant] for mutant in wanted})


if __name__ == "__main__":
    main()
