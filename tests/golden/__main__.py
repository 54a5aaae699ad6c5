"""Compare all entries with their records, or record again what differs."""

import sys

import click

from tests.golden.messages import ENTRIES as MESSAGES
from tests.golden.messages import PAGE_ENTRIES, node
from tests.golden.models import ENTRIES as MODELS
from tests.golden.records import differences, read, record, write


def main(arguments):
    """The exit code: 1 where an entry differs from its record."""
    writes, chosen = "--write" in arguments, tuple(word for word in arguments if word != "--write")
    known, all_entries = read(), MODELS | MESSAGES | PAGE_ENTRIES
    changed, identical = [], 0
    for name in all_entries if node() else MODELS | MESSAGES:
        values = record(all_entries[name]())
        identical += values == known.get(name)
        wrong = differences(values, known.get(name, {}))
        if wrong and name.startswith(chosen or ""):
            changed.append(name)
            click.echo(f"{name}: {', '.join(wrong)}")
            known[name] = values
    click.echo(f"{len(changed)} entries differ; {identical} of {len(all_entries)} are bit-identical.")
    if not node():
        click.echo("Node.js was not found, so the page's entries were left out.")
    if writes:
        write({name: known[name] for name in all_entries if name in known})
    return 0 if writes or not changed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
