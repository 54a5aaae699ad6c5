"""The public API: each name once, with the module that defines it. `__init__.py` loads them on first use."""

from .audit.audit import (
    audit_model as audit_model,
)
from .audit.audit import (
    audit_training as audit_training,
)
from .audit.observer import (
    attack as attack,
)
from .audit.observer import (
    register_attack as register_attack,
)
from .audit.scoring import (
    Audited as Audited,
)
from .audit.scoring import (
    Findings as Findings,
)
from .audit.scoring import (
    Guess as Guess,
)
from .data.interactions import Interactions as Interactions
from .data.loading import (
    load as load,
)
from .data.loading import (
    register_reader as register_reader,
)
from .data.split_files import read_split as read_split
from .data.splits import (
    Split as Split,
)
from .data.splits import (
    split_folds as split_folds,
)
from .data.splits import (
    split_given as split_given,
)
from .data.splits import (
    split_leave_last_out as split_leave_last_out,
)
from .data.splits import (
    split_random as split_random,
)
from .data.splits import (
    split_strong as split_strong,
)
from .data.splits import (
    split_temporal as split_temporal,
)
from .data.splits import (
    split_temporal_global as split_temporal_global,
)
from .data.statistics import statistics as statistics
from .data.synthetic import city as city
from .errors import FedeRankError as FedeRankError
from .evaluation.card import model_card as model_card
from .evaluation.evaluate import (
    Evaluation as Evaluation,
)
from .evaluation.evaluate import (
    PredictionErrors as PredictionErrors,
)
from .evaluation.evaluate import (
    evaluate as evaluate,
)
from .evaluation.evaluate import (
    prediction_errors as prediction_errors,
)
from .evaluation.metrics import (
    mean_difference as mean_difference,
)
from .evaluation.metrics import (
    register_metric as register_metric,
)
from .evaluation.metrics import (
    standard_deviation_range as standard_deviation_range,
)
from .evaluation.search import (
    Searched as Searched,
)
from .evaluation.search import (
    fit as fit,
)
from .evaluation.search import (
    search as search,
)
from .evaluation.significance import (
    Comparison as Comparison,
)
from .evaluation.significance import (
    compare as compare,
)
from .federation.method import Aggregate as Aggregate
from .federation.method import Client as Client
from .federation.method import ClientResult as ClientResult
from .federation.method import DataSummary as DataSummary
from .federation.method import FederatedMethod as FederatedMethod
from .federation.method import ItemGradients as ItemGradients
from .federation.method import ItemSums as ItemSums
from .federation.method import ItemVectors as ItemVectors
from .federation.method import Records as Records
from .federation.method import UserVector as UserVector
from .federation.method import setting as setting
from .federation.wire import array as array
from .methods.baselines.dpals import PrivateALS as PrivateALS
from .methods.baselines.ease import EASE as EASE
from .methods.baselines.fedmf import FedMF as FedMF
from .methods.baselines.graph import GFCF as GFCF
from .methods.baselines.graph import RP3beta as RP3beta
from .methods.baselines.ials import IALS as IALS
from .methods.baselines.knn import (
    ItemKNN as ItemKNN,
)
from .methods.baselines.knn import (
    UserKNN as UserKNN,
)
from .methods.baselines.pfedrec import PFedRec as PFedRec
from .methods.baselines.popular import Biases as Biases
from .methods.baselines.popular import (
    MostPopular as MostPopular,
)
from .methods.baselines.popular import (
    Random as Random,
)
from .methods.baselines.slim import SLIM as SLIM
from .methods.baselines.vae import MultVAE as MultVAE
from .methods.federated_model import FederatedModel as FederatedModel
from .methods.fedrec.recommender import (
    PMF as PMF,
)
from .methods.fedrec.recommender import (
    SVDPlusPlus as SVDPlusPlus,
)
from .methods.fpl.recommender import (
    BPR as BPR,
)
from .methods.fpl.recommender import (
    FPL as FPL,
)
from .methods.fpl.recommender import (
    FedeRank as FedeRank,
)
from .methods.frugal.recommender import (
    FCF as FCF,
)
from .methods.frugal.recommender import (
    Frugal as Frugal,
)
from .methods.model_folder import (
    load_model as load_model,
)
from .methods.model_folder import (
    load_split as load_split,
)
from .methods.predicting import (
    User as User,
)
from .methods.predicting import (
    enrol as enrol,
)
from .methods.recommendations import (
    Recommendations as Recommendations,
)
from .methods.recommendations import (
    Recommended as Recommended,
)
from .methods.recommender import Recommender as Recommender
from .methods.registry import register as register
from .privacy.policy import (
    Policy as Policy,
)
from .privacy.policy import (
    register_policy as register_policy,
)
from .simulation.options import (
    Progress as Progress,
)
from .simulation.options import (
    TrainingOptions as TrainingOptions,
)
from .studies.results import Results as Results

__all__: list[str]
__version__: str
