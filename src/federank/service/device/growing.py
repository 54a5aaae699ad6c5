"""Following a catalogue that grows: the operator of a federation adds items while its devices go on.

What a device knows stays true only if every item that it knows keeps its number: so a larger catalogue is taken where
it begins with the one at hand, and refused otherwise. Catalogue, model and what the federation says of itself are
replaced at once. Decisions for life stay: they are drawn by an item's number, and a new item draws its own. A category
that the owner let nothing leave of stays closed for its new items too.

Where uploads are sums nothing grows: the device has pinned a charter that names the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from federank.errors import BadAnswer
from federank.protocol.policies.policy import Policy
from federank.service.device.requests.client import Client
from federank.service.device.requests.federation import (
    Catalogue,
    Facts,
    fetch_catalogue,
    fetch_facts,
    fetch_model,
)
from federank.service.device.rules import BETWEEN_POLLS, MOST_OLDER_OFFERS
from federank.service.device.state import Identity
from federank.service.device.store.store import DeviceStore


def has_grown(before: Facts, now: Facts) -> bool:
    """Whether a federation says that its catalogue has grown, and that it is the same one otherwise."""
    same = (now.founding, now.method, now.factors) == (before.founding, before.method, before.factors)
    return same and not (before.is_summed or now.is_summed) and now.n_items > before.n_items


def follow_growth(store: DeviceStore, client: Client, identity: Identity, note: Callable[[str], None]) -> Identity:
    """Take the larger catalogue in, with a model of it; who the device is then. Nothing happens where it is the same.

    Of several workers one may not have heard of it yet, and gives a catalogue or a model from before: so it is asked
    again, with patience.
    """
    for attempt in range(MOST_OLDER_OFFERS):
        now = fetch_facts(client)
        if now.n_items == identity.facts.n_items and attempt + 1 < MOST_OLDER_OFFERS:
            client.sleep(BETWEEN_POLLS)  # a worker that lags behind
            continue
        if not has_grown(identity.facts, now):
            return identity
        try:
            catalogue = fetch_catalogue(client, now)
            model = fetch_model(client, now)
        except BadAnswer:
            if attempt + 1 == MOST_OLDER_OFFERS:
                raise
            client.sleep(BETWEEN_POLLS)
            continue
        break
    known = store.catalogue()
    refuse_other_items(known, catalogue)
    with store.transaction():
        policy = store.policy().policy
        store.write_growth(now.document, catalogue, model, closed_to_new_items(policy, known, catalogue))
    more = now.n_items - identity.facts.n_items
    note(f"The catalogue has grown by {more:,} to {now.n_items:,} items; this device knows them now.")
    return replace(identity, facts=now)


def refuse_other_items(known: Catalogue, now: Catalogue) -> None:
    """A catalogue that has grown begins with the one that was known."""
    if now.ids[: len(known.ids)] != known.ids:
        raise BadAnswer(
            "The server says that its catalogue has grown, but items that this device knows have other numbers in it. "
            "Nothing was sent; ask the operator, or enrol anew with another --state."
        )


def closed_to_new_items(policy: Policy, known: Catalogue, now: Catalogue) -> Policy:
    """The policy with new items of closed categories on its never-list: those of which every known item is on it."""
    never = policy.never_items
    if not never:
        return policy
    members: dict[str, list[int]] = {}
    for number, names in enumerate(known.categories):
        for name in names:
            members.setdefault(name, []).append(number)
    closed = {name for name, numbers in members.items() if never.issuperset(numbers)}
    new = range(len(known.ids), len(now.ids))
    return replace(policy, never_items=never | {n for n in new if closed.intersection(now.categories[n])})
