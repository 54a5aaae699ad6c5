"""`federank demo`: the whole story on a synthetic city, one step after the other.

Each step says what it does and shows what came of it. Nothing is read, fetched or written.
"""

from __future__ import annotations

import click


@click.command()
@click.option("--seed", type=click.IntRange(min=0), metavar="S", default=1, show_default=True, help="Seed of the city.")
def demo(seed: int) -> None:
    """Build a synthetic city, look at it, and split it for training.

    Nothing is fetched or written: the city is made up on the spot, and no real person or place is in it.

    \b
    Example:
      federank demo
    """
    from federank.cli.tables import new_table, show, show_statistics
    from federank.data.city import city
    from federank.data.splits import split_temporal
    from federank.data.statistics import statistics

    click.echo("1. A city. It is synthetic: made-up people check in at made-up places.\n")
    data = city(seed=seed)
    show_statistics(statistics(data))

    click.echo("2. A split, as the papers make it: of everybody with 20 check-ins or more,")
    click.echo("   the newest fifth is for the test, and a fifth of the rest for validation.\n")
    split = split_temporal(data.keep_users(min_interactions=20), test=0.2, validation=0.2)
    table = new_table("Part", "Interactions>", "People>", "Places>")
    for name, part in (("train", split.train), ("validation", split.validation), ("test", split.test)):
        if part is not None:
            held = part.compact()
            table.add_row(name, f"{len(held):,}", f"{held.n_users:,}", f"{held.n_items:,}")
    show(table)
    click.echo("Next: your own data, `federank data stats FILE`; or `federank data list`.")
