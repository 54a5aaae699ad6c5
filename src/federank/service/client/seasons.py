"""A new season on a client: what it guarantees, what its owner has agreed to, and how the client goes on in it.

Within a season nothing changes. Of a new one the client fetches the config and checks that both servers have signed it
and every season between (secure.py). Then it compares: with the season before, and with the owner's lifetime cap of
uploads and epsilon. A weaker season needs the owner's consent (`federank client season --accept`); one beyond a cap
that the owner has set is refused. Without an own cap the usual one applies: three seasons like the first.

Items keep their numbers, so history, never-list, ledger and what was decided once for a lifetime stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from federank.errors import BadAnswer, NoAnswer, SettingError
from federank.federation.client import Terms, cost_of, spent_in_total
from federank.privacy.accountant import epsilon_of_mu, mu_for
from federank.privacy.ledger import Ledger
from federank.privacy.policy import Policy
from federank.service.client.federation import Catalogue, FederationInfo, fetch_catalogue, fetch_info, fetch_model
from federank.service.client.http import Client
from federank.service.client.outcomes import ask_outcomes
from federank.service.client.rules import BETWEEN_POLLS, MOST_OLDER_OFFERS
from federank.service.client.secure import Pinned, pin_season, refuse_another_list, weaker_config
from federank.service.client.state import Identity, KeptSeason
from federank.service.client.store import ClientStore

USUAL_SEASONS = 3
"""Without a cap of its own a client takes part in as much as three seasons like its first."""
_SLACK = 1e-9
Note = Callable[[str], None]


class Totals(NamedTuple):
    """Uploads and mu squared: of a season, or of all of them."""

    uploads: int | None
    cost: float | None  # mu squared; None where there is no noise

    def epsilon(self, delta: float) -> float | None:
        """The epsilon of these uploads; None where there is none."""
        return None if self.cost is None else epsilon_of_mu(math.sqrt(self.cost), delta)


def promised(uploads: int | None, pinned: Pinned | None) -> Totals:
    """What a season may take at most."""
    mu = math.inf if pinned is None else pinned.config.mu()
    return Totals(uploads, None if math.isinf(mu) else mu**2)


def lifetime_cap(policy: Policy, first: KeptSeason, delta: float) -> Totals:
    """What the client sends over its lifetime at most: as the owner says, else three seasons like the first."""
    uploads = policy.messages
    if uploads is None and first.uploads is not None:
        uploads = USUAL_SEASONS * first.uploads
    cost = None if first.mu is None else USUAL_SEASONS * first.mu**2
    if policy.epsilon is not None:
        cost = mu_for(policy.epsilon, delta) ** 2
    return Totals(uploads, cost)


def after(ledger: Ledger, season: Totals) -> Totals:
    """What will have been sent in total once a season has taken all that it may."""
    spent = spent_in_total(ledger)
    cost = None if season.cost is None or math.isinf(spent) else spent + season.cost
    return Totals(None if season.uploads is None else len(ledger.messages) + season.uploads, cost)


def beyond(total: Totals, cap: Totals) -> list[str]:
    """In which ways a total is more than a cap allows."""
    found = []
    if cap.uploads is not None and total.uploads is not None and total.uploads > cap.uploads:
        found.append(f"{total.uploads} uploads in total, above {cap.uploads}")
    if cap.cost is not None and (total.cost is None or total.cost > cap.cost * (1 + _SLACK)):
        guarantee = "no guarantee" if total.cost is None else f"mu {math.sqrt(total.cost):.4g}"
        found.append(f"{guarantee} in total, where mu {math.sqrt(cap.cost):.4g} is allowed")
    return found


def weaker(before: Identity, info: FederationInfo, pinned: Pinned | None) -> list[str]:
    """In which ways a season protects the client less than the season before."""
    known = before.info.uploads
    found = ["more uploads"] if known is not None and (info.uploads is None or info.uploads > known) else []
    if before.sums is not None and pinned is not None:
        found += weaker_config(before.sums.config, pinned.config)
    return found


def has_new_season(before: FederationInfo, now: FederationInfo) -> bool:
    """Whether the same federation is in a later season."""
    return now.federation_id == before.federation_id and now.season > before.season


def follow_season(
    store: ClientStore, client: Client, identity: Identity, note: Note, *, accepts: bool = False
) -> Identity:
    """Go on in the federation's season, if it is a later one; who the client is then. `accepts`: its owner consents.

    Of several workers one may not know it yet, and gives a catalogue or a model from before: so it is asked
    again, with patience.
    """
    for attempt in range(MOST_OLDER_OFFERS):
        now = fetch_info(client)
        if not has_new_season(identity.info, now):
            if now.season == identity.info.season and attempt + 1 < MOST_OLDER_OFFERS and not accepts:
                client.sleep(BETWEEN_POLLS)  # a worker that lags behind
                continue
            return identity
        try:
            return _followed(store, client, identity, now, note, accepts=accepts)
        except BadAnswer:
            if attempt + 1 == MOST_OLDER_OFFERS:
                raise
            client.sleep(BETWEEN_POLLS)
    return identity


def _followed(
    store: ClientStore, client: Client, identity: Identity, now: FederationInfo, note: Note, *, accepts: bool
) -> Identity:
    refuse_another_federation(identity.info, now)
    pinned = None if identity.sums is None else pin_season(identity.sums, client, now)
    refuse_season(store, identity, now, pinned, accepts=accepts)
    catalogue = fetch_catalogue(client, now)
    refuse_other_items(store.catalogue(), catalogue)
    if pinned is not None:
        refuse_another_list(pinned.config, catalogue.sha256)
    model = fetch_model(client, now)
    try:
        ask_outcomes(store, client, identity, note)  # by the config of the season that they were sent in
    except NoAnswer as reason:
        note(f"What became of the last uploads is not known ({reason})")
    known, renewed = store.catalogue(), replace(identity, info=now, sums=pinned)
    with store.transaction():
        policy = store.policy().policy
        store.write_season(renewed, catalogue, model, closed_to_new_items(policy, known, catalogue))
    note(
        f"Season {now.season} has begun: {_of(promised(now.uploads, pinned), now)}. {len(catalogue.ids):,} items, "
        f"{len(catalogue.ids) - len(known.ids):,} of them new and {len(catalogue.ended):,} ended."
    )
    return renewed


def _of(season: Totals, info: FederationInfo) -> str:
    uploads = "no quota of uploads" if season.uploads is None else f"at most {season.uploads} uploads"
    return uploads + (f", until {info.until}" if info.until else "")


def refuse_another_federation(before: FederationInfo, now: FederationInfo) -> None:
    """A season has the method of the season before, and vectors of the same size."""
    same = ("method", "is_summed", "state_size", "scale")
    if any(getattr(before, name) != getattr(now, name) for name in same) or now.n_items < before.n_items:
        raise BadAnswer(
            "The server's new season has another method, scale or size of vectors than the season before. Nothing was "
            "sent; ask the operator."
        )


def refuse_season(
    store: ClientStore, identity: Identity, now: FederationInfo, pinned: Pinned | None, *, accepts: bool
) -> None:
    """Refuse a season that is weaker than the one before, or beyond the lifetime cap, unless its owner consents."""
    policy, ledger, first = store.policy().policy, store.ledger(), store.seasons()[0]
    delta = 1e-6 if pinned is None else float(pinned.config.delta)
    total = after(ledger, promised(now.uploads, pinned))
    usual = lifetime_cap(replace(policy, messages=None, epsilon=None), first, delta)
    own = Totals(policy.messages, None if policy.epsilon is None else mu_for(policy.epsilon, delta) ** 2)
    excess = beyond(total, own)
    if excess:
        raise SettingError(
            f"Season {now.season} has begun, and would exceed your own lifetime cap: {' and '.join(excess)}. Nothing "
            "was changed or sent. `federank client policy --messages N --epsilon E` changes the cap."
        )
    if accepts:
        return
    asked = Totals(usual.uploads if own.uploads is None else None, usual.cost if own.cost is None else None)
    reasons = weaker(identity, now, pinned) + beyond(total, asked)
    if reasons:
        raise SettingError(
            f"Season {now.season} has begun and needs your consent: {' and '.join(reasons)}. Nothing was changed or "
            "sent. `federank client season` shows it, and `federank client season --accept` accepts it."
        )


def season_policy(policy: Policy, ledger: Ledger) -> Policy:
    """The policy with what is left of the lifetime cap of uploads for this season."""
    if policy.messages is None or not ledger.earlier:
        return policy
    return replace(policy, messages=max(0, policy.messages - ledger.earlier))


def within_cap(policy: Policy, ledger: Ledger, terms: Terms) -> bool:
    """Whether an upload stays within the owner's lifetime cap of epsilon, if there is one."""
    if policy.epsilon is None:
        return True
    most = mu_for(policy.epsilon, float(terms.config.delta)) ** 2
    cost = cost_of(terms.offer.noise) or math.inf
    return spent_in_total(ledger) + cost <= most * (1 + _SLACK)


def refuse_other_items(known: Catalogue, now: Catalogue) -> None:
    """Items keep their numbers."""
    if now.ids[: len(known.ids)] != known.ids:
        raise BadAnswer(
            "Items that this client knows have other numbers in the new season's catalogue. Nothing was sent; ask the "
            "operator, or enrol again with another --state."
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
