"""`federank card DIR`: a model card in Markdown: data, settings, metrics, and what left the devices."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--at", type=click.IntRange(min=1), metavar="N", default=10, show_default=True, help="Length of lists.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file.")
def card(model: Path, at: int, out: Path | None) -> None:
    """What a trained model is, as a page of Markdown for anyone who gets it.

    \b
    Example:
      federank card runs/city --out card.md
    """
    from federank.evaluation.card import model_card
    from federank.files import atomic_write

    text = model_card(model, at=at)
    if out is None:
        click.echo(text, nl=False)
        return
    atomic_write(out, text)
    click.echo(f"Written: {out}")
