"""The methods by name, imported when first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from federank.checks import no_such
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.recommenders.recommender import Recommender

METHODS = {
    "frugal": (
        "federank.recommenders.methods.frugal",
        "Frugal",
        "A handful of messages in a lifetime: better accuracy than FPL with 1/500 of its messages.",
    ),
    "fpl": ("federank.recommenders.methods.fpl", "FPL", "Federated pair-wise learning: FPL / FedeRank."),
    "bpr": (
        "federank.recommenders.methods.bpr",
        "BPR",
        "BPR-MF, centralised: the same maths with everyone's history in one place.",
    ),
    "pmf": ("federank.recommenders.methods.pmf", "PMF", "FedRec: federated rating prediction by matrix factorisation."),
    "svdpp": (
        "federank.recommenders.methods.svdpp",
        "SVDPlusPlus",
        "FedRec with SVD++: which items a person has rated counts too.",
    ),
    "popular": (
        "federank.recommenders.methods.popular",
        "MostPopular",
        "The most popular items, for everyone the same.",
    ),
    "random": ("federank.recommenders.methods.popular", "Random", "Items at random: the floor under every method."),
    "userknn": ("federank.recommenders.methods.neighbours", "UserKNN", "What similar users have (cosine)."),
    "itemknn": (
        "federank.recommenders.methods.neighbours",
        "ItemKNN",
        "What is similar to what the user has (cosine).",
    ),
    "vae": (
        "federank.recommenders.methods.vae",
        "MultVAE",
        "Mult-VAE: a variational autoencoder (needs the extra `vae`).",
    ),
    "fcf": (
        "federank.recommenders.methods.fcf",
        "FCF",
        "Federated collaborative filtering (Ammad-ud-din et al., 2019).",
    ),
}
"""For each method its file, its class and one line of help."""


def recommender_class(name: str) -> type[Recommender]:
    """The class of the method with this name."""
    if name not in METHODS:
        raise SettingError(no_such("method", name, METHODS))
    module, cls, _ = METHODS[name]
    found: type[Recommender] = getattr(import_module(module), cls)
    return found
