"""The methods by name: the built-in ones and those of other packages (extensions.py), imported on first use."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from federank import extensions
from federank.checks import unknown_name
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.federation.method import FederatedMethod
    from federank.methods.recommender import Recommender


Kind = TypeVar("Kind", bound=type[Any])

_FRUGAL, _FPL, _FEDREC = (f"federank.methods.{folder}.recommender" for folder in ("frugal", "fpl", "fedrec"))
_BASELINES = "federank.methods.baselines."
METHODS = {
    "frugal": (
        _FRUGAL,
        "Frugal",
        "Frugal, our own: a handful of uploads per client; the server solves from their sums.",
    ),
    "fpl": (_FPL, "FPL", "Federated pair-wise learning (FPL), as in the authors' code."),
    "federank": (_FPL, "FedeRank", "FedeRank: FPL as the equations are printed."),
    "bpr": (_FPL, "BPR", "BPR-MF: the same maths, centralised, with all histories in one place."),
    "pmf": (_FEDREC, "PMF", "FedRec: federated matrix factorisation of ratings."),
    "svdpp": (_FEDREC, "SVDPlusPlus", "FedRec with SVD++, which also uses the set of items that a user has rated."),
    "popular": (_BASELINES + "popular", "MostPopular", "The most popular items, the same for all users."),
    "random": (_BASELINES + "popular", "Random", "Random items: the lower bound for every method."),
    "userknn": (_BASELINES + "knn", "UserKNN", "User-based nearest neighbours (cosine)."),
    "itemknn": (_BASELINES + "knn", "ItemKNN", "Item-based nearest neighbours (cosine)."),
    "ease": (_BASELINES + "ease", "EASE", "EASE: item-item weights in closed form (Steck, 2019)."),
    "rp3beta": (_BASELINES + "graph", "RP3beta", "RP3beta: random walks of three steps (Paudel et al., 2017)."),
    "gfcf": (_BASELINES + "graph", "GFCF", "GF-CF: graph filtering (Shen et al., 2021)."),
    "slim": (_BASELINES + "slim", "SLIM", "SLIM: sparse item-item weights (Ning and Karypis, 2011)."),
    "ials": (
        _BASELINES + "ials",
        "IALS",
        "iALS: implicit alternating least squares, solved exactly (Hu et al., 2008).",
    ),
    "dpals": (
        _BASELINES + "dpals",
        "PrivateALS",
        "DPALS: differentially private ALS with a trusted server (Chien et al., 2021).",
    ),
    "biases": (_BASELINES + "popular", "Biases", "Rating prediction by the overall mean and user and item biases."),
    "vae": (_BASELINES + "vae", "MultVAE", "Mult-VAE: a variational autoencoder (needs the extra `vae`)."),
    "fcf": (_FRUGAL, "FCF", "FCF: federated collaborative filtering (Ammad-ud-din et al., 2019)."),
    "fedmf": (_BASELINES + "fedmf", "FedMF", "FedMF: federated matrix factorisation by gradients (Chai et al., 2020)."),
    "local": (
        _BASELINES + "pfedrec",
        "LocalOnly",
        "Control: every client trains alone and sends nothing.",
    ),
    "fedrap": (
        _BASELINES + "fedrap",
        "FedRAP",
        "FedRAP: each client adds an item table of its own to the shared one (Li et al., 2024).",
    ),
    "gpfedrec": (
        _BASELINES + "gpfedrec",
        "GPFedRec",
        "GPFedRec: similar clients share item embeddings; simulation only (Zhang et al., 2024).",
    ),
    "pfedrec": (
        _BASELINES + "pfedrec",
        "PFedRec",
        "PFedRec: each client has its own score function and item embeddings (Zhang et al., 2023).",
    ),
}
"""The module, class and one line of help of each method."""

SERVED = {
    "frugal": "federank.methods.frugal.method:Frugal",
    "fpl": "federank.methods.fpl.method:FPL",
    "pmf": "federank.methods.fedrec.method:PMF",
    "svdpp": "federank.methods.fedrec.method:SVDPlusPlus",
}
"""Methods that servers offer: their class on the interface of federation/method.py."""

AUDITED = ("fpl", "federank", "frugal", "fcf", "pmf", "svdpp", "fedmf", "pfedrec", "fedrap")
"""Methods that send something, so they can be audited."""


def method_names() -> list[str]:
    """Every method: the built-in ones and those of other packages."""
    return [*METHODS, *(name for name in extensions.names("methods") if name not in METHODS)]


def help_of(name: str) -> str:
    """The one line of help of a method."""
    if name in METHODS:
        return METHODS[name][2]
    return (inspect.getdoc(recommender_class(name)) or "A method of another package.").partition("\n")[0]


def recommender_class(name: str) -> type[Recommender]:
    """The class of the method with this name."""
    if name in METHODS:
        module, cls, _ = METHODS[name]
        ours: type[Recommender] = _as_recommender(getattr(import_module(module), cls))
        return ours
    brought = extensions.find("methods", name)
    if brought is None:
        raise SettingError(unknown_name("method", name, method_names()))
    return _checked(brought, name)


def federated_method(name: str) -> type[FederatedMethod] | None:
    """The method of this name if it is on the interface of federation/method.py, else None."""
    module, _, cls = SERVED.get(name, "").partition(":")
    if not cls:
        module, cls, _ = METHODS.get(name, ("", "", ""))
    kind = getattr(import_module(module), cls) if module else extensions.find("methods", name)
    return kind if _is_federated(kind) else None


def served_names() -> list[str]:
    """The methods of `federank serve`: those listed above, and other packages' on the interface.

    Baselines on the interface can also be served, by name.
    """
    return [*SERVED, *(name for name in extensions.names("methods") if federated_method(name))]


def method_class(method: Any) -> type[Recommender]:
    """The class of a method, given by name or as a class."""
    from federank.methods.recommender import Recommender

    if isinstance(method, str):
        return recommender_class(method)
    kind = _as_recommender(method)
    if isinstance(kind, type) and issubclass(kind, Recommender):
        return kind
    raise SettingError(
        f"method is of type {type(method).__name__}; a name such as 'frugal', or a class such as fr.Frugal, is needed."
    )


def audited_names() -> list[str]:
    """The methods that can be audited; those of other packages are imported for this."""
    brought = [name for name in method_names() if name not in METHODS]
    ours = [name for name in AUDITED if name in METHODS]
    return [*ours, *(name for name in brought if recommender_class(name).audit)]


def epochs_setting(method: type[Recommender]) -> str | None:
    """The setting that counts a method's epochs; None if it has none, or if they follow from another setting."""
    counts = {field.name for field in fields(method.settings_type) if isinstance(field.default, int)}
    return next((name for name in ("epochs", "rounds", "iterations") if name in counts), None)


def _as_recommender(method: Any) -> Any:
    """A federated method as the recommender that simulates it; anything else unchanged."""
    if not _is_federated(method):
        return method
    from federank.methods.federated_model import model_class

    return model_class(method)


def _is_federated(method: Any) -> bool:
    from federank.federation.method import FederatedMethod

    return isinstance(method, type) and issubclass(method, FederatedMethod)


def register(method: Kind) -> Kind:
    """Register a method under its name, for this process; also as a decorator.

    The method is a subclass of `FederatedMethod`, or of `Recommender` if it is not federated.

    `fr.fit("mine", split)`, `fr.load_model` and studies then find it. An installed package registers its methods with
    entry points of the group `federank.methods`.
    """
    name = getattr(method, "name", None)
    if name in METHODS:
        raise SettingError(f"{name!r} is the name of an existing method; choose another.")
    if not isinstance(name, str):
        raise SettingError(f"{getattr(method, '__name__', method)!r} has no name; add a line such as name = 'mine'.")
    _checked(method, name)
    extensions.add("methods", name, method)
    return method


def _checked(method: Any, name: str) -> type[Recommender]:
    """A registered method as a recommender, if it is valid."""
    from federank.methods.recommender import Recommender

    _refuse_missing(method, name)
    method = _as_recommender(method)
    if not (isinstance(method, type) and issubclass(method, Recommender)):
        raise SettingError(
            f"The method {name!r} is {method!r}, which is not a subclass of FederatedMethod or Recommender."
        )
    if method.__abstractmethods__:
        missing = ", ".join(sorted(method.__abstractmethods__))
        raise SettingError(f"The method {name!r} lacks {missing}; see docs/extending.md for what each does.")
    if getattr(method, "name", None) != name:
        raise SettingError(
            f"The method registered as {name!r} has the name {getattr(method, 'name', None)!r}; they must be equal, "
            "because a stored model is found by its name."
        )
    if not (is_dataclass(method.settings_type) and isinstance(method.settings_type, type)):
        raise SettingError(f"The settings_type of {name!r} is {method.settings_type!r}; a dataclass is needed.")
    return method


def _refuse_missing(method: Any, name: str) -> None:
    """Refuse a federated method that lacks a required function, or declares a record wrongly."""
    from federank.federation.method import FederatedMethod
    from federank.federation.wire import arrays

    if not _is_federated(method):
        return
    written = ("initial_state", "client_update", "server_update")
    missing = [part for part in written if getattr(method, part) is getattr(FederatedMethod, part)]
    if missing:
        raise SettingError(f"The method {name!r} lacks {', '.join(missing)}; see docs/extending.md for what each does.")
    state = method.records.client
    if state is not None and any(part.metadata["dtype"] != "f4" for part in arrays(state)):
        raise SettingError(f"The client state of {name!r} needs arrays of the dtype f4: a client's file keeps those.")
    if not is_dataclass(method) or "__dataclass_params__" not in vars(method):
        raise SettingError(f"The method {name!r} is not a dataclass; add @dataclass(frozen=True, kw_only=True).")
