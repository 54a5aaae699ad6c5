"""The tables and figures of FedRec (Lin et al., 2020), measured again.

    python benchmarks/fedrec.py measure ml-100k                            every cell, on five random folds
    python benchmarks/fedrec.py measure ml-1m --folds 1 --cells "HF 1"     some cells, on the first fold only
    python benchmarks/fedrec.py table                                      ours | theirs | difference, as Markdown
    python benchmarks/fedrec.py draw                                       Figures 2 and 3, into docs/figures

What has been measured is not measured again. Results are kept in fedrec-results.json: for every cell and fold MAE and
RMSE, and of the first fold the RMSE after each iteration. The settings are the defaults: d = 20, T = 100, lambda .001,
learning rate .8 (batch) or .01 (stochastic), decay .9.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

import federank as fr
from federank.evaluation.evaluate import prediction_errors
from federank.evaluation.metrics import mean_difference, standard_deviation_range

HERE = Path(__file__).parent
RESULTS = HERE / "fedrec-results.json"
FIGURES = HERE.parent / "docs" / "figures"

METHODS = {
    "PMF(B)": (fr.PMF, {"style": "batch"}),
    "PMF(S)": (fr.PMF, {"style": "stochastic"}),
    "SVD++(S)": (fr.SVDPlusPlus, {}),
}
CELLS = ("unfederated", "rho 0", "UA 1", "UA 2", "UA 3", "HF 1", "HF 2", "HF 3")
CURVES = ("unfederated", "rho 0", "HF 1", "HF 2", "HF 3")  # the cells of Figure 3
PASSES = {  # (T_predict, T_local) of hybrid filling for rho 1, 2, 3
    ("PMF(B)", "ml-100k"): ((10, 10), (5, 15), (5, 15)),
    ("PMF(B)", "ml-1m"): ((10, 15), (10, 15), (10, 15)),
    ("PMF(S)", "ml-100k"): ((5, 15), (5, 5), (5, 10)),
    ("PMF(S)", "ml-1m"): ((5, 15), (10, 15), (5, 10)),
    ("SVD++(S)", "ml-100k"): ((15, 15), (5, 15), (10, 15)),
    ("SVD++(S)", "ml-1m"): ((5, 10), (5, 15), (5, 15)),
}
THEIRS = """
PMF(B)   ml-100k .7418/.9424 .7418/.9424 .7670/.9710 .7787/.9843 .7857/.9920 .7440/.9432 .7445/.9431 .7447/.9431
PMF(B)   ml-1m   .7195/.9108 .7193/.9106 .7506/.9494 .7643/.9662 .7724/.9757 .7217/.9129 .7239/.9152 .7263/.9178
PMF(S)   ml-100k .7497/.9551 .7498/.9553 .7669/.9709 .7783/.9839 .7853/.9915 .7431/.9425 .7434/.9427 .7435/.9428
PMF(S)   ml-1m   .6829/.8701 .6829/.8700 .7102/.9030 .7233/.9190 .7328/.9301 .6822/.8687 .6811/.8674 .6805/.8670
SVD++(S) ml-100k .7215/.9228 .7221/.9233 .7394/.9423 .7518/.9558 .7604/.9649 .7204/.9185 .7211/.9194 .7219/.9201
SVD++(S) ml-1m   .6619/.8493 .6620/.8493 .6926/.8851 .7084/.9034 .7189/.9153 .6634/.8506 .6643/.8518 .6648/.8525
"""
"""MAE/RMSE that the authors' runs ended with, in the order of CELLS."""
PUBLISHED = {(line.split()[0], line.split()[1]): line.split()[2:] for line in THEIRS.strip().splitlines()}


def settings_of(method: str, data: str, cell: str) -> dict[str, object]:
    if cell == "unfederated":
        return {"federated": False}
    kind, rho = cell.split()
    if kind == "rho":
        return {"rho": 0}
    if kind == "UA":
        return {"filling": "average", "rho": int(rho)}
    t_predict, t_local = PASSES[method, data][int(rho) - 1]
    return {"filling": "hybrid", "rho": int(rho), "t_predict": t_predict, "t_local": t_local}


def measure(data: str, folds: int, cells: list[str]) -> None:
    shared = HERE.parents[1] / "shared" / "data"
    if "FEDERANK_DATA" not in os.environ and shared.is_dir():
        os.environ["FEDERANK_DATA"] = str(shared)
    splits = fr.split_folds(fr.load(data), folds=5, seed=1)
    for number, split in enumerate(splits[:folds], start=1):
        for cell in cells:
            for method in METHODS:
                key = f"{data} | {method} | {cell} | {number}"
                if key not in read():
                    keep(key, run(method, data, cell, split, with_curve=number == 1 and cell in CURVES))
                    print(key, read()[key]["mae"], read()[key]["rmse"], flush=True)


def run(method: str, data: str, cell: str, split: fr.Split, *, with_curve: bool) -> dict[str, object]:
    kind, style = METHODS[method]
    model = kind(**style, **settings_of(method, data, cell))
    curve: list[float] = []

    def remember(_: int) -> None:
        curve.append(round(prediction_errors(model, split.test).rmse, 5))

    model.fit(split.train, training_options=fr.TrainingOptions(after_epoch=remember if with_curve else None))
    found = prediction_errors(model, split.test)
    told = {"mae": round(found.mae, 5), "rmse": round(found.rmse, 5), "seconds": round(model.report["seconds"], 2)}
    return told | ({"curve": curve} if with_curve else {})


def read() -> dict[str, dict[str, object]]:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def keep(key: str, value: dict[str, object]) -> None:
    draft = RESULTS.with_suffix(".tmp")
    draft.write_text(json.dumps(read() | {key: value}, indent=1) + "\n", encoding="utf-8")
    draft.replace(RESULTS)


def errors(data: str, method: str, cell: str) -> np.ndarray:
    """MAE and RMSE, a row per fold that was measured."""
    found = read()
    keys = [f"{data} | {method} | {cell} | {number}" for number in range(1, 6)]
    rows = [[found[key]["mae"], found[key]["rmse"]] for key in keys if key in found]
    return np.array(rows, dtype=float).reshape(-1, 2)


def theirs(data: str, method: str, cell: str) -> np.ndarray:
    return np.array(PUBLISHED[method, data][CELLS.index(cell)].split("/"), dtype=float)


def table() -> None:
    print("| data | method | cell | folds | MAE: ours | theirs | difference | RMSE: ours | theirs | difference |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for method, data in sorted(PUBLISHED, key=lambda pair: pair[1]):
        for cell in CELLS:
            rows = errors(data, method, cell)
            if not len(rows):
                continue
            columns = []
            for mean, deviation, published in zip(rows.mean(0), rows.std(0), theirs(data, method, cell), strict=True):
                columns += [f"{mean:.4f} ± {deviation:.4f}", f"{published:.4f}", f"{mean - published:+.4f}"]
            print(f"| {data} | {method} | {cell} | {len(rows)} | {' | '.join(columns)} |")
    print("\n| data | method | MAE: MD | STDR | RMSE: MD | STDR | MD < STDR |\n|---|---|---|---|---|---|---|")
    for method, data in sorted(PUBLISHED, key=lambda pair: pair[1]):
        one, other = errors(data, method, "rho 0"), errors(data, method, "unfederated")
        if len(one) == len(other) > 1:
            pairs = [(one[:, column], other[:, column]) for column in (0, 1)]
            measures = [(mean_difference(*pair), standard_deviation_range(*pair)) for pair in pairs]
            verdict = "yes" if all(md < stdr for md, stdr in measures) else "no"
            shown = " | ".join(f"{md:.2f} % | {stdr:.2f} %" for md, stdr in measures)
            print(f"| {data} | {method} | {shown} | {verdict} |")


def draw() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "federank"
    FIGURES.mkdir(exist_ok=True)
    sets = [data for data in ("ml-100k", "ml-1m") if len(errors(data, "PMF(S)", "HF 1"))]
    draw_rho(sets)
    draw_convergence(sets)


def draw_rho(sets: list[str]) -> None:
    """Figure 2: RMSE for rho 0 to 3, user averaging above and hybrid filling below."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        2, len(sets), figsize=(4.6 * len(sets), 6.4), sharex=True, sharey="col", squeeze=False
    )
    for column, data in enumerate(sets):
        for row, (filling, title) in enumerate((("UA", "user averaging"), ("HF", "hybrid filling"))):
            panel = axes[row, column]
            for place, method in enumerate(METHODS):
                cells = ("rho 0", *(f"{filling} {rho}" for rho in (1, 2, 3)))
                ours = [errors(data, method, cell)[:, 1].mean() for cell in cells]
                published = [theirs(data, method, cell)[1] for cell in cells]
                panel.plot(range(4), ours, "o-", color=f"C{place}", label=method)
                panel.plot(range(4), published, "x", color="black", markersize=7)
            panel.plot([], [], "x", color="black", label="published")
            panel.set_title(f"{data}, {title}", fontsize=10)
            panel.set_xticks(range(4))
            panel.grid(alpha=0.3)
        axes[1, column].set_xlabel("rho: virtual ratings for every rating")
    for panel in axes[:, 0]:
        panel.set_ylabel("RMSE")
    axes[0, 0].legend(fontsize=8, frameon=False)
    save(figure, "fedrec-rho.svg")


def draw_convergence(sets: list[str]) -> None:
    """Figure 3: RMSE after each iteration, without a federation, with one, and with hybrid filling."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(sets), 3, figsize=(11, 3.4 * len(sets)), sharex=True, squeeze=False)
    found = read()
    for row, data in enumerate(sets):
        for column, method in enumerate(METHODS):
            panel = axes[row, column]
            for place, cell in enumerate(CURVES):
                curve = found.get(f"{data} | {method} | {cell} | 1", {}).get("curve")
                if curve:
                    style = {"linestyle": "--" if cell == "unfederated" else "-", "color": f"C{place}"}
                    panel.plot(range(1, len(curve) + 1), curve, label=cell, linewidth=1.4, **style)
            panel.set_title(f"{method}, {data}", fontsize=10)
            panel.set_ylim(0.84 if data == "ml-1m" else 0.9, 1.15)
            panel.set_xlim(0, 60)
            panel.grid(alpha=0.3)
    for panel in axes[-1]:
        panel.set_xlabel("iteration")
    for panel in axes[:, 0]:
        panel.set_ylabel("RMSE, first fold")
    axes[0, -1].legend(fontsize=8, frameon=False)
    save(figure, "fedrec-convergence.svg")


def save(figure: object, name: str) -> None:
    figure.tight_layout()
    figure.savefig(FIGURES / name, metadata={"Date": None})
    print(FIGURES / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    measuring = commands.add_parser("measure")
    measuring.add_argument("data", choices=["ml-100k", "ml-1m"])
    measuring.add_argument("--folds", type=int, choices=range(1, 6), default=5)
    measuring.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS), metavar="CELL")
    commands.add_parser("table")
    commands.add_parser("draw")
    asked = parser.parse_args()
    if asked.command == "measure":
        measure(asked.data, asked.folds, asked.cells)
    else:
        {"table": table, "draw": draw}[asked.command]()


if __name__ == "__main__":
    main()
