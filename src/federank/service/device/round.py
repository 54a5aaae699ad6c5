"""A device's part of one round: what it takes part with, computation, transmission, the ledger; nothing is sent yet.

What the owner's policy lets the device take part with is worked out here, for every method; the rest is the method's
(methods/). A device that has promised a number of messages plays no round once it has sent them. The result is kept on
the disk as one whole by life.py before anything goes out.
"""

from __future__ import annotations

from federank.arrays import IntVector
from federank.protocol.ledger import Ledger
from federank.protocol.policies.policy import Outward, Policy, outward
from federank.service.device.methods.method import History, Model, Person, Played, RoundVector
from federank.service.device.methods.summed import Terms
from federank.service.device.requests.federation import Facts
from federank.service.device.state import Identity


def can_take_part(taken: Outward, policy: Policy, facts: Facts) -> bool:
    """Whether its owner lets the device, and with something: neither paused, nor nothing, nor everything to show."""
    most = facts.n_items - 1 if facts.rules.needs_others else facts.n_items
    return not policy.paused and 0 < len(taken.profile) <= most


def outward_of(identity: Identity, policy: Policy, history: IntVector, ledger: Ledger) -> Outward:
    """What the device would take part with now."""
    facts = identity.facts
    kept = facts.rules.outward_policy(policy)
    return outward(kept, identity.seed, identity.user, history, facts.n_items, ledger.really_liked())


def messages_left(identity: Identity, policy: Policy, ledger: Ledger) -> int | None:
    """How many messages may still leave this device in its life; None where no number was promised."""
    allowed = identity.facts.rules.messages(identity.facts.settings, policy)
    return None if allowed is None else max(0, allowed - ledger.spent)


def play(
    identity: Identity,
    policy: Policy,
    history: History,
    kept: RoundVector,
    model: Model,
    ledger: Ledger,
    round_number: int,
    terms: Terms | None = None,
) -> Played | None:
    """Play a round and record it in the ledger; nothing where the owner's policy leaves nothing to take part with.

    `terms` are those on which a message is split, where no single server may read it.
    """
    facts = identity.facts
    taken = outward_of(identity, policy, history.items, ledger)
    if not can_take_part(taken, policy, facts) or messages_left(identity, policy, ledger) == 0:
        return None
    person = Person(identity.seed, identity.user, facts.settings, facts.n_items, policy, taken, kept, terms)
    person = person._replace(ratings=history.ratings_of(taken.profile))
    return facts.rules.play(person, model, ledger, round_number)
