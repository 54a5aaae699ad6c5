"""`federank recommend DIR`: what a trained model suggests, to one person, to a new one, or to everyone."""

from __future__ import annotations

import json
from pathlib import Path

import click

from federank.errors import SettingError


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--user", metavar="ID", help="Someone the model has learnt from.")
@click.option(
    "--like", "likes", metavar="ITEM", multiple=True, help="Someone new who likes this item; repeat it for more."
)
@click.option("--all", "everyone", is_flag=True, help="Everyone; needs --out.")
@click.option("-n", "n", type=int, metavar="N", default=10, show_default=True, help="How many items.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write `user item score` lines; .csv, .parquet or .json too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def recommend(
    model: Path, user: str | None, likes: tuple[str, ...], everyone: bool, n: int, out: Path | None, as_json: bool
) -> None:
    """What a trained model suggests: the best items that a person does not have yet.

    A new person's vector is learnt on the spot from the items they like; the model is not changed.

    \b
    Examples:
      federank recommend runs/city --user 17 -n 5
      federank recommend runs/city --like 3 --like 42
      federank recommend runs/city --all --out recommendations.tsv
    """
    from federank.methods.model_folder import load_model
    from federank.methods.new_users import can_enrol, enrol

    if (user is not None) + bool(likes) + everyone != 1:
        raise SettingError("Say for whom: --user ID, or --like ITEM for someone new, or --all; one of them.")
    loaded = load_model(model)
    if everyone:
        if out is None:
            raise SettingError("Everyone's recommendations are many; name a file for them with --out FILE.")
        table = loaded.recommend(n=n)
        table.write(out)
        click.echo(f"{len(table):,} people's recommendations are in {out}.")
        return
    if likes:
        if not can_enrol(loaded):
            raise SettingError(f"A {loaded.name} model cannot take someone new who likes items; from Python see enrol.")
        listed = enrol(loaded, likes).recommend(n)
    else:
        listed = loaded.recommend(str(user), n)
    if as_json:
        click.echo(json.dumps([recommended._asdict() for recommended in listed]))
        return
    if not listed:
        click.echo("There is nothing left to recommend: this person has the full catalogue.")
        return
    from federank.cli.tables import new_table, plain, show

    titled = any(recommended.title for recommended in listed)
    shown = new_table("Rank>", "Item", *(["Title"] if titled else []), "Score>")
    for rank, (item, score, title) in enumerate(listed, start=1):
        shown.add_row(str(rank), plain(str(item)), *([plain(title)] if titled else []), f"{score:.3f}")
    show(shown)
