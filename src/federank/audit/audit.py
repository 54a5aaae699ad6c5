"""The audit of any method that sends something: what a honest-but-curious server learns from its run.

    findings, about = audit_model(model)
    findings[-1].best                     the strongest attack, and how far it is above popularity

Each family of methods has a room with its own observers and attacks; here the family is chosen.
"""

from __future__ import annotations

from typing import Any

from federank.audit.custom import audit_steps_model, audit_steps_training
from federank.audit.scoring import Audited
from federank.data.interactions import Interactions
from federank.errors import ModelError, SettingError
from federank.methods.federated_method import FederatedMethod
from federank.methods.fedrec.audit import audit_rating_model, audit_rating_training
from federank.methods.fedrec.recommender import RatingFactors
from federank.methods.fpl.audit import audit_pairs_model, audit_pairs_training
from federank.methods.fpl.recommender import FederatedPairs
from federank.methods.frugal.audit import audit_frugal_model, audit_frugal_training
from federank.methods.frugal.recommender import FewMessages
from federank.methods.recommender import Recommender
from federank.simulation.options import TrainingOptions


def audit_model(model: Recommender, *, sees: str = "updates", people: int | None = None) -> Audited:
    """Audit a trained model: the messages of its run are made again, and attacked.

    `sees` is what the server sees: `updates`, `anonymous` ones, or only `sums`. `people`: how many are followed.
    """
    if isinstance(model, Recommender):
        model._fitted()
    if isinstance(model, RatingFactors):
        return audit_rating_model(model, sees=sees, people=people)
    if isinstance(model, FederatedPairs):
        return audit_pairs_model(model, sees=sees, people=people)
    if isinstance(model, FewMessages):
        return audit_frugal_model(model, sees=sees, people=people)
    if isinstance(model, FederatedMethod):
        return audit_steps_model(model, sees=sees, people=people)
    raise _not_audited(model)


def audit_training(
    model: Recommender,
    train: Interactions,
    *,
    sees: str = "updates",
    people: int | None = None,
    per_epoch: bool = False,
    training_options: TrainingOptions | None = None,
) -> Audited:
    """Train a model and watch its run: findings of each epoch if asked, else of the last."""
    if isinstance(model, RatingFactors):
        if per_epoch:
            raise SettingError(f"An audit of {model.name} looks once, at the end of the run; leave out --per-epoch.")
        return audit_rating_training(model, train, sees=sees, people=people, training_options=training_options)
    if isinstance(model, FederatedPairs):
        return audit_pairs_training(
            model, train, sees=sees, people=people, per_epoch=per_epoch, training_options=training_options
        )
    if isinstance(model, FewMessages):
        return audit_frugal_training(
            model, train, sees=sees, people=people, per_epoch=per_epoch, training_options=training_options
        )
    if isinstance(model, FederatedMethod):
        return audit_steps_training(
            model, train, sees=sees, people=people, per_epoch=per_epoch, training_options=training_options
        )
    raise _not_audited(model)


def _not_audited(model: Any) -> ModelError:
    name = getattr(model, "name", type(model).__name__)
    return ModelError(f"A model of {name} cannot be audited, for it sends nothing; a federated method's can.")
