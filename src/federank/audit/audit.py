"""The audit of any method that sends something: what an honest-but-curious server learns from its run.

    findings, about = audit_model(model)
    findings[-1].best                     the strongest attack, and how far it is above popularity

A model names the module that audits it (`audit`), with the two functions of this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from federank.audit.scoring import Audited
from federank.data.interactions import Interactions
from federank.errors import ModelError
from federank.methods.recommender import Recommender
from federank.simulation.options import TrainingOptions


def audit_model(model: Recommender, *, sees: str = "updates", people: int | None = None, known: int = 10) -> Audited:
    """Audit a trained model: the messages of its run are made again, and attacked.

    `sees` is what the server sees: `updates`, `anonymous` ones, or only `sums`. `people`: how many users are followed.
    """
    module = _module_of(model)
    model._fitted()
    audited: Audited = module.audit_model(model, sees=sees, people=people)
    return audited


def audit_training(
    model: Recommender,
    train: Interactions,
    *,
    sees: str = "updates",
    people: int | None = None,
    per_epoch: bool = False,
    training_options: TrainingOptions | None = None,
    known: int = 10,
) -> Audited:
    """Train a model and watch its run: findings of each epoch if asked, else of the last."""
    audited: Audited = _module_of(model).audit_training(
        model, train, sees=sees, people=people, per_epoch=per_epoch, training_options=training_options
    )
    return audited


def _module_of(model: Any) -> Any:
    path = getattr(model, "audit", "")
    if not path:
        name = getattr(model, "name", type(model).__name__)
        raise ModelError(f"A model of {name} cannot be audited, for it sends nothing; a federated method's can.")
    return import_module(path)
