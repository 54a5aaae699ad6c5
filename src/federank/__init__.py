"""FedeRank: a recommender that learns without collecting anybody's history.

    import federank as fr

    split = fr.split_temporal(fr.load("city").keep_users(min_interactions=20))
    model = fr.FPL(pi=0.3, epochs=60).fit(split.train)
    model.recommend(42)
    fr.evaluate(model, split).means["precision@10"]

The front door. What is listed here is what the documentation speaks of, and all that a user needs to import; each
name is imported when first used, so that `import federank` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from federank.audit.audit import audit_model as audit_model
    from federank.audit.audit import audit_training as audit_training
    from federank.audit.findings import Audited as Audited
    from federank.audit.findings import Findings as Findings
    from federank.audit.guess import Guess as Guess
    from federank.audit.own_attacks import attack as attack
    from federank.audit.own_attacks import register_attack as register_attack
    from federank.data.city.city import city as city
    from federank.data.interactions import Interactions as Interactions
    from federank.data.loading import load as load
    from federank.data.sources.own_readers import register_reader as register_reader
    from federank.data.splits import Split as Split
    from federank.data.splits import split_folds as split_folds
    from federank.data.splits import split_given as split_given
    from federank.data.splits import split_leave_last_out as split_leave_last_out
    from federank.data.splits import split_random as split_random
    from federank.data.splits import split_temporal as split_temporal
    from federank.data.splits import split_temporal_global as split_temporal_global
    from federank.data.statistics.statistics import statistics as statistics
    from federank.data.stored.split_folder import read_split as read_split
    from federank.engines.conduct import Conduct as Conduct
    from federank.engines.conduct import Progress as Progress
    from federank.errors import FedeRankError as FedeRankError
    from federank.evaluation.card import model_card as model_card
    from federank.evaluation.evaluate import Evaluation as Evaluation
    from federank.evaluation.evaluate import evaluate as evaluate
    from federank.evaluation.fitting import fit as fit
    from federank.evaluation.grid import Searched as Searched
    from federank.evaluation.grid import search as search
    from federank.evaluation.metrics.ranking import register_metric as register_metric
    from federank.evaluation.prediction import PredictionErrors as PredictionErrors
    from federank.evaluation.prediction import prediction_errors as prediction_errors
    from federank.evaluation.significance import Comparison as Comparison
    from federank.evaluation.significance import compare as compare
    from federank.protocol.policies.own_sharing import register_policy as register_policy
    from federank.protocol.policies.policy import Policy as Policy
    from federank.protocol.steps.device import Device as Device
    from federank.protocol.steps.recipes import FederatedSettings as FederatedSettings
    from federank.recommenders.enrolling import Person as Person
    from federank.recommenders.enrolling import enrol as enrol
    from federank.recommenders.federated_method import FederatedMethod as FederatedMethod
    from federank.recommenders.methods.biases import Biases as Biases
    from federank.recommenders.methods.bpr import BPR as BPR
    from federank.recommenders.methods.ease import EASE as EASE
    from federank.recommenders.methods.fcf import FCF as FCF
    from federank.recommenders.methods.fpl import FPL as FPL
    from federank.recommenders.methods.frugal import Frugal as Frugal
    from federank.recommenders.methods.ials import IALS as IALS
    from federank.recommenders.methods.neighbours import ItemKNN as ItemKNN
    from federank.recommenders.methods.neighbours import UserKNN as UserKNN
    from federank.recommenders.methods.pmf import PMF as PMF
    from federank.recommenders.methods.popular import MostPopular as MostPopular
    from federank.recommenders.methods.popular import Random as Random
    from federank.recommenders.methods.slim import SLIM as SLIM
    from federank.recommenders.methods.steps.fedmf import FedMF as FedMF
    from federank.recommenders.methods.steps.pfedrec import PFedRec as PFedRec
    from federank.recommenders.methods.svdpp import SVDPlusPlus as SVDPlusPlus
    from federank.recommenders.methods.vae import MultVAE as MultVAE
    from federank.recommenders.recommendations import Recommendations as Recommendations
    from federank.recommenders.recommendations import Recommended as Recommended
    from federank.recommenders.recommender import Recommender as Recommender
    from federank.recommenders.registry import register as register
    from federank.recommenders.stored.model_folder import load_model as load_model
    from federank.recommenders.stored.model_folder import load_split as load_split
    from federank.studies.results.results import Results as Results

_HOMES = {
    "audit_model": "federank.audit.audit",
    "audit_training": "federank.audit.audit",
    "Audited": "federank.audit.findings",
    "Findings": "federank.audit.findings",
    "Guess": "federank.audit.guess",
    "attack": "federank.audit.own_attacks",
    "register_attack": "federank.audit.own_attacks",
    "city": "federank.data.city.city",
    "Interactions": "federank.data.interactions",
    "load": "federank.data.loading",
    "register_reader": "federank.data.sources.own_readers",
    "Split": "federank.data.splits",
    "split_folds": "federank.data.splits",
    "split_given": "federank.data.splits",
    "split_leave_last_out": "federank.data.splits",
    "split_random": "federank.data.splits",
    "split_temporal": "federank.data.splits",
    "split_temporal_global": "federank.data.splits",
    "statistics": "federank.data.statistics.statistics",
    "read_split": "federank.data.stored.split_folder",
    "Conduct": "federank.engines.conduct",
    "Progress": "federank.engines.conduct",
    "FedeRankError": "federank.errors",
    "model_card": "federank.evaluation.card",
    "Evaluation": "federank.evaluation.evaluate",
    "evaluate": "federank.evaluation.evaluate",
    "fit": "federank.evaluation.fitting",
    "Searched": "federank.evaluation.grid",
    "search": "federank.evaluation.grid",
    "PredictionErrors": "federank.evaluation.prediction",
    "prediction_errors": "federank.evaluation.prediction",
    "register_metric": "federank.evaluation.metrics.ranking",
    "Comparison": "federank.evaluation.significance",
    "compare": "federank.evaluation.significance",
    "register_policy": "federank.protocol.policies.own_sharing",
    "Policy": "federank.protocol.policies.policy",
    "Device": "federank.protocol.steps.device",
    "FederatedSettings": "federank.protocol.steps.recipes",
    "Person": "federank.recommenders.enrolling",
    "enrol": "federank.recommenders.enrolling",
    "FederatedMethod": "federank.recommenders.federated_method",
    "Biases": "federank.recommenders.methods.biases",
    "BPR": "federank.recommenders.methods.bpr",
    "EASE": "federank.recommenders.methods.ease",
    "FCF": "federank.recommenders.methods.fcf",
    "FPL": "federank.recommenders.methods.fpl",
    "Frugal": "federank.recommenders.methods.frugal",
    "IALS": "federank.recommenders.methods.ials",
    "ItemKNN": "federank.recommenders.methods.neighbours",
    "UserKNN": "federank.recommenders.methods.neighbours",
    "PMF": "federank.recommenders.methods.pmf",
    "MostPopular": "federank.recommenders.methods.popular",
    "Random": "federank.recommenders.methods.popular",
    "SLIM": "federank.recommenders.methods.slim",
    "FedMF": "federank.recommenders.methods.steps.fedmf",
    "PFedRec": "federank.recommenders.methods.steps.pfedrec",
    "SVDPlusPlus": "federank.recommenders.methods.svdpp",
    "MultVAE": "federank.recommenders.methods.vae",
    "Recommendations": "federank.recommenders.recommendations",
    "Recommended": "federank.recommenders.recommendations",
    "Recommender": "federank.recommenders.recommender",
    "register": "federank.recommenders.registry",
    "load_model": "federank.recommenders.stored.model_folder",
    "load_split": "federank.recommenders.stored.model_folder",
    "Results": "federank.studies.results.results",
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
