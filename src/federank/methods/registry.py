"""The methods by name, ours and those of other packages (extensions.py), imported when first asked for."""

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
    "bpr": (_FPL, "BPR", "BPR-MF, centralised: the same maths with everyone's history in one place."),
    "pmf": (_FEDREC, "PMF", "FedRec: federated rating prediction by matrix factorisation."),
    "svdpp": (_FEDREC, "SVDPlusPlus", "FedRec with SVD++: which items a person has rated counts too."),
    "popular": (_BASELINES + "popular", "MostPopular", "The most popular items, for everyone the same."),
    "random": (_BASELINES + "popular", "Random", "Items at random: the floor under every method."),
    "userknn": (_BASELINES + "knn", "UserKNN", "What similar users have (cosine)."),
    "itemknn": (_BASELINES + "knn", "ItemKNN", "What is similar to what the user has (cosine)."),
    "ease": (_BASELINES + "ease", "EASE", "EASE: item-item weights in closed form (Steck, 2019)."),
    "rp3beta": (_BASELINES + "graph", "RP3beta", "RP3beta: random walks of three steps (Paudel et al., 2017)."),
    "gfcf": (_BASELINES + "graph", "GFCF", "GF-CF: a filter on the graph of users and items (Shen et al., 2021)."),
    "slim": (_BASELINES + "slim", "SLIM", "SLIM: a few item-item weights for each item (Ning and Karypis, 2011)."),
    "ials": (_BASELINES + "ials", "IALS", "Implicit alternating least squares, solved exactly (Hu et al., 2008)."),
    "dpals": (_BASELINES + "dpals", "PrivateALS", "Private ALS with a trusted server (Chien et al., 2021)."),
    "biases": (_BASELINES + "popular", "Biases", "Ratings as the mean of all, with users' and items' biases."),
    "vae": (_BASELINES + "vae", "MultVAE", "Mult-VAE: a variational autoencoder (needs the extra `vae`)."),
    "fcf": (_FRUGAL, "FCF", "Federated collaborative filtering (Ammad-ud-din et al., 2019)."),
    "fedmf": (_BASELINES + "fedmf", "FedMF", "Federated matrix factorisation by gradients (Chai et al., 2020)."),
    "local": (
        _BASELINES + "pfedrec",
        "LocalOnly",
        "Every client trains alone and sends nothing: the control of federated methods.",
    ),
    "fedrap": (
        _BASELINES + "fedrap",
        "FedRAP",
        "Additive personalisation: an own item table beside the shared one (Li et al., 2024).",
    ),
    "pfedrec": (
        _BASELINES + "pfedrec",
        "PFedRec",
        "Everyone's own score function and view of the items (Zhang et al., 2023).",
    ),
}
"""For each method its file, its class and one line of help."""

SERVED = {
    "frugal": "federank.methods.frugal",
    "fpl": "federank.methods.fpl.method:FPL",
    "pmf": "federank.methods.fedrec.method:PMF",
    "svdpp": "federank.methods.fedrec.method:SVDPlusPlus",
}
"""Methods that servers offer: their class on the interface of federation/method.py; or, without a colon, the folder
with their records (`server`, `client` and `simulated`)."""

AUDITED = ("fpl", "federank", "frugal", "fcf", "pmf", "svdpp", "fedmf", "pfedrec", "fedrap")
"""Those of them that send something, so that there is something to audit."""


def method_names() -> list[str]:
    """Every method that there is: ours, and those that other packages bring."""
    return [*METHODS, *(name for name in extensions.names("methods") if name not in METHODS)]


def help_of(name: str) -> str:
    """One line about a method."""
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
    """The method of this name, where it is on the interface of federation/method.py; None for another, or for none."""
    module, _, cls = SERVED.get(name, "").partition(":")
    if not cls:
        module, cls, _ = METHODS.get(name, ("", "", ""))
    kind = getattr(import_module(module), cls) if module else extensions.find("methods", name)
    return kind if _is_federated(kind) else None


def part_of(name: str, module: str, table: str) -> Any:
    """What a served method's folder has for a host: the entry of this name in a table of a module; None for nothing."""
    folder = SERVED.get(name, ":")
    return None if ":" in folder else getattr(import_module(f"{folder}.{module}"), table).get(name)


def served_names() -> list[str]:
    """The methods that servers offer: those with records of their own, and other packages' on the interface.

    Baselines on the interface can be served too, by name.
    """
    return [*SERVED, *(name for name in extensions.names("methods") if federated_method(name))]


def method_class(method: Any) -> type[Recommender]:
    """The class of a method, given by name or as the class itself."""
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
    """The methods that send something: ours, and those that other packages bring. The latter are imported for it."""
    brought = [name for name in method_names() if name not in METHODS]
    ours = [name for name in AUDITED if name in METHODS]
    return [*ours, *(name for name in brought if recommender_class(name).audit)]


def epochs_setting(method: type[Recommender]) -> str | None:
    """What a method calls its epochs; None where it has none, or where they follow from another setting."""
    counts = {field.name for field in fields(method.settings_type) if isinstance(field.default, int)}
    return next((name for name in ("epochs", "rounds", "iterations") if name in counts), None)


def _as_recommender(method: Any) -> Any:
    """A federated method as the recommender that a simulation of it makes; anything else as it is."""
    if not _is_federated(method):
        return method
    from federank.methods.federated_model import model_class

    return model_class(method)


def _is_federated(method: Any) -> bool:
    from federank.federation.method import FederatedMethod

    return isinstance(method, type) and issubclass(method, FederatedMethod)


def register(method: Kind) -> Kind:
    """Make a method of your own known by its name, for this process; also as a decorator.

    It is a subclass of `FederatedMethod`, or of `Recommender` where nothing is federated.

    `fr.fit("mine", split)`, `fr.load_model` and studies find it then. A package that is installed beside this one can
    name its methods once for all, as entry points of the group `federank.methods`.
    """
    name = getattr(method, "name", None)
    if name in METHODS:
        raise SettingError(f"{name!r} is the name of a method that is here already; give yours another name.")
    if not isinstance(name, str):
        raise SettingError(f"{getattr(method, '__name__', method)!r} has no name; add a line such as name = 'mine'.")
    _checked(method, name)
    extensions.add("methods", name, method)
    return method


def _checked(method: Any, name: str) -> type[Recommender]:
    """What someone brings as a method, as a recommender, if it is one."""
    from federank.methods.recommender import Recommender

    _refuse_missing(method, name)
    method = _as_recommender(method)
    if not (isinstance(method, type) and issubclass(method, Recommender)):
        raise SettingError(f"The method {name!r} is {method!r}, no subclass of FederatedMethod or Recommender.")
    if method.__abstractmethods__:
        missing = ", ".join(sorted(method.__abstractmethods__))
        raise SettingError(f"The method {name!r} lacks {missing}; see docs/extending.md for what each does.")
    if getattr(method, "name", None) != name:
        raise SettingError(
            f"The method that is brought as {name!r} calls itself {getattr(method, 'name', None)!r}; one name is "
            "needed, for a kept model is found again by it."
        )
    if not (is_dataclass(method.settings_type) and isinstance(method.settings_type, type)):
        raise SettingError(f"The settings_type of {name!r} is {method.settings_type!r}; a dataclass is needed.")
    return method


def _refuse_missing(method: Any, name: str) -> None:
    """Refuse a federated method that lacks one of the functions which it must write, or declares a record wrongly."""
    from federank.federation.method import FederatedMethod
    from federank.federation.wire import arrays

    if not _is_federated(method):
        return
    written = ("initial_state", "client_update", "server_update")
    missing = [part for part in written if getattr(method, part) is getattr(FederatedMethod, part)]
    if missing:
        raise SettingError(f"The method {name!r} lacks {', '.join(missing)}; see docs/extending.md for what each does.")
    kept = method.records.client
    if kept is not None and any(part.metadata["dtype"] != "f4" for part in arrays(kept)):
        raise SettingError(f"The client state of {name!r} needs arrays of the dtype f4: a client's file keeps those.")
    if not is_dataclass(method) or "__dataclass_params__" not in vars(method):
        raise SettingError(f"The method {name!r} is no dataclass; add @dataclass(frozen=True, kw_only=True).")
