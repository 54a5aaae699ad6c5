"""Opening a store for a server: bring it up to date, then go on with the federation in it or establish one.

A store holds one federation. Opened again, what it is comes from the store, so that the command line of the first
start works at every later one. Settings of rounds may change. A flag that matters only at the first start and that
differs from the store's value is logged and has no effect.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from federank.checks import unknown_name
from federank.errors import FedeRankError, LeaderNotAllowed, ModelError, SettingError
from federank.service.server.config import (
    FederationConfig,
    catalogue_of,
    federation_id_of,
    read_config,
    usual_noun,
    why_unreadable,
)
from federank.service.server.logs import Log
from federank.service.server.methods import SERVER_METHODS, ServerMethod
from federank.service.server.model_versions import first_model, stored_content
from federank.service.server.seasons import same_items
from federank.service.server.secure_config import (
    SecaggSpec,
    agree,
    agreed_values,
    leader_key,
    put_agreement,
    put_authority,
    refuse_absent_helper,
    rounds_of_sums,
)
from federank.service.server.settings import LEAST_MINIMUM, RoundSettings, refuse_few
from federank.service.server.store.database import Connection, Database
from federank.service.server.store.queries import get_value, lock_metadata, put_content, put_value
from federank.service.server.store.schema import create_tables
from federank.service.server.store.seasons import CATALOGUE, FIRST, Season, now, put_season
from federank.service.server.store.versions import jump_ahead, put_all
from federank.service.server.store.writer import note_action
from federank.service.server.tickets import hash_of_token, new_token

if TYPE_CHECKING:
    from federank.data.interactions import Interactions

# Establishing a federation: its federation config and its first model are written into an empty store, once.


def establish(
    connection: Connection,
    settings: Any,
    data: Interactions,
    rounds: RoundSettings,
    *,
    served: ServerMethod,
    name: str | None = None,
    trained: Any = None,
    sums: SecaggSpec | None = None,
    details: Mapping[Any, Mapping[str, Any]] | None = None,
) -> str | None:
    """Write a federation config and a first model into an empty store; the operator's token, or None if there was one
    already.

    `settings` are the method's. `trained` is a trained model of its method: its items' factors are taken for the items
    it knows. With `sums` uploads are such that no single server can read one, and the helper is asked first. `details`
    are further fields of the catalogue's items, by id.
    """
    if data.n_items < 2:
        raise SettingError(f"The catalogue of {data.name} has {data.n_items} items; at least two are needed.")
    if sums is not None:
        sums = sums.for_size(rounds.target, data.n_items, served.kind.affordable)
        settings = served.secured(settings, sums.guarantee, rounds.target, data.n_items)
    settings = served.settle(settings, data, trained)
    model = first_model(served.first_content(settings, data, trained))
    why = why_unreadable(served, settings, model, model.rows_since(None), 0)
    if why is not None:
        raise ModelError(f"A federation cannot begin with this model, because {why} Start from another, or from none.")
    catalogue = catalogue_of(data, details)
    token, ticket_key = new_token(), secrets.token_bytes(32)
    agreement = None
    if sums is not None:
        private = leader_key(connection)
        federation_id, first = federation_id_of(ticket_key), stored_content(model.content)
        agreement = agree(sums, settings, federation_id, catalogue.content, data.n_items, private, first)
    config = {
        "name": name or data.name,
        "method": served.name,
        "settings": asdict(settings),
        "items": data.n_items,
        "ticket_key": ticket_key.hex(),
    }
    with connection.transaction():
        lock_metadata(connection)
        if get_value(connection, "config") is not None:
            return None
        put_value(connection, "config", config)
        put_value(connection, "admin", hash_of_token(token).hex())
        put_value(connection, "rounds", asdict(rounds))
        put_value(connection, "trained", trained is not None)
        put_content(connection, CATALOGUE, catalogue.content)
        guarantee = {} if sums is None else sums.guarantee._asdict()
        put_season(connection, Season(number=1, uploads=served.uploads_of(settings), began=now(), **guarantee))
        if agreement is not None:
            put_agreement(connection, agreement)
            put_content(connection, FIRST, stored_content(model.content))
        put_all(connection, 0, model)
        note_action(connection, "established", name=config["name"], items=data.n_items)
    return token


def renew_admin_token(connection: Connection) -> str:
    """A new operator's token; the old one dies."""
    token = new_token()
    with connection.transaction():
        put_value(connection, "admin", hash_of_token(token).hex())
        note_action(connection, "rotate-token")
    return token


DEFAULT_METHOD = "frugal"
DEFAULT_UPLOAD_PERIOD = 86_400.0
"""A client of a new federation uploads at most once per day."""
_FIRST_START = "first start"
"""The name under which the flags of the first start are stored: settings derived from them may differ."""


@dataclass(frozen=True, kw_only=True)
class FederationSpec:
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
    texts: dict[str, Any] = field(default_factory=dict)
    """What is published beside it: those of `TEXTS`, `suggested_policy` and `upload_period` that are given."""
    sums: SecaggSpec | None = None
    """A helper, where uploads are to be such that no single server can read one."""
    plain: bool = False
    """The operator has decided to read uploads. A new federation needs this decision, or `sums`."""
    restored: bool = False
    """The store is a backup that was put back."""
    new_admin_token: bool = False
    accepts_few: bool = False
    """Rounds may have so few reports that an outsider can read Updates from what they change."""

    def first_start(self) -> dict[str, Any]:
        """The given values that matter only when a federation is established, by setting."""
        values = {
            "name": self.name,
            "method": self.method,
            "start_from": self.start_from and str(self.start_from),
            **self.settings,
            **(self.sums.given() if self.sums else {}),
        }
        return {name: value for name, value in values.items() if value is not None}


class Ignored(NamedTuple):
    """A flag without effect, because the store's federation has another value."""

    setting: str
    given: Any
    in_force: Any


def open_store(address: str, spec: FederationSpec, log: Log | None = None) -> str | None:
    """Make a store ready to be served; the operator's token if there is a new one."""
    database = Database(address)
    is_new = database.dialect == "sqlite" and not database.path.exists()
    if is_new:
        # Refused before there is a file; with what an old store holds they may make sense.
        RoundSettings(**spec.rounds)
        if spec.start_from is None or spec.method is not None:
            _chosen(spec, DEFAULT_METHOD)
        if spec.sums is not None:
            refuse_absent_helper(spec.sums)  # who is stopped while it waits for one leaves no file behind either
    try:
        with database.connection() as connection:
            create_tables(connection)
            config = read_config(connection)
            token = None
            if config is None:
                trained = None
                if spec.start_from is not None:
                    from federank.methods.model_folder import load_model

                    trained = load_model(spec.start_from)
                served, settings, rounds = _chosen(spec, getattr(trained, "name", DEFAULT_METHOD))
                more: dict[str, Any] = {"served": served, "name": spec.name, "trained": trained, "sums": spec.sums}
                token = establish(connection, settings, spec.data(), rounds, **more)
            else:
                _go_on(connection, config, spec)
                for flag in ignored_flags(connection, config, spec):
                    (log or Log(None)).say(
                        "flag ignored",
                        "warning",
                        flag=f"--{flag.setting.replace('_', '-')}",
                        given=flag.given,
                        in_force=flag.in_force,
                    )
            values = dict(spec.texts)
            if config is None:
                usual = {"upload_period": DEFAULT_UPLOAD_PERIOD, "noun": usual_noun(spec.source)}
                values = usual | values | {_FIRST_START: spec.first_start()}
            for name, value in values.items():
                if value is not None:
                    with connection.transaction():
                        put_value(connection, name, value)
            return renew_admin_token(connection) if spec.new_admin_token and token is None else token
    except BaseException as reason:
        database.release()
        # A federation that is not begun leaves no file behind, unless its key waits to be allowed by the helper.
        if is_new and not isinstance(reason, LeaderNotAllowed):
            for part in ("", "-wal", "-shm"):
                Path(f"{database.path}{part}").unlink(missing_ok=True)
        raise
    finally:
        database.release()


def _chosen(spec: FederationSpec, learnt_by: str) -> tuple[ServerMethod, Any, RoundSettings]:
    """The method of a new federation, its settings and those of its rounds, or a refusal."""
    name = spec.method or (learnt_by if learnt_by in SERVER_METHODS else DEFAULT_METHOD)
    if name not in SERVER_METHODS:
        raise SettingError(unknown_name("method", name, SERVER_METHODS))
    served = SERVER_METHODS[name]
    _refuse_undecided(spec)
    _refuse_settings_of_others(served, spec)
    _refuse_idle_settings(served, spec)
    _refuse_sharing(served, spec)
    settings = served.kind.made(spec.settings)
    wanted = {**served.rounds, **(rounds_of_sums(spec.sums, spec.rounds) if spec.sums else spec.rounds)}
    rounds = RoundSettings(**wanted)
    if spec.sums is None and not spec.accepts_few:  # sums have a least cohort, and noise
        if "minimum" not in spec.rounds:
            rounds = replace(rounds, minimum=min(LEAST_MINIMUM, rounds.target))
        refuse_few(rounds)
    return served, settings, rounds


def _go_on(connection: Connection, config: FederationConfig, spec: FederationSpec) -> None:
    _refuse_sharing(config.served, spec)
    if spec.sums is not None and config.sums is None:
        # To go on would serve uploads that this server reads, where the operator asks for ones that it cannot read.
        raise SettingError(
            "The store holds a federation whose uploads its server reads; --helper is for a new --store."
        )
    if spec.plain and config.sums is not None:
        raise SettingError("The store holds a federation with secure aggregation; --plain is for a new --store.")
    if spec.rounds and config.sums is not None:
        least = config.sums.config.least_cohort
        if spec.rounds.get("minimum", least) < least:
            raise SettingError(
                f"minimum is below the least cohort of {least} that the federation config guarantees; leave it out."
            )
    if spec.rounds:
        rounds = RoundSettings(**get_value(connection, "rounds") | spec.rounds)
        if "minimum" in spec.rounds and config.sums is None and not spec.accepts_few:
            refuse_few(rounds)
        with connection.transaction():
            put_value(connection, "rounds", asdict(rounds))
            note_action(connection, "settings of rounds", **spec.rounds)
    if config.sums and spec.sums and spec.sums.authority not in (None, config.sums.authority):
        with connection.transaction():
            put_authority(connection, spec.sums.authority)
            note_action(connection, "certificates of the helper")
    if spec.restored:
        version = jump_ahead(connection)
        with connection.transaction():
            note_action(connection, "restored", version=version)


def _refuse_undecided(spec: FederationSpec) -> None:
    """Who can read uploads cannot be changed later, so a new federation says it."""
    if spec.plain or spec.sums is not None:
        return
    raise SettingError(
        "A new federation needs a decision that cannot be changed later: who can read uploads. --helper URL: neither "
        "of two servers can; another organisation runs the helper. --plain: the operator can read every upload. "
        "--local-helper: both servers run on this machine, for trying out; it could read everything."
    )


def _refuse_settings_of_others(served: ServerMethod, spec: FederationSpec) -> None:
    """What belongs to another method is refused, and not left unheard."""
    foreign = [name for name in spec.settings if name not in served.federation_settings]
    if foreign:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        raise SettingError(
            f"The federation's method is {served.name}, which has no {flags}; leave it out, or name another --method "
            "for a new federation."
        )


def _refuse_idle_settings(served: ServerMethod, spec: FederationSpec) -> None:
    """What means nothing with a helper is refused too."""
    for name in served.kind.suggestions if spec.sums is not None else ():
        if name in spec.settings:
            raise SettingError(
                f"--{name.replace('_', '-')} {spec.settings[name]} hides nothing where no single server reads a "
                "message; leave it out, or the --helper."
            )


def _refuse_sharing(served: ServerMethod, spec: FederationSpec) -> None:
    """A suggestion that clients could not follow is not made."""
    suggested = spec.texts.get("suggested_policy", {}).get("sharing")
    if suggested not in (None, *served.kind.sharing_policies):
        raise SettingError(
            f"--suggest-sharing is {suggested}, but clients of {served.name} decide once for its lifetime; "
            f"{' or '.join(served.kind.sharing_policies)} is needed."
        )


def ignored_flags(connection: Connection, config: FederationConfig, spec: FederationSpec) -> Iterator[Ignored]:
    """The flags of a later start that differ from the first start's and from the values in force."""
    first = get_value(connection, _FIRST_START) or {}
    in_force = {"name": config.name, "method": config.served.name}
    in_force |= {name: getattr(config.settings, name) for name in config.served.federation_settings}
    in_force |= {} if config.sums is None else agreed_values(config.sums.config)
    for name, given in spec.first_start().items():
        if given != first.get(name) and not _same(given, in_force.get(name)):
            yield Ignored(name, given, in_force.get(name))
    if spec.names_data:
        try:
            is_known = same_items(config.catalogue.content, catalogue_of(spec.data()).content)
        except FedeRankError:  # the catalogue is in the store: data that are gone do not keep a server down
            is_known = False
        if not is_known:
            yield Ignored("data", spec.source, f"the catalogue of {config.name}, {config.n_items} items")


def _same(given: Any, kept: Any) -> bool:
    """Whether two values agree; noise was rounded when it was agreed on."""
    if isinstance(given, float) and isinstance(kept, float):
        return math.isclose(given, kept, rel_tol=1e-3)
    return bool(given == kept)
