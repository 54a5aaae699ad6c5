"""A device's first day: what the federation is, which of its items the owner has, what the owner allows; then its id.

Everything is read and checked before the server is asked for an id, and the state file gets its name only once it is
whole: an enrolment that fails leaves nothing behind. The server learns that one more device is there, and nothing else;
the words that name the device's draws are made here and never sent (whoever knows them could replay its choices).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from federank.errors import FedeRankError, SettingError
from federank.protocol.policy import Policy
from federank.service.device.client import Client
from federank.service.device.history import Matched, read_profile
from federank.service.device.messages import (
    MOST_CATALOGUE_BYTES,
    Catalogue,
    Facts,
    merged,
    read_catalogue,
    read_enrolment,
    read_facts,
    read_rows,
)
from federank.service.device.round import first_vector
from federank.service.device.state import Identity, Model, found, keep_model, policy_from_values
from federank.service.device.store import BadState, created

_TRIES = 5


class Chosen(NamedTuple):
    """A policy, and who chose it: the owner, or the federation's suggestion because the owner named none."""

    policy: Policy
    by: str


def enrol(
    client: Client,
    path: Path,
    profile: Path,
    choose: Callable[[Facts, Catalogue], Chosen],
    *,
    ca: str | None = None,
    insecure: bool = False,
    random_bits: Callable[[int], int] = secrets.randbits,
) -> tuple[Matched, Chosen, Facts]:
    """Make a device of this history at this path; what of the history the federation knows, and the policy.

    `random_bits` makes the secret words that name its draws: a rehearsal that must come out the same gives its own.
    """
    if path.exists():
        raise BadState(f"{path} is there already; a new device needs another --state.")
    told = client.ask("GET", "/federation", tries=_TRIES).content
    facts = read_facts(told)
    catalogue = read_catalogue(
        client.ask(
            "GET",
            "/catalogue",
            most_bytes=MOST_CATALOGUE_BYTES,
            tries=_TRIES,
            headers={"Accept-Encoding": "gzip"},
        ).content,
        facts,
    )
    matched = read_profile(profile, catalogue)
    refuse_empty(profile, matched, facts)
    chosen = choose(facts, catalogue)
    rows = read_rows(
        client.ask("GET", "/model", most_bytes=facts.most_model_bytes, tries=_TRIES).content,
        facts.settings.factors,
        facts.n_items,
    )
    model = Model(rows.version, *merged(rows, None, facts.n_items))
    seed, user = random_bits(32), random_bits(31)
    vector = first_vector(facts, seed, user)
    with created(path) as sql:
        headers = {"Content-Type": "application/json"}
        device, token = read_enrolment(client.ask("POST", "/devices", b"{}", tries=_TRIES, headers=headers).content)
        identity = Identity(
            server=client.address,
            device=device,
            token=token,
            seed=seed,
            user=user,
            facts=facts,
            ca=ca,
            insecure=insecure,
        )
        found(sql, identity, told, chosen.policy, chosen.by, matched.profile, vector, catalogue)
        keep_model(sql, model)
    client.token = token
    return matched, chosen, facts


def refuse_empty(profile: Path, matched: Matched, facts: Facts) -> None:
    """A history that says nothing cannot be learnt from."""
    if len(matched.profile) == 0:
        raise SettingError(
            f"None of the {matched.named:,} items in {profile} is in this federation's catalogue of "
            f"{facts.n_items:,}; the first is {matched.unknown[0]!r}. Ids or titles of the catalogue are needed."
            if matched.unknown
            else f"{profile} names no item; a column `item` with ids or titles is needed."
        )
    if len(matched.profile) == facts.n_items:
        raise SettingError(f"{profile} names the whole catalogue; there is nothing left to compare with or recommend.")


def suggested(facts: Facts) -> Chosen:
    """The federation's suggestion, for an owner who named no policy."""
    if facts.suggested_policy is None:
        raise SettingError(
            "What may leave this device? This federation suggests nothing; say it with --pi, from 0 (no liked item) to "
            "1 (all of them), and --sharing sticky so that it holds for life."
        )
    values: dict[str, Any] = {name: value for name, value in facts.suggested_policy.items() if value is not None}
    try:
        return Chosen(policy_from_values(values), "suggested")
    except (FedeRankError, TypeError, OverflowError) as reason:
        raise SettingError(
            f"This federation suggests a policy that cannot be followed ({reason}); choose your own, with --pi."
        ) from reason
