"""What a client does with a method, derived from its interface (federation/method.py). It names none.

A federation's settings are the method itself. Recommendations always come from `fold_in`, from the full history.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from federank._numerics.arrays import FloatVector
from federank.errors import SettingError
from federank.federation import wire
from federank.federation.client import (
    History,
    Model,
    Played,
    RoundVector,
    Rows,
    Terms,
    User,
    check_moved,
    numbers_in_range,
    solved,
    split,
)
from federank.federation.method import HOME, Client, FederatedMethod
from federank.federation.secure import length_of, secure_message
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.secagg.upload import rounding_chances

_HEADER = 8192


class ClientMethod(NamedTuple):
    """A method as a client takes part in it, with plain uploads or under secure aggregation."""

    method: FederatedMethod
    secure: bool

    @property
    def counts_messages(self) -> bool:
        """Whether the ledger counts uploads against a quota."""
        return self.secure or self.method.counts_uploads

    @property
    def is_home_alone(self) -> bool:
        """Whether recommendations always come from the home vector."""
        return "all" not in self.method.sharing_policies

    @property
    def needs_others(self) -> bool:
        """Whether there must be items that its owner does not have: to compare with, or to hide among."""
        return self.method.needs_unseen_items or not self.secure

    @property
    def state_size(self) -> int:
        """How many numbers a client keeps between rounds."""
        kind = self.method.records.client
        return len(self._vector_of(None if kind is None else wire.zeros(kind, self.method)))

    @property
    def model_bytes(self) -> int:
        """No model of the catalogue is longer on the wire."""
        return self.method.most_bytes() + 4 * self.method.n_items + _HEADER

    def read_rows(self, content: bytes) -> Rows:
        """Rows that were checked; raises `BadMessage`."""
        message = self.method.read(content)
        arrays, named = wire.values(message.part), wire.tables(message.part)
        tables = {name: arrays[name] for name in named}
        overall = {name: part for name, part in arrays.items() if name not in named and part.size}
        return Rows(message.round, message.items, Model(message.version, tables, overall))

    def sharing_policy(self, policy: Policy) -> Policy:
        """The policy, if the method can follow it: else decisions for a lifetime, and what they let out stands for the
        history. A sharing policy from outside may have decoys, as randomized response has.
        """
        known = self.method.sharing_policies
        is_known = ("randomized-response" if policy.brought else policy.sharing) in known
        if not is_known or ("all" not in known and policy.basis != "shared"):
            lifelong = " or ".join(name for name in known if name != "all")
            raise SettingError(
                "In this federation it is decided once for a lifetime which items may leave, and uploads are computed "
                f"from these alone; choose --sharing {lifelong}, with the basis shared."
            )
        if self.secure and policy.filling not in (None, "none"):
            raise SettingError(
                "No single server reads an upload of this federation, so virtual ratings hide nothing and would only "
                "blur what it learns; choose --filling none, or leave it out."
            )
        return policy

    def messages(self, policy: Policy | None = None) -> int | None:
        """Uploads over a lifetime at most; None: no limit."""
        own = None if policy is None else policy.messages
        limits = [limit for limit in (self.method.uploads_per_client or None, own) if limit is not None]
        return min(limits, default=None)

    def play(self, person: User, model: Model, ledger: Ledger, round_number: int) -> Played:
        """Play a round and record it in the ledger; under secure aggregation, what is sent is split already."""
        policy, taken, profile = person.policy, person.taken, person.taken.profile
        chosen = self._replace(method=self.method.chosen(policy, 1.0 if taken.lifelong else policy.pi))
        method, broadcast = chosen.method, self._broadcast(model)
        state = chosen._state_from(person.kept.values) if person.kept.stands(policy.basis, profile) else None
        client = Client(person.seed, person.user, round_number, profile, person.ratings, state, ledger.sampled())
        stage = None if person.terms is None else person.terms.offer.stage
        client = replace(client, withheld=profile[~taken.allowed], sent=ledger.spent, stage=stage)
        with numbers_in_range(), np.errstate(invalid="ignore", over="ignore"):
            result = method.client_update(client, broadcast)
            update = wire.checked(result.update, method.records.update, method)
            body = chosen._body(update, broadcast, person.terms)
            vector = chosen._vector_of(result.state)
        check_moved(vector)
        positives = profile if result.positives is None else result.positives
        ledger.record(round_number, taken, positives, result.negatives)
        allowed = chosen.messages(policy)
        if allowed is not None:
            noise = 0 if person.terms is None else person.terms.offer.noise
            ledger.count_message(round_number, len(positives), ledger.spent + 1, allowed, noise)
        learnt = RoundVector(vector, policy.basis, frozenset(profile.tolist()))
        rows = max((len(part) for part in wire.values(update).values() if part.ndim), default=1)
        return Played(learnt, body, rows, np.union1d(positives, result.negatives).astype(np.int32))

    def home_vector(self, seed: int, user: int, history: History, model: Model) -> FloatVector:
        """The user's factors from the full history, at home; nothing is sent."""
        client = Client(seed, user, HOME, history.items, history.ratings)
        return solved(lambda: np.asarray(self.method.fold_in(client, self._broadcast(model)), dtype=np.float32))

    def scores(self, model: Model, factors: FloatVector) -> FloatVector:
        """How good each item is; -inf for what must not be recommended."""
        scores: FloatVector = self.method.scores(self._broadcast(model), factors[None])[0]
        return scores

    def covered(self, model: Model) -> int:
        """How many items secure uploads on a model cover."""
        return self.method.covering(self._broadcast(model), 1).n_items

    def _broadcast(self, model: Model) -> Any:
        return self.method.records.sent(**model.tables, **model.overall)

    def _body(self, update: Any, broadcast: Any, terms: Terms | None) -> bytes:
        method = self.method
        if terms is None:
            return wire.encode(method.bounded(update, method.clip) if method.clip else update)
        stage, padded = terms.offer.stage, np.zeros(terms.offer.length, dtype=np.int32)
        method = method.covering(broadcast, stage)
        message = secure_message(method, stage, update, rounding_chances(length_of(method, stage), os.urandom))
        padded[: len(message)] = message
        return split(terms, padded)

    # A client's state as one vector of numbers: what its file keeps.

    def _vector_of(self, state: Any) -> FloatVector:
        kind = self.method.records.client
        if kind is None:
            return np.zeros(0, dtype=np.float32)
        parts = wire.values(wire.checked(state, kind, self.method)).values()
        return np.concatenate([part.ravel() for part in parts]).astype(np.float32)

    def _state_from(self, vector: FloatVector) -> Any:
        kind = self.method.records.client
        if kind is None:
            return None
        shapes = {name: part.shape for name, part in wire.values(wire.zeros(kind, self.method)).items()}
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
        parts = np.split(vector, ends[:-1])
        return kind(**{name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)})
