"""Entries of trained models. Settings are given in full, so that a new default changes no entry."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

import federank as fr
from federank.methods.fpl.settings import PRESETS


@cache
def city():
    """A small synthetic city; every visit has a rating from 1 to 5."""
    visits = fr.city(people=120, places=90, checkins=2400, seed=3)
    people, places = visits.users.astype(np.int64), visits.items.astype(np.int64)
    return replace(visits, ratings=((7 * people + 13 * places + people * places) % 5 + 1).astype(np.float32))


PAIRS = {
    "factors": 8,
    "learning_rate": 0.05,
    "user_regulariser": 0.05,
    "positive_regulariser": 0.05,
    "negative_regulariser": 0.005,
    "initial_scale": 0.1,
    "initial_biases": "normal",
    "pi": 0.5,
    "epochs": 2,
    "seed": 11,
    "order": "as-in-code",
    "sharing": "all",
    "mask": "as-in-code",
}
STOCHASTIC, PARALLEL = {"clients_per_round": 1}, {"clients_per_round": "all"}
ONE, MEAN = {"triples": 1}, {"triples": "mean"}
FPL = {
    "sfpl": STOCHASTIC | ONE,
    "sfpl+": STOCHASTIC | MEAN,
    "pfpl": PARALLEL | ONE,
    "pfpl+": PARALLEL | MEAN,
    "summed order": PARALLEL | MEAN | {"order": "as-printed"},
    "per-row masks": PARALLEL | MEAN | {"mask": "as-printed"},
    "fixed-subset": PARALLEL | MEAN | {"sharing": "fixed-subset"},
    "randomized-response": PARALLEL | MEAN | {"sharing": "randomized-response", "item_epsilon": 1.0},
    "clipped, with noise": PARALLEL | ONE | {"clip": 0.5, "noise": 0.5, "noise_on": "all-rows"},
    "few uploads": PRESETS["few"] | {"epochs": 6},
    "adam, online, dropout": STOCHASTIC | MEAN | {"server": "adam", "online": 0.7, "dropout": 0.2, "weight_decay": 0.1},
}


def fpl(settings):
    """FPL's factors and biases, and how many rows were sent."""
    model = fr.FPL(**PAIRS | settings).fit(city())
    return _pairwise(model)


def _pairwise(model):
    home = {} if model.home_vectors is None else {"home vectors": model.home_vectors}
    tables = {"item vectors": model.item_vectors, "item biases": model.item_biases, "user vectors": model.user_vectors}
    return tables | home | {"rows sent": model.communication()["up"]["rows"]}


SQUARES = {
    "factors": 8,
    "messages": 3,
    "min_support": 1,
    "cohorts": 1,
    "alpha": 0.0,
    "unobserved_weight": 1.0,
    "shrinkage": 0.95,
    "activity": 0.3,
    "popularity": 0.4,
    "damping": 1.0,
    "server": "solve",
    "encoding": "float32",
    "initial_scale": 0.1,
    "sharing": "fixed-subset",
    "pi": 1.0,
    "seed": 11,
}
NOISE = {
    "messages": 2,
    "shrinkage": 0.9,
    "activity": None,
    "popularity": None,
    "epsilon": 8.0,
    "delta": 1e-6,
    "rounding": "drawn",
}
SOLVED = {"shrinkage": None, "activity": 0.0, "popularity": 0.0, "alpha": 1.0, "damping": 0.5, "regulariser": 2.0}
FRUGAL = {
    "plain": {},
    "cohorts": {"messages": 2, "cohorts": 3},
    "fixed-subset, half": {"pi": 0.5},
    "randomized-response": {"sharing": "randomized-response", "pi": 0.5, "item_epsilon": 2.0},
    "solved": SOLVED | {"messages": 3},
    "private": NOISE,
    "private, three messages": NOISE | {"messages": 3, "pi": 0.7},
    "integer sums": NOISE | {"epsilon": None, "sigma": 0.0},
}
FCF = {
    "factors": 8,
    "rounds": 5,
    "alpha": 1.0,
    "unobserved_weight": 1.0,
    "regulariser": 1.0,
    "learning_rate": 0.1,
    "beta1": 0.9,
    "beta2": 0.999,
    "initial_scale": 0.1,
    "seed": 11,
}


def frugal(settings):
    """Frugal's scores, weights and regularisation."""
    return _least_squares(fr.Frugal(**SQUARES | settings).fit(city()))


def fcf(settings):
    """FCF's scores."""
    return _least_squares(fr.FCF(**FCF | settings).fit(city()))


def _least_squares(model):
    scores = model.user_vectors.astype(np.float64) @ model.item_vectors.T.astype(np.float64)
    return {
        "scores": scores,
        "item weights": model.item_weights,
        "regularisation": np.array([model.regulariser]),
        "rows sent": model.communication()["up"]["rows"],
    }


RATINGS = {
    "factors": 6,
    "iterations": 8,
    "learning_rate": 0.05,
    "decay": 0.9,
    "regulariser": 0.001,
    "initial_range": 0.5,
    "sampling": "fresh",
    "rho": 2.0,
    "t_predict": 2,
    "t_local": 3,
    "item_gradients": "before",
    "client_rate": "participation",
    "filling_start": "late",
    "local_training": "copy",
    "seed": 11,
}
FEDREC = {
    "user averaging": {"filling": "average"},
    "hybrid filling": {"filling": "hybrid"},
    "hybrid filling, as in the paper": {
        "filling": "hybrid",
        "sampling": "fixed",
        "item_gradients": "after",
        "client_rate": "iteration",
        "filling_start": "early",
        "local_training": "own",
    },
    "no virtual ratings": {"filling": "none", "rho": 0.0},
    "not federated": {"filling": "none", "rho": 0.0, "federated": False},
}
BATCH = {"style": "batch", "learning_rate": 0.1}


def rating_model(kind, settings):
    """The vectors of PMF or SVD++."""
    model = getattr(fr, kind)(**{"style": "stochastic"} | RATINGS | settings).fit(city())
    implicit = {"implicit vectors": model.implicit_vectors} if kind == "SVDPlusPlus" else {}
    return {"item vectors": model.item_vectors, "user vectors": model.user_vectors} | implicit


ENTRIES = (
    {f"FPL: {name}": partial(fpl, settings) for name, settings in FPL.items()}
    | {f"Frugal: {name}": partial(frugal, settings) for name, settings in FRUGAL.items()}
    | {"FCF": partial(fcf, {}), "FCF: unobserved weight 0": partial(fcf, {"unobserved_weight": 0.0})}
    | {f"PMF: {name}": partial(rating_model, "PMF", settings) for name, settings in FEDREC.items()}
    | {f"PMF, batch: {name}": partial(rating_model, "PMF", BATCH | settings) for name, settings in FEDREC.items()}
    | {f"SVD++: {name}": partial(rating_model, "SVDPlusPlus", settings) for name, settings in FEDREC.items()}
)
