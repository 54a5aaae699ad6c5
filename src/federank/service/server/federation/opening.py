"""Opening a store for a server: bring it up to date, then go on with the federation in it or establish one.

A store holds one federation. Opened again, what it is comes from the store; settings of rounds may change, and what
would make another federation of it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from federank.data.interactions import Interactions
from federank.errors import SettingError
from federank.recommenders.stored.model_folder import load_model
from federank.service.server.families.family import Family
from federank.service.server.families.registry import FAMILIES
from federank.service.server.federation.catalogue import catalogue_of
from federank.service.server.federation.charter import Charter, read_charter, usual_noun
from federank.service.server.federation.establishing import establish, renew_admin_token
from federank.service.server.federation.growing import begins_with
from federank.service.server.settings import LEAST_MINIMUM, RoundSettings, refuse_few
from federank.service.server.store.actions import note_action
from federank.service.server.store.database import Connection, Database
from federank.service.server.store.restoring import jump_ahead
from federank.service.server.store.schema import migrate
from federank.service.server.store.statements.facts import get_fact, put_fact
from federank.service.server.sums.agreeing import (
    SumsDemand,
    refuse_absent_helper,
    refuse_another_agreement,
    rounds_of_sums,
)

DEFAULT_METHOD = "frugal"


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What an operator asks of a store; whatever is not given stays as it is there, or takes its default."""

    data: Callable[[], Interactions]
    """Reads the data whose items are the catalogue."""
    source: str
    """What the operator calls the data."""
    names_data: bool = True
    """Whether the operator has named them; else an old federation's own catalogue will do."""
    name: str | None = None
    method: str | None = None
    """What the federation learns by; for a new one where nothing is said, the trained model's, or `DEFAULT_METHOD`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Those of the method's settings that are given."""
    rounds: dict[str, Any] = field(default_factory=dict)
    """Those of `RoundSettings` that are given."""
    start_from: Path | None = None
    """A trained model whose item factors a new federation begins with."""
    suggested_policy: dict[str, Any] | None = None
    noun: dict[str, str] | None = None
    description: str | None = None
    """What people should know of it before they take part."""
    seen: str | None = None
    """What somebody says of an item that they know already."""
    run_by: str | None = None
    """Who runs it, in their own words."""
    sums: SumsDemand | None = None
    """A helper, where uploads are to be such that no single server can read one."""
    restored: bool = False
    """The store is a backup that was put back."""
    new_admin_token: bool = False
    accepts_few: bool = False
    """Rounds may have so few reports that an outsider can read Updates from what they change."""


def open_store(address: str, demand: Demand) -> str | None:
    """Make a store ready to be served; the operator's token if there is a new one."""
    database = Database(address)
    is_new = database.dialect == "sqlite" and not database.path.exists()
    if is_new:
        # Refused before there is a file; with what an old store holds they may make sense.
        RoundSettings(**demand.rounds)
        if demand.start_from is None or demand.method is not None:
            _chosen(demand, DEFAULT_METHOD)
        if demand.sums is not None:
            refuse_absent_helper(demand.sums)  # who is stopped while it waits for one leaves no file behind either
    try:
        with database.connection() as connection:
            migrate(connection)
            charter = read_charter(connection)
            token = _begin(connection, demand) if charter is None else None
            if charter is not None:
                _go_on(connection, charter, demand)
            noun = demand.noun or (usual_noun(demand.source) if charter is None else None)
            told = {"description": demand.description, "run_by": demand.run_by, "seen": demand.seen}
            for name, value in ({"suggested_policy": demand.suggested_policy, "noun": noun} | told).items():
                if value is not None:
                    with connection.transaction():
                        put_fact(connection, name, value)
            return renew_admin_token(connection) if demand.new_admin_token and token is None else token
    except BaseException:
        database.release()
        if is_new:  # a federation that is not begun leaves no file behind
            for part in ("", "-wal", "-shm"):
                Path(f"{database.path}{part}").unlink(missing_ok=True)
        raise
    finally:
        database.release()


def _begin(connection: Connection, demand: Demand) -> str | None:
    trained = None if demand.start_from is None else load_model(demand.start_from)
    family, settings, rounds = _chosen(demand, getattr(trained, "name", DEFAULT_METHOD))
    data = demand.data()
    return establish(
        connection, settings, data, rounds, family=family, name=demand.name, trained=trained, sums=demand.sums
    )


def _chosen(demand: Demand, learnt_by: str) -> tuple[Family, Any, RoundSettings]:
    """The method of a new federation, its settings and those of its rounds, or a refusal."""
    family = FAMILIES[demand.method or (learnt_by if learnt_by in FAMILIES else DEFAULT_METHOD)]
    _refuse_settings_of_others(family, demand)
    _refuse_idle_settings(family, demand)
    _refuse_sharing(family, demand)
    settings = family.settings(**{**family.defaults, **demand.settings})
    wanted = {**family.rounds, **(rounds_of_sums(demand.sums, demand.rounds) if demand.sums else demand.rounds)}
    rounds = _rounds_of(family, wanted)
    if demand.sums is None and not demand.accepts_few:  # sums have a least cohort, and noise
        if "minimum" not in demand.rounds:
            rounds = replace(rounds, minimum=min(LEAST_MINIMUM, rounds.enough))
        refuse_few(rounds)
    return family, settings, rounds


def _go_on(connection: Connection, charter: Charter, demand: Demand) -> None:
    refuse_another(charter, demand)
    if demand.rounds and charter.sums is not None:
        least = charter.sums.charter.least_cohort
        if demand.rounds.get("minimum", least) < least:
            raise SettingError(f"minimum is below the least cohort of {least} that the charter promises; leave it out.")
    if demand.rounds:
        rounds = _rounds_of(charter.family, get_fact(connection, "rounds") | demand.rounds)
        if "minimum" in demand.rounds and charter.sums is None and not demand.accepts_few:
            refuse_few(rounds)
        with connection.transaction():
            put_fact(connection, "rounds", asdict(rounds))
            note_action(connection, "settings of rounds", **demand.rounds)
    if demand.restored:
        version = jump_ahead(connection)
        with connection.transaction():
            note_action(connection, "restored", version=version)


def _rounds_of(family: Family, values: dict[str, Any]) -> RoundSettings:
    """The settings of rounds, in a mode that the method can be played in."""
    rounds = RoundSettings(**values)
    if rounds.mode not in family.modes:
        raise SettingError(
            f"mode is {rounds.mode}, but a fold of {family.method} needs messages that belong to one version of the "
            f"model; leave --mode out, or say {' or '.join(family.modes)}."
        )
    return rounds


def _refuse_settings_of_others(family: Family, demand: Demand) -> None:
    """What belongs to another method is refused, and not left unheard."""
    foreign = [name for name in demand.settings if name not in family.federation_settings]
    if foreign:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        raise SettingError(
            f"The federation's method is {family.method}, which has no {flags}; leave it out, or name another --method "
            "for a new federation."
        )


def _refuse_idle_settings(family: Family, demand: Demand) -> None:
    """What means nothing with a helper, or nothing without one, is refused too."""
    if family.sums is None:
        return
    idle, why = (
        (family.sums.only, "means something only where messages are sums: name a --helper, or leave it out")
        if demand.sums is None
        else (family.sums.idle, "hides nothing where no single server reads a message; leave it out, or the --helper")
    )
    for name in idle:
        if name in demand.settings:
            raise SettingError(f"--{name.replace('_', '-')} {demand.settings[name]} {why}.")


def _refuse_sharing(family: Family, demand: Demand) -> None:
    """A suggestion that devices could not follow is not made."""
    suggested = (demand.suggested_policy or {}).get("sharing")
    if suggested not in (None, *family.sharing):
        raise SettingError(
            f"--suggest-sharing is {suggested}, but devices of {family.method} decide once for life; "
            f"{' or '.join(family.sharing)} is needed."
        )


def refuse_another(charter: Charter, demand: Demand) -> None:
    """A store holds one federation: refuse settings, or data, of another."""
    if demand.name not in (None, charter.name):
        raise SettingError(
            f"The store holds a federation called {charter.name}, not {demand.name}; leave --name out, or name "
            "another --store for a new federation."
        )
    if demand.method not in (None, charter.family.method):
        raise SettingError(
            f"The store holds a federation whose method is {charter.family.method}, not {demand.method}; leave "
            "--method out, or name another --store for a new federation."
        )
    _refuse_settings_of_others(charter.family, demand)
    _refuse_sharing(charter.family, demand)
    if demand.sums is not None:
        refuse_another_agreement(charter.sums, demand.sums, charter.family, charter.settings)
    for name in charter.family.federation_settings:
        kept, asked = getattr(charter.settings, name), demand.settings.get(name)
        if asked not in (None, kept) and not (name == "triples" and asked == "mean"):
            raise SettingError(
                f"The store holds a federation with {name} = {kept}, not {asked}; leave "
                f"--{name.replace('_', '-')} out, or name another --store for a new federation."
            )
    if demand.start_from is not None:
        raise SettingError("The store holds a federation that has begun; --start-from is for a new --store.")
    if demand.names_data and not begins_with(charter.catalogue.content, catalogue_of(demand.data()).content):
        raise SettingError(
            f"The store holds a federation called {charter.name} with another catalogue than {demand.source}; "
            "leave --data out to go on with it, or name another --store."
        )
