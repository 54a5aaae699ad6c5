"""FedeRank: a recommender that learns without collecting anybody's history.

    import federank as fr

    data  = fr.load("city").keep_users(min_interactions=20)
    split = fr.split_temporal(data, test=0.2)

The front door. What is listed here is what the documentation speaks of; each name is imported when first
used, so that `import federank` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from federank.data.city import city as city
    from federank.data.interactions import Interactions as Interactions
    from federank.data.loading import load as load
    from federank.data.splits import Split as Split
    from federank.data.splits import split_folds as split_folds
    from federank.data.splits import split_given as split_given
    from federank.data.splits import split_leave_last_out as split_leave_last_out
    from federank.data.splits import split_random as split_random
    from federank.data.splits import split_temporal as split_temporal
    from federank.data.splits import split_temporal_global as split_temporal_global
    from federank.data.statistics import statistics as statistics
    from federank.errors import FedeRankError as FedeRankError
    from federank.evaluation.evaluate import Evaluation as Evaluation
    from federank.evaluation.evaluate import evaluate as evaluate
    from federank.recommenders.bpr import BPR as BPR
    from federank.recommenders.enrolling import enrol as enrol
    from federank.recommenders.fcf import FCF as FCF
    from federank.recommenders.fpl import FPL as FPL
    from federank.recommenders.neighbours import ItemKNN as ItemKNN
    from federank.recommenders.neighbours import UserKNN as UserKNN
    from federank.recommenders.pmf import PMF as PMF
    from federank.recommenders.popular import MostPopular as MostPopular
    from federank.recommenders.popular import Random as Random
    from federank.recommenders.storage import load_model as load_model
    from federank.recommenders.storage import load_split as load_split
    from federank.recommenders.svdpp import SVDPlusPlus as SVDPlusPlus
    from federank.recommenders.vae import MultVAE as MultVAE

_HOMES = {
    "FedeRankError": "federank.errors",
    "BPR": "federank.recommenders.bpr",
    "city": "federank.data.city",
    "enrol": "federank.recommenders.enrolling",
    "evaluate": "federank.evaluation.evaluate",
    "Evaluation": "federank.evaluation.evaluate",
    "FCF": "federank.recommenders.fcf",
    "FPL": "federank.recommenders.fpl",
    "Interactions": "federank.data.interactions",
    "ItemKNN": "federank.recommenders.neighbours",
    "load": "federank.data.loading",
    "load_model": "federank.recommenders.storage",
    "load_split": "federank.recommenders.storage",
    "MostPopular": "federank.recommenders.popular",
    "MultVAE": "federank.recommenders.vae",
    "PMF": "federank.recommenders.pmf",
    "Random": "federank.recommenders.popular",
    "Split": "federank.data.splits",
    "split_folds": "federank.data.splits",
    "split_given": "federank.data.splits",
    "split_leave_last_out": "federank.data.splits",
    "split_random": "federank.data.splits",
    "split_temporal": "federank.data.splits",
    "split_temporal_global": "federank.data.splits",
    "statistics": "federank.data.statistics",
    "SVDPlusPlus": "federank.recommenders.svdpp",
    "UserKNN": "federank.recommenders.neighbours",
}

__all__ = list(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"federank has no {name!r}; it has {', '.join(_HOMES)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
