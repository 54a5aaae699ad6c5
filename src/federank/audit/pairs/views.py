"""Views: what a curious server of each threat model has about some people, a block of people at a time.

updates      each device's Updates, linked over rounds: the observer's notes, and one more Update
anonymous    one Update and nothing else: nobody can tell which others came from the same device
sums         the sum over each round's devices, and who they were
outsider     the public model before and after a round, and so its sum; not who was in it
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federank.arrays import IntVector
from federank.audit.judging import in_blocks
from federank.audit.pairs.attacks.vector import recovered_vectors
from federank.audit.pairs.sums.observer import SumsObserver
from federank.audit.pairs.traffic import Observer
from federank.audit.pairs.updates import next_sums, next_updates
from federank.audit.pairs.view import AnyView, Lessons, PairsView, SumsView
from federank.audit.policies import known_policies
from federank.audit.senders import Senders
from federank.engines.pairs.federation import Federation
from federank.protocol.pairs.distribution import make_broadcast
from federank.protocol.policies.choices import Choices

_MOST_NEIGHBOURS = 2_000


def views(
    sees: str,
    federation: Federation,
    observer: Observer,
    sums: SumsObserver | None,
    rows: IntVector,
    choices: Choices,
    lessons: tuple[Lessons | None, Lessons | None],
) -> Iterator[tuple[IntVector, AnyView]]:
    """What the server knows of these people (rows of the observers' notes): their rows and the view, block by block."""
    n_items, recipe = len(federation.item_biases), federation.recipe
    factors = recipe.factors
    broadcast = make_broadcast(federation.round_number, federation.item_vectors[:, :factors], federation.item_biases)
    typical = max(1, round(recipe.rounds_per_epoch * recipe.clients_per_round / len(recipe.triples)))
    compared = np.arange(min(len(observer.people), _MOST_NEIGHBOURS), dtype=np.int32)
    senders = Senders(observer.sightings.as_positive, compared if sees == "updates" else compared[:0])
    for some in in_blocks(rows, n_items):
        people = observer.people[some]
        policies = known_policies(choices, people)
        if sums is not None:
            yield (
                some,
                SumsView(sums.chances(some), sums.vectors(some), broadcast, typical, policies, *lessons),
            )
            continue
        updates = list((next_sums if sees == "outsider" else next_updates)(federation, people))
        vectors = recovered_vectors(updates, broadcast, recipe.negative_regulariser)
        view = PairsView(
            observer.sightings.as_positive[some],
            observer.negatives_of(some),
            observer.sightings.negative_rows[some],
            updates,
            vectors,
            broadcast,
            typical,
            policies,
            None,
            *lessons,
        )
        if sees in ("anonymous", "outsider"):
            yield some, one_update_alone(view)
        else:
            yield some, view._replace(neighbours=senders.scores(view.times_positive, some))


def one_update_alone(view: PairsView) -> PairsView:
    """The same people for a server that can link nothing: what was noted is what one Update says."""
    positive, negative = np.zeros_like(view.times_positive), np.zeros_like(view.seen_negative)
    rows = np.zeros_like(view.negative_rows)
    for row, update in enumerate(view.updates):
        positive[row, update.items[update.biases > 0]] = 1
        negative[row, update.items[update.biases < 0]] = True
        rows[row] = int((update.biases < 0).sum())
    return view._replace(times_positive=positive, seen_negative=negative, negative_rows=rows)
