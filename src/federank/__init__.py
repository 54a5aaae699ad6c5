"""FedeRank: a recommender that learns without collecting anyone's history.

    import federank as fr

    split = fr.split_temporal(fr.load("city").keep_users(min_interactions=20))
    model = fr.FPL(pi=0.3, epochs=60).fit(split.train)
    model.recommend(42)
    fr.evaluate(model, split).means["precision@10"]

The public API. What is listed here is what the documentation speaks of, and all that a user needs to import; each
name is imported when first used, so that `import federank` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from federank.audit.audit import audit_model as audit_model
    from federank.audit.audit import audit_training as audit_training
    from federank.audit.observer import attack as attack
    from federank.audit.observer import register_attack as register_attack
    from federank.audit.scoring import Audited as Audited
    from federank.audit.scoring import Findings as Findings
    from federank.audit.scoring import Guess as Guess
    from federank.data.interactions import Interactions as Interactions
    from federank.data.loading import load as load
    from federank.data.loading import register_reader as register_reader
    from federank.data.split_files import read_split as read_split
    from federank.data.splits import Split as Split
    from federank.data.splits import split_folds as split_folds
    from federank.data.splits import split_given as split_given
    from federank.data.splits import split_leave_last_out as split_leave_last_out
    from federank.data.splits import split_random as split_random
    from federank.data.splits import split_temporal as split_temporal
    from federank.data.splits import split_temporal_global as split_temporal_global
    from federank.data.statistics import statistics as statistics
    from federank.data.synthetic import city as city
    from federank.errors import FedeRankError as FedeRankError
    from federank.evaluation.card import model_card as model_card
    from federank.evaluation.evaluate import Evaluation as Evaluation
    from federank.evaluation.evaluate import PredictionErrors as PredictionErrors
    from federank.evaluation.evaluate import evaluate as evaluate
    from federank.evaluation.evaluate import prediction_errors as prediction_errors
    from federank.evaluation.grid import Searched as Searched
    from federank.evaluation.grid import search as search
    from federank.evaluation.metrics import register_metric as register_metric
    from federank.evaluation.search import fit as fit
    from federank.evaluation.significance import Comparison as Comparison
    from federank.evaluation.significance import compare as compare
    from federank.federation.method import Device as Device
    from federank.federation.method import FederatedSettings as FederatedSettings
    from federank.methods.baselines.biases import Biases as Biases
    from federank.methods.baselines.ease import EASE as EASE
    from federank.methods.baselines.federated import FedMF as FedMF
    from federank.methods.baselines.federated import PFedRec as PFedRec
    from federank.methods.baselines.ials import IALS as IALS
    from federank.methods.baselines.knn import ItemKNN as ItemKNN
    from federank.methods.baselines.knn import UserKNN as UserKNN
    from federank.methods.baselines.popular import MostPopular as MostPopular
    from federank.methods.baselines.popular import Random as Random
    from federank.methods.baselines.slim import SLIM as SLIM
    from federank.methods.baselines.vae import MultVAE as MultVAE
    from federank.methods.federated_method import FederatedMethod as FederatedMethod
    from federank.methods.fedrec.recommender import PMF as PMF
    from federank.methods.fedrec.recommender import SVDPlusPlus as SVDPlusPlus
    from federank.methods.fpl.recommender import BPR as BPR
    from federank.methods.fpl.recommender import FPL as FPL
    from federank.methods.frugal.recommender import FCF as FCF
    from federank.methods.frugal.recommender import Frugal as Frugal
    from federank.methods.model_folder import load_model as load_model
    from federank.methods.model_folder import load_split as load_split
    from federank.methods.new_users import User as User
    from federank.methods.new_users import enrol as enrol
    from federank.methods.recommendations import Recommendations as Recommendations
    from federank.methods.recommendations import Recommended as Recommended
    from federank.methods.recommender import Recommender as Recommender
    from federank.methods.registry import register as register
    from federank.privacy.policy import Policy as Policy
    from federank.privacy.policy import register_policy as register_policy
    from federank.simulation.options import Progress as Progress
    from federank.simulation.options import TrainingOptions as TrainingOptions
    from federank.studies.results import Results as Results

_HOMES = {
    "audit_model": "federank.audit.audit",
    "audit_training": "federank.audit.audit",
    "Audited": "federank.audit.scoring",
    "Findings": "federank.audit.scoring",
    "Guess": "federank.audit.scoring",
    "attack": "federank.audit.observer",
    "register_attack": "federank.audit.observer",
    "city": "federank.data.synthetic",
    "Interactions": "federank.data.interactions",
    "load": "federank.data.loading",
    "register_reader": "federank.data.loading",
    "Split": "federank.data.splits",
    "split_folds": "federank.data.splits",
    "split_given": "federank.data.splits",
    "split_leave_last_out": "federank.data.splits",
    "split_random": "federank.data.splits",
    "split_temporal": "federank.data.splits",
    "split_temporal_global": "federank.data.splits",
    "statistics": "federank.data.statistics",
    "read_split": "federank.data.split_files",
    "TrainingOptions": "federank.simulation.options",
    "Progress": "federank.simulation.options",
    "FedeRankError": "federank.errors",
    "model_card": "federank.evaluation.card",
    "Evaluation": "federank.evaluation.evaluate",
    "evaluate": "federank.evaluation.evaluate",
    "fit": "federank.evaluation.search",
    "Searched": "federank.evaluation.grid",
    "search": "federank.evaluation.grid",
    "PredictionErrors": "federank.evaluation.evaluate",
    "prediction_errors": "federank.evaluation.evaluate",
    "register_metric": "federank.evaluation.metrics",
    "Comparison": "federank.evaluation.significance",
    "compare": "federank.evaluation.significance",
    "register_policy": "federank.privacy.policy",
    "Policy": "federank.privacy.policy",
    "Device": "federank.federation.method",
    "FederatedSettings": "federank.federation.method",
    "User": "federank.methods.new_users",
    "enrol": "federank.methods.new_users",
    "FederatedMethod": "federank.methods.federated_method",
    "Biases": "federank.methods.baselines.biases",
    "BPR": "federank.methods.fpl.recommender",
    "EASE": "federank.methods.baselines.ease",
    "FCF": "federank.methods.frugal.recommender",
    "FPL": "federank.methods.fpl.recommender",
    "Frugal": "federank.methods.frugal.recommender",
    "IALS": "federank.methods.baselines.ials",
    "ItemKNN": "federank.methods.baselines.knn",
    "UserKNN": "federank.methods.baselines.knn",
    "PMF": "federank.methods.fedrec.recommender",
    "MostPopular": "federank.methods.baselines.popular",
    "Random": "federank.methods.baselines.popular",
    "SLIM": "federank.methods.baselines.slim",
    "FedMF": "federank.methods.baselines.federated",
    "PFedRec": "federank.methods.baselines.federated",
    "SVDPlusPlus": "federank.methods.fedrec.recommender",
    "MultVAE": "federank.methods.baselines.vae",
    "Recommendations": "federank.methods.recommendations",
    "Recommended": "federank.methods.recommendations",
    "Recommender": "federank.methods.recommender",
    "register": "federank.methods.registry",
    "load_model": "federank.methods.model_folder",
    "load_split": "federank.methods.model_folder",
    "Results": "federank.studies.results",
}
"""The same once more for the running program: each name, and the module it is imported from when first used."""

__all__ = list(_HOMES)
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"federank has no {name!r}; it has {', '.join(_HOMES)}.")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
