"""The audit of a run of few messages (Frugal, FCF): what a honest-but-curious server learns about the people behind it.

1. Follow people: everyone, or a drawn sample where people x items would pass a budget.
2. Watch: the engine plays the run once more, and each round's messages are read (messages.py), or its sums (sums.py).
3. Attack what is in the view (attacks.py), and judge the guesses by full histories and by what was held back.

A plain message gives all that it was made from away, so few messages are few chances to be read, and no secrecy. What
hides a person is that no one reads single messages; what stays hidden whatever is read is what is in no message.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from federank._numerics.arrays import FloatMatrix, IntVector
from federank.audit.observer import (
    Senders,
    draw_users,
    in_blocks,
    judge_everyone,
    known_policies,
    refuse_no_users,
    with_own_attacks,
)
from federank.audit.scoring import Audited, Findings, about_audit
from federank.data.interactions import Profiles
from federank.errors import SettingError
from federank.federation.wire import rows_of
from federank.methods.frugal.attacks import (
    FRUGAL_ATTACKS,
    UNSEEN,
    WITH,
    WITHOUT,
    AnyFrugalView,
    MessagesView,
    SumsReader,
    SumsView,
    read_message,
)
from federank.methods.frugal.objective import Objective
from federank.methods.frugal.private import PrivateFrugal
from federank.methods.frugal.private_messages import new_scratch, private_message
from federank.methods.frugal.protocol import covered
from federank.methods.frugal.recommender import FewMessages
from federank.methods.frugal.records import SummedMessages
from federank.methods.frugal.side_knowledge import KNOWN, MOST_USERS, as_seen, side_knowledge
from federank.methods.frugal.simulation import FrugalFederation, play, vectors_at_home
from federank.privacy.accountant import epsilon_of_mu, mu_of_noise

# What a reader of messages writes down about the people it follows, whatever form the messages have.


class Notes:
    """About the messages of the people that are followed."""

    def __init__(self, federation: FrugalFederation, people: IntVector) -> None:
        shape = len(people), federation.method.n_items
        self.people, self._federation = people, federation
        self.seen = np.full(shape, UNSEEN, dtype=np.uint8)  # all that was ever read of an item
        self.seen_last = np.full(shape, UNSEEN, dtype=np.uint8)  # what the last message alone says
        self.tastes = np.zeros(shape, dtype=np.float32)  # the catalogue, scored with the last message's vector


# Anyone who opens messages of integers: both servers together, or a device that sends them plainly.


class CompleteReader(Notes):
    """Reads the messages of the people that are followed, round by round."""

    def watch(self, answering: IntVector) -> None:
        """Read the messages of a round before it is folded."""
        federation = self._federation
        seed, number, stage = federation.method.seed, federation.round_number, federation.stage
        items, shared_profile = federation.items, federation.shared_profile
        known = rows_of(federation.model, items).directions
        columns = federation.method.columns if stage else 1
        workspace = new_scratch(len(items), columns)
        for row in np.flatnonzero(np.isin(self.people, answering)):
            person = int(self.people[row])
            profile = covered(items, shared_profile.of(person))
            if not private_message(known, profile, seed, person, number, stage, workspace):
                continue
            # From here on only what was sent is used: integers, and the public model.
            message = workspace.whole.reshape(-1, columns).astype(np.float64)
            strongest = message[:, np.abs(message).sum(axis=0).argmax()]
            if not stage:
                read = strongest > 0
                self.seen[row] = np.where(read, WITH, np.maximum(self.seen[row], WITHOUT))
                self.seen_last[row] = np.where(read, WITH, WITHOUT)
                self.tastes[row] = strongest
            else:
                row_of_history = message @ (known.wanted.T @ strongest)
                sign = np.sign(row_of_history @ strongest) or 1.0
                self.tastes[row, items] = (known.wanted @ (known.wanted.T @ (sign * strongest))) / known.scales


# The server that reads messages: what each one of the people it follows has sent, round by round.


class MessageReader(Notes):
    """Reads the messages of the people that are followed, round by round."""

    def watch(self, answering: IntVector) -> None:
        """Read the messages of a round before it is folded: the model is still as sent to its devices."""
        federation = self._federation
        method, model = federation.method, federation.model
        rows = np.flatnonzero(np.isin(self.people, answering)).astype(np.int32)
        if not federation.stage:  # a message of counts is the profile itself
            for row in rows:
                profile = federation.shared_profile.of(int(self.people[row]))
                self.seen_last[row] = WITHOUT
                self.seen_last[row, profile] = WITH
                self.seen[row] = np.maximum(self.seen[row], self.seen_last[row])
            return
        items = federation.items
        for some in in_blocks(rows, method.n_items):
            profiles = profiles_of(federation.shared_profile, self.people[some])
            scores = vectors_at_home(method, model, profiles) @ model.vectors.T
            strengths = strengths_of(method.objective, scores, profiles)
            # From here on only what was sent is used: strengths, vectors, and the public model.
            read = read_message(method.objective, strengths, scores)[:, items]
            last = np.full((len(some), method.n_items), UNSEEN, dtype=np.uint8)
            last[:, items] = np.where(read, WITH, WITHOUT)
            self.seen[some], self.seen_last[some] = np.maximum(self.seen[some], last), last
            self.tastes[some] = scores


def strengths_of(objective: Objective, scores: FloatMatrix, profiles: Profiles) -> FloatMatrix:
    """What these people's messages say of every item, from its score and whether it is in the profile."""
    strengths: FloatMatrix = -objective.unobserved * scores
    for row in range(len(scores)):
        own = profiles.of(row)
        strengths[row, own] = objective.liked * (1 - scores[row, own])
    return strengths


def profiles_of(profiles: Profiles, people: IntVector) -> Profiles:
    """The profiles of these people alone, in their order."""
    parts = [profiles.of(person) for person in people]
    starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
    return Profiles(starts, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32))


MOST_CELLS = 2**25
"""By default, notes are kept of this many (person, item) cells at most: about 230 megabytes."""
_MOST_NEIGHBOURS = 2_000

SERVERS = {
    "updates": "each device's messages, linkable over rounds, and the public model",
    "plain": "each device's messages, linkable over rounds, and the public model",
    "both": "what two servers that collude put together: each device's messages, and the public model",
    "anonymous": "one message at a time, from a device it cannot recognise again, and the public model",
    "sums": "the sums over each round's devices without noise, who they were, and the public model",
    "leader": "each round's sums with the helper's noise on them, who took part, and the public model",
    "helper": "each round's sums with the leader's noise on them, who took part, and the public model",
    "outsider": "each round's sums as they are published, with all noise, who took part, and every public model",
}
"""What the observer sees."""
ADVERSARIES = tuple(SERVERS)
READERS = ("updates", "plain", "both", "anonymous")
"""Those who see single messages."""


def audit_model(
    model: FewMessages, *, sees: str, people: int | None, per_epoch: bool = False, known: int = KNOWN
) -> Audited:
    """Audit a trained model: findings after each message of everyone's if asked, else after the last.

    An observer of sums or models also attacks users of whom it knows this many items (side_knowledge.py); 0: not.
    """
    refuse(model, sees=sees, people=people)
    started = time.perf_counter()
    audit = _Audit(model, sees, people)
    last = audit.epochs
    findings = [audit.look(epoch) for epoch in range(1 if per_epoch else last, last + 1)]
    about = audit.about(time.perf_counter() - started)
    if known and sees not in READERS:
        about["side_knowledge"] = side_knowledge(model, sees=sees, users=people or MOST_USERS, known=known)
    return Audited(findings, about)


class _Audit:
    """An audit while it runs: the run that is played once more, and the notes about it."""

    def __init__(self, model: FewMessages, sees: str, wanted: int | None) -> None:
        self._model, self._sees, data = model, sees, model.training
        self._federation = model.federation(data)
        schedule = self._federation.schedule
        self.epochs = schedule.rounds // schedule.cohorts
        drawn = draw_users(schedule.seed, schedule.participants, wanted)
        self._people: IntVector = np.sort(drawn[: wanted or max(1, MOST_CELLS // data.n_items)])
        self._sums = SumsReader(self._federation)
        self._messages = _reader(self._federation, self._people) if sees in READERS else None
        self._sent = np.zeros((len(self._people), data.n_items), dtype=np.bool_)

    def look(self, epoch: int) -> Findings:
        """Watch until everyone could have sent this many messages, run all attacks, and judge them."""
        federation, data = self._federation, self._model.training
        play(federation, epoch * federation.rounds_per_epoch - federation.round_number, watch=self._watch)
        senders, attacks = self._senders(), with_own_attacks(FRUGAL_ATTACKS[self._sees], "frugal", self._sees)
        return judge_everyone(
            epoch, data, self._people, self._sent, attacks, view_of=lambda rows: self._view(rows, senders)
        )

    def about(self, seconds: float) -> dict[str, Any]:
        """What is reported about the audit itself."""
        federation, schedule = self._federation, self._federation.schedule
        about = about_audit(
            self._model.training,
            sees=self._sees,
            threat_model=SERVERS[self._sees],
            cohort=max(1, len(schedule.participants) // schedule.cohorts),
            followed=len(self._people),
            attacked=len(self._people),
            shadows=0,
            rounds=federation.round_number,
            training_seconds=self._model.report["seconds"],
            audit_seconds=seconds,
        )
        about |= {"family": "squares", "messages": int(federation.sent.max(initial=0))}
        return about | self._guarantee()

    def _guarantee(self) -> dict[str, Any]:
        """What the noise allows this observer at most, where there is noise and it does not see messages."""
        method, known = self._federation.method, self._sees in ("leader", "helper", "outsider")
        if not isinstance(method, PrivateFrugal) or not known:
            return {}
        sigmas = method.plan.sigmas(int(self._federation.sent.max(initial=0)))
        if not all(sigmas):
            return {}
        # An outsider has both servers' noise before it: variances add up.
        mu = mu_of_noise(sigmas) / (math.sqrt(2) if self._sees == "outsider" else 1)
        delta = self._model.implicit_settings().delta
        return {"epsilon": epsilon_of_mu(mu, delta), "delta": delta, "order_allowed": most_order(mu)}

    def _watch(self, answering: IntVector, sums: SummedMessages) -> None:
        self._sums.watch(answering, as_seen(self._sees, self._federation, sums)[0])
        if self._messages is not None:
            self._messages.watch(answering)
        shared_profile, real = self._federation.shared_profile, self._federation.shared_profiles.real
        for row in np.flatnonzero(np.isin(self._people, answering)):
            here = slice(shared_profile.starts[self._people[row]], shared_profile.starts[self._people[row] + 1])
            items = shared_profile.items[here][real[here]] if len(real) else shared_profile.items[here]
            self._sent[row, items] = True

    def _senders(self) -> Senders | None:
        if self._messages is None:
            return None
        compared = np.arange(min(len(self._people), _MOST_NEIGHBOURS), dtype=np.int32)
        return Senders((self._seen() == WITH).astype(np.uint8), compared)

    def _seen(self) -> NDArray[np.uint8]:
        assert self._messages is not None
        return self._messages.seen_last if self._sees == "anonymous" else self._messages.seen

    def _view(self, rows: IntVector, senders: Senders | None) -> AnyFrugalView:
        data, people = self._model.training, self._people[rows]
        typical = max(1, round(len(data) / data.n_users))
        if self._messages is None or senders is None:
            sums = self._sums
            return SumsView(sums.counts(people), sums.tastes(people), sums.popularity(), typical)
        seen = self._seen()[rows]
        return MessagesView(
            seen,
            self._messages.tastes[rows],
            senders.scores((seen == WITH).astype(np.uint8), rows),
            self._sums.popularity(),
            typical,
            known_policies(self._model.choices, people),
        )


def most_order(mu: float) -> float:
    """How often, at most, anyone tells two worlds apart in which a person's messages are there or zeros (AUC)."""
    return float(ndtr(mu / math.sqrt(2)))


def _reader(federation: FrugalFederation, people: IntVector) -> MessageReader | CompleteReader:
    return CompleteReader(federation, people) if federation.is_private else MessageReader(federation, people)


def refuse(_model: FewMessages, *, sees: str, people: int | None, **_how: Any) -> None:
    """Refuse what cannot be audited, before any long work."""
    if sees not in SERVERS:
        raise SettingError(f"No server sees {sees!r}; there are {', '.join(SERVERS)}.")
    refuse_no_users(people)
