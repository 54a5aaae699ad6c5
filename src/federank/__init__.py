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
    from federank.data.city.city import city as city
    from federank.data.interactions import Interactions as Interactions
    from federank.data.loading import load as load
    from federank.data.splits import Split as Split
    from federank.data.splits import split_folds as split_folds
    from federank.data.splits import split_given as split_given
    from federank.data.splits import split_leave_last_out as split_leave_last_out
    from federank.data.splits import split_random as split_random
    from federank.data.splits import split_temporal as split_temporal
    from federank.data.splits import split_temporal_global as split_temporal_global
    from federank.data.statistics.statistics import statistics as statistics
    from federank.engines.conduct import Conduct as Conduct
    from federank.engines.conduct import Progress as Progress
    from federank.errors import FedeRankError as FedeRankError
    from federank.evaluation.evaluate import Evaluation as Evaluation
    from federank.evaluation.evaluate import evaluate as evaluate
    from federank.recommenders.enrolling import enrol as enrol
    from federank.recommenders.methods.bpr import BPR as BPR
    from federank.recommenders.methods.fcf import FCF as FCF
    from federank.recommenders.methods.fpl import FPL as FPL
    from federank.recommenders.methods.neighbours import ItemKNN as ItemKNN
    from federank.recommenders.methods.neighbours import UserKNN as UserKNN
    from federank.recommenders.methods.pmf import PMF as PMF
    from federank.recommenders.methods.popular import MostPopular as MostPopular
    from federank.recommenders.methods.popular import Random as Random
    from federank.recommenders.methods.svdpp import SVDPlusPlus as SVDPlusPlus
    from federank.recommenders.methods.vae import MultVAE as MultVAE
    from federank.recommenders.stored.model_folder import load_model as load_model
    from federank.recommenders.stored.model_folder import load_split as load_split

_HOMES = {
    "FedeRankError": "federank.errors",
    "BPR": "federank.recommenders.methods.bpr",
    "Conduct": "federank.engines.conduct",
    "city": "federank.data.city.city",
    "enrol": "federank.recommenders.enrolling",
    "evaluate": "federank.evaluation.evaluate",
    "Evaluation": "federank.evaluation.evaluate",
    "FCF": "federank.recommenders.methods.fcf",
    "FPL": "federank.recommenders.methods.fpl",
    "Interactions": "federank.data.interactions",
    "ItemKNN": "federank.recommenders.methods.neighbours",
    "load": "federank.data.loading",
    "load_model": "federank.recommenders.stored.model_folder",
    "load_split": "federank.recommenders.stored.model_folder",
    "MostPopular": "federank.recommenders.methods.popular",
    "MultVAE": "federank.recommenders.methods.vae",
    "PMF": "federank.recommenders.methods.pmf",
    "Progress": "federank.engines.conduct",
    "Random": "federank.recommenders.methods.popular",
    "Split": "federank.data.splits",
    "split_folds": "federank.data.splits",
    "split_given": "federank.data.splits",
    "split_leave_last_out": "federank.data.splits",
    "split_random": "federank.data.splits",
    "split_temporal": "federank.data.splits",
    "split_temporal_global": "federank.data.splits",
    "statistics": "federank.data.statistics.statistics",
    "SVDPlusPlus": "federank.recommenders.methods.svdpp",
    "UserKNN": "federank.recommenders.methods.neighbours",
}

__all__ = list(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"federank has no {name!r}; it has {', '.join(_HOMES)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
