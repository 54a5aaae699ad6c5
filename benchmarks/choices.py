"""A population of choices: who pays for whom when people share differently in one federation?

    python benchmarks/choices.py [--data ml-100k ml-1m] [--seeds 5] [--epochs 20] [--json] [--figure FILE.svg]

30 % of the people share nothing, 50 % a third of their items per lifetime (fixed-subset), 20 % everything; who belongs
to which
group is drawn with the seed. The federation in which they live together is compared with federations in which
everyone chooses alike, for the very same people: so a difference within a group is not one between people. Each is
trained on two bases (docs/sharing.md): Updates from the full history, as published, and Updates from what is shared
alone, where those who share nothing take no part and recommendations come from home vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import federank as fr
from federank.methods.fpl.recommender import FPL
from federank.methods.sharing import read_choices

METRICS = ("precision@10", "ndcg@10")
GROUPS = {"nothing": (0.3, 0.0), "a third": (0.5, 1 / 3), "everything": (0.2, 1.0)}
BASES = ("history", "shared")


def policies(basis: str, alike: str | None) -> str:
    """The file of choices: these groups, each with its own pi, or all with the pi of one of them."""
    sections = [
        f'[groups."{name}"]\nshare = {share}\npi = {pi if alike is None else GROUPS[alike][1]}\n'
        for name, (share, pi) in GROUPS.items()
    ]
    return f'[default]\nsharing = "fixed-subset"\nbasis = "{basis}"\n' + "".join(sections)


def accuracy(split: Any, basis: str, alike: str | None, seed: int, epochs: int) -> dict[str, dict[str, float]]:
    """Each group's mean metrics in one federation."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.toml"
        path.write_text(policies(basis, alike))
        model = FPL(policies=str(path), epochs=epochs, seed=seed).fit(split.train)
        settings = {"sharing": "fixed-subset", "item_epsilon": None, "basis": basis, "budget": None}
        groups = read_choices(path, settings, np.ones(model.training.n_users), model.training, seed)[1]
    table = fr.evaluate(model, split, at=10, metrics=("precision", "ndcg")).per_user
    users = table["user"].to_numpy()
    found = {}
    for name, members in groups.items():
        theirs = table.filter(np.isin(users, model.user_ids[members]))
        found[name] = {metric: float(theirs[metric].mean()) for metric in METRICS}
    found["everybody"] = {metric: float(table[metric].mean()) for metric in METRICS}
    return found


def federations() -> list[tuple[str, str | None]]:
    """On which basis, and who chooses alike; no one can learn from no one, so on the shared basis not nothing."""
    return [
        (basis, alike) for basis in BASES for alike in (None, *GROUPS) if not (basis == "shared" and alike == "nothing")
    ]


def measure(data: str, seeds: int, epochs: int) -> list[dict[str, Any]]:
    """A line per federation and group: means over seeds, and the deviation of the difference to the mixed one."""
    split = fr.split_temporal(fr.load(data).keep_users(min_interactions=20))
    runs: dict[tuple[str, str | None], list[dict[str, dict[str, float]]]] = {key: [] for key in federations()}
    for seed in range(1, seeds + 1):
        for basis, alike in runs:
            runs[basis, alike].append(accuracy(split, basis, alike, seed, epochs))
            print(f"{data}, seed {seed}: {basis}, {alike or 'mixed'}", file=sys.stderr, flush=True)
    lines = []
    for (basis, alike), found in runs.items():
        for group in (*GROUPS, "everybody"):
            values = {metric: np.array([run[group][metric] for run in found]) for metric in METRICS}
            mixed = np.array([run[group]["precision@10"] for run in runs[basis, None]])
            lines.append(
                {"data": data, "basis": basis, "federation": "mixed" if alike is None else alike, "group": group}
                | {metric: float(value.mean()) for metric, value in values.items()}
                | {
                    "seeds": seeds,
                    "deviation": float(values["precision@10"].std()),
                    "difference_to_mixed": float((values["precision@10"] - mixed).mean()),
                    "deviation_of_difference": float((values["precision@10"] - mixed).std()),
                }
            )
    return lines


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Bars of P@10: one panel per data set and basis, a cluster per group, a bar per federation."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "federank"  # the same figure gives the same bytes
    colours = {"mixed": "#1b1f24", "nothing": "#56b4e9", "a third": "#e69f00", "everything": "#009e73"}
    hatches = {"mixed": "", "nothing": "..", "a third": "//", "everything": "xx"}
    names = {name: f"everyone shares {name}" for name in GROUPS} | {"mixed": "all choices together"}
    panels = list(dict.fromkeys((line["data"], line["basis"]) for line in lines))
    rows = list(dict.fromkeys(data for data, _ in panels))
    figure = Figure(figsize=(8.6, 0.7 + 2.6 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(BASES), squeeze=False, sharey="row")
    places = np.arange(len(GROUPS))
    for row, data in enumerate(rows):
        for column, basis in enumerate(BASES):
            axis = axes[row][column]
            here = [line for line in lines if (line["data"], line["basis"]) == (data, basis)]
            kinds = [kind for kind in colours if any(line["federation"] == kind for line in here)]
            for place, kind in enumerate(kinds):
                cells = {line["group"]: line for line in here if line["federation"] == kind}
                axis.bar(
                    places + (place - (len(kinds) - 1) / 2) * 0.2,
                    [cells[group]["precision@10"] for group in GROUPS],
                    0.18,
                    yerr=[cells[group]["deviation"] for group in GROUPS],
                    color=colours[kind],
                    hatch=hatches[kind],
                    edgecolor="white",
                    error_kw={"elinewidth": 0.8, "ecolor": "#5c636b"},
                    label=names[kind],
                )
            axis.set_title(f"{data}: Updates from {'the history' if basis == 'history' else 'what is shared'}", size=10)
            axis.set_xticks(places, [f"{group}\n({GROUPS[group][0]:.0%})" for group in GROUPS], size=9)
            axis.spines[["top", "right"]].set_visible(False)
        axes[row][0].set_ylabel("P@10 of the group", size=9)
    figure.supxlabel("people who share ...", size=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["ml-100k"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw what was found")
    parser.add_argument("--results", type=Path, metavar="FILE", help="draw these lines of JSON instead of measuring")
    asked = parser.parse_args()
    beside = Path(__file__).parents[2] / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("FEDERANK_DATA", str(beside))
    if asked.results is not None:
        lines = [json.loads(line) for line in asked.results.read_text().splitlines()]
    else:
        lines = [line for data in asked.data for line in measure(data, asked.seeds, asked.epochs)]
    for line in lines:
        if asked.json:
            print(json.dumps(line))
        else:
            print(
                f"{line['data']:>10} {line['basis']:>8} {line['federation']:>11} | {line['group']:>11}  "
                f"P@10 {line['precision@10']:.4f}  nDCG@10 {line['ndcg@10']:.4f}  "
                f"to mixed {line['difference_to_mixed']:+.4f} +- {line['deviation_of_difference']:.4f}"
            )
    if asked.figure is not None:
        draw(lines, asked.figure)


if __name__ == "__main__":
    main()
