"""`federank demo`: the whole story on a synthetic city, one step after the other.

Each step says what it does and shows what came of it. Nothing is read, fetched or written.
"""

from __future__ import annotations

from typing import Any

import click

from federank.recommenders.registry import recommender_class

CONTENDERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Random", "random", {}),
    ("Most popular (centralised)", "popular", {}),
    ("Item-kNN (centralised)", "itemknn", {}),
    ("BPR-MF (centralised)", "bpr", {"epochs": 60}),
    ("FPL, all likes may leave", "fpl", {"epochs": 60, "pi": 1.0}),
    ("FPL, 30 % of the time", "fpl", {"epochs": 60, "pi": 0.3}),
    ("FPL, 10 % of the time", "fpl", {"epochs": 60, "pi": 0.1}),
    ("FPL, never", "fpl", {"epochs": 60, "pi": 0.0}),
)
"""What is trained, in the order of the table."""


@click.command()
@click.option("--seed", type=click.IntRange(min=0), metavar="S", default=1, show_default=True, help="Seed of the city.")
def demo(seed: int) -> None:
    """Build a synthetic city, split it, train on it with and without a federation, and compare.

    Nothing is fetched or written: the city is made up on the spot, and no real person or place is in it.

    \b
    Example:
      federank demo
    """
    from federank.cli.tables import new_table, show, show_statistics
    from federank.data.city import city
    from federank.data.splits import split_temporal
    from federank.data.statistics import statistics
    from federank.evaluation.evaluate import evaluate

    click.echo("1. A city. It is synthetic: made-up people check in at made-up places.\n")
    data = city(seed=seed)
    show_statistics(statistics(data))

    click.echo("2. A split, as the papers make it: of everybody with 20 check-ins or more,")
    click.echo("   the newest fifth is for the test.\n")
    split = split_temporal(data.keep_users(min_interactions=20), test=0.2)
    table = new_table("Part", "Interactions>", "People>", "Places>")
    for name, part in (("train", split.train), ("test", split.test)):
        held = part.compact()
        table.add_row(name, f"{len(held):,}", f"{held.n_users:,}", f"{held.n_items:,}")
    show(table)

    click.echo("3. Learning. Centralised methods see every history. FPL sees none: devices send")
    click.echo("   gradients, and those of places their owner likes only with probability pi.")
    click.echo("   (The first run compiles for some seconds.)\n")
    table = new_table("Method", "Precision@10>", "nDCG@10>", "Places shown>")
    for label, method, settings in CONTENDERS:
        model = recommender_class(method)(**settings).fit(split.train)
        means = evaluate(model, split, at=10).means
        scores = (f"{means['precision@10']:.4f}", f"{means['ndcg@10']:.4f}", f"{means['item_coverage@10']:,.0f}")
        table.add_row(label, *scores)
    show(table)
    click.echo("A low pi is no promise of privacy: docs/protocol.md says what it does not hide.")
    click.echo("Next: .venv/bin/federank train fpl --data city --pi 0.3 --out runs/city")
