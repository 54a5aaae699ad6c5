"""The price of privacy: what a policy costs in accuracy, and what the best attacker still learns.

    python benchmarks/privacy.py measure ml-100k                          every cell of one data set
    python benchmarks/privacy.py measure amazon --cells "sticky shared"   some cells
    python benchmarks/privacy.py table                                    as Markdown
    python benchmarks/privacy.py draw                                     docs/figures/privacy-price.svg

A cell is a policy, a pi, what the server sees and, for sums, the size of the cohort. Users with 20 interactions or
more, each one's newest fifth held out, T = mean, 20 epochs, seed 1, defaults otherwise; P@10 and item coverage of the
run itself, beside the AUC of the best attack of audit/ on what its owner held back, on a sample of people. What has
been measured is not measured again: results are kept in privacy-results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import federank as fr
from federank.audit.audit import audit_model
from federank.data.splits import Split, split_temporal

HERE = Path(__file__).parent
RESULTS = HERE / "privacy-results.json"
FIGURE = HERE.parent / "docs" / "figures" / "privacy-price.svg"
PLACES = {
    "ml-100k": "ml-100k/ml-100k.zip",
    "amazon": "amazon-digital-music/AmazonDigitalMusic.tsv.gz",
    "italy": "foursquare-italy/Italy.tsv.gz",
    "ml-1m": "ml-1m/ml-1m.zip",
}
POLICIES = {
    "as-published": {},
    "sticky history": {"sharing": "sticky", "basis": "history"},
    "sticky shared": {"sharing": "sticky", "basis": "shared"},
    "deniable 1": {"sharing": "deniable", "epsilon": 1.0},
    "deniable 2": {"sharing": "deniable", "epsilon": 2.0},
    "deniable 4": {"sharing": "deniable", "epsilon": 4.0},
}
MAIN_PI, OTHER_PI = 0.3, (0.1, 0.5)
SINGLE = ("updates",)
COHORTS = ("10", "50", "all")
PEOPLE, EPOCHS = 200, 20
GOAL = 0.02


def cells() -> list[tuple[str, float, str]]:
    """Every (policy, pi, clients a round), the telling ones first."""
    main = [(policy, MAIN_PI, "1") for policy in POLICIES]
    sums = [(policy, MAIN_PI, cohort) for policy in ("sticky shared", "as-published") for cohort in ("50", "all", "10")]
    others = [
        (policy, pi, cohort)
        for pi in OTHER_PI
        for policy, cohort in (
            ("as-published", "1"),
            ("sticky shared", "1"),
            ("sticky shared", "50"),
            ("sticky shared", "all"),
            ("deniable 2", "1"),
        )
    ]
    return [*main[:3], *sums[:2], main[4], *sums[2:], main[3], main[5], *others]


def data_of(name: str) -> Split:
    folder = Path(os.environ.get("FEDERANK_DATA") or HERE.parents[1] / "shared" / "data")
    return split_temporal(fr.load(str(folder / PLACES[name])).keep_users(20))


def measure(name: str, wanted: str, epochs: int) -> None:
    split = data_of(name)
    for policy, pi, clients in cells():
        known = {json.dumps(line["cell"]) for line in results()}
        cell = [name, policy, pi, clients]
        if (wanted and wanted not in f"{policy} {pi} {clients}") or json.dumps(cell) in known:
            continue
        started = time.perf_counter()
        settings = {"pi": pi, "triples": "mean", "epochs": epochs, "clients_per_round": clients, **POLICIES[policy]}
        model = fr.FPL(**settings).fit(split.train)
        means = fr.evaluate(model, split, at=10).means
        line = {
            "cell": cell,
            "epochs": epochs,
            "precision@10": means["precision@10"],
            "item_coverage@10": means["item_coverage@10"],
            "sees": {},
        }
        for sees in SINGLE if clients == "1" else ("sums",):
            [found], about = audit_model(model, sees=sees, people=PEOPLE)
            line["sees"][sees] = {
                "disclosed_share": found.disclosed_share,
                "popularity": found.attacks["popularity"],
                "best": found.best,
                "people": about["people_attacked"],
                "attacks": {attack: marks["auc_held_back"] for attack, marks in found.attacks.items()},
            }
        line["seconds"] = time.perf_counter() - started
        kept = [*results(), line]
        draft = RESULTS.with_suffix(".tmp")
        draft.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        draft.replace(RESULTS)
        print(json.dumps(line))


def results() -> list[dict]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def rows() -> list[dict]:
    """One row per cell and threat model, with the loss against the published protocol at the same pi."""
    lines = results()
    published = {
        (line["cell"][0], line["cell"][2]): line["precision@10"]
        for line in lines
        if line["cell"][1] == "as-published" and line["cell"][3] == "1"
    }
    found = []
    for line in lines:
        name, policy, pi, clients = line["cell"]
        base = published.get((name, pi))
        for sees, told in line["sees"].items():
            found.append(
                {
                    "data": name,
                    "policy": policy,
                    "pi": pi,
                    "sees": f"sums of {clients}" if sees == "sums" else sees,
                    "sent": told["disclosed_share"],
                    "precision": line["precision@10"],
                    "coverage": line["item_coverage@10"],
                    "loss": None if not base else 1 - line["precision@10"] / base,
                    "popularity": told["popularity"]["auc_held_back"],
                    "best": told["best"]["auc_held_back"],
                    "attack": told["best"]["by_auc_held_back"],
                    "gain": told["best"]["gain_held_back"],
                    "gain_all": told["best"]["gain"],
                }
            )
    return found


def table() -> None:
    print("| data | policy | pi | server sees | P@10 | loss | coverage | sent | hidden: popularity | best | gain |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for row in sorted(rows(), key=lambda row: (list(PLACES).index(row["data"]), row["pi"], row["policy"], row["sees"])):
        loss = "-" if row["loss"] is None else f"{row['loss']:+.1%}"
        hidden = (
            "nothing was hidden | - | -"
            if row["best"] is None
            else f"{row['popularity']:.3f} | {row['best']:.3f} ({row['attack']}) | {row['gain']:+.3f}"
        )
        print(
            f"| {row['data']} | {row['policy']} | {row['pi']} | {row['sees']} | {row['precision']:.4f} | {loss} | "
            f"{row['coverage']:.0f} | {row['sent']:.3f} | {hidden} |"
        )


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Okabe and Ito's colours, told apart by most eyes; shapes tell what the server sees.
    colours = dict(zip(POLICIES, ("#000000", "#D55E00", "#0072B2", "#CC79A7", "#009E73", "#E69F00"), strict=True))
    shapes = {"updates": "o", "anonymous": "v", "sums of 10": "s", "sums of 50": "D", "sums of all": "*"}
    shown = [row for row in rows() if row["gain"] is not None]
    named = [name for name in PLACES if any(row["data"] == name for row in shown)]
    plt.rcParams["svg.hashsalt"] = "federank"
    figure, panels = plt.subplots(1, len(named), figsize=(4.2 * len(named) + 2.4, 4.4), squeeze=False, sharey=True)
    for panel, name in zip(panels[0], named, strict=True):
        panel.axhspan(-1, GOAL, color="#009E73", alpha=0.10, lw=0)
        panel.axhline(GOAL, color="#009E73", lw=1, ls="--")
        for row in shown:
            if row["data"] == name:
                size = (11 if row["sees"] == "sums of all" else 6) + 8 * row["pi"]
                look = {"color": colours[row["policy"]], "markersize": size, "markeredgecolor": "white"}
                panel.plot(row["precision"], row["gain"], shapes[row["sees"]], **look)
        for row in rows():
            if row["data"] == name and row["policy"] == "as-published" and row["sees"] == "updates":
                panel.axvline(row["precision"], color=colours["as-published"], lw=1, ls=":")
        panel.set(title=name, xlabel="P@10", ylim=(-0.05, 0.7))
        panel.set_yscale("symlog", linthresh=0.05)
        panel.set_yticks([-0.04, -0.02, 0, 0.02, 0.04, 0.1, 0.2, 0.5])
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:+.2f}")
        panel.margins(x=0.15)
        panel.locator_params(axis="x", nbins=5)
        panel.grid(alpha=0.25)
    panels[0][0].set_ylabel("best attacker's AUC on what was held back,\nabove popularity")
    policies = [policy for policy in POLICIES if any(row["policy"] == policy for row in shown)]
    servers = [sees for sees in shapes if any(row["sees"] == sees for row in shown)]
    marks = [
        plt.Line2D([], [], ls=":", color="#000000", label="as-published:\nnothing left to hide"),
        plt.Line2D([], [], ls="--", color="#009E73", label="the goal: below 0.02"),
        *(plt.Line2D([], [], marker="o", ls="", color=colours[policy], label=policy) for policy in policies),
        *(
            plt.Line2D([], [], marker=shapes[sees], ls="", color="#555555", label=f"server sees {sees}")
            for sees in servers
        ),
    ]
    figure.legend(handles=marks, loc="center right", frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1 - 2.2 / (4.2 * len(named) + 2.4), 1))
    figure.savefig(FIGURE, metadata={"Date": None} if FIGURE.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=["measure", "table", "draw"])
    parser.add_argument("data", nargs="?", choices=list(PLACES))
    parser.add_argument("--cells", default="", help="only cells whose `policy pi clients` contains this")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    if asked.do == "measure":
        measure(asked.data or "ml-100k", asked.cells, asked.epochs)
    else:
        {"table": table, "draw": draw}[asked.do]()


if __name__ == "__main__":
    main()
