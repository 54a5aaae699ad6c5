"""What `federank serve` does to the store before it serves: bring it up to date, found the federation if there is none.

A store holds one federation. Started again, what it is comes from the store; settings of rounds may change, and what
would make another federation of it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from federank.cli.reading import Reading
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.service.server.settings import RoundSettings
    from federank.service.server.store.database import Connection

RECIPE = (
    "factors",
    "learning_rate",
    "triples",
    "seed",
    "order",
    "user_regulariser",
    "positive_regulariser",
    "negative_regulariser",
    "initial_scale",
    "initial_biases",
)
"""The method's settings that a server decides; the others belong to devices or to simulations."""
NOUNS = {"city": "place/places", "ml": "film/films"}
"""What the items of known data sets are called, by the beginning of the set's name."""
LONGEST_NOUN = 30


def suggestion(values: dict[str, Any]) -> dict[str, Any] | None:
    """The policy that devices are suggested, as they are told it; None where the operator says nothing."""
    from federank.checks import within
    from federank.protocol.policy import Policy, default_basis

    if values["suggest_pi"] is None:
        if values["suggest_sharing"] is not None or values["suggest_epsilon"] is not None:
            raise SettingError("A suggestion needs --suggest-pi: how much of what people like may be sent, 0 to 1.")
        return None
    within("suggest_pi", values["suggest_pi"], 0, 1)
    sharing = values["suggest_sharing"] or "sticky"
    told = {"sharing": sharing, "pi": values["suggest_pi"], "basis": default_basis(sharing)}
    if values["suggest_epsilon"] is not None:
        told["epsilon"] = values["suggest_epsilon"]
    Policy(**told)  # what devices could not follow is refused here
    return told


def noun_of(text: str | None) -> dict[str, str] | None:
    """What the items are called, as devices are told it: `place/places`; None where the operator says nothing."""
    if text is None:
        return None
    one, _, many = (part.strip() for part in text.partition("/"))
    if not all(word.isprintable() and 0 < len(word) <= LONGEST_NOUN and "/" not in word for word in (one, many)):
        raise SettingError(
            f"--noun is {text!r}; two words of at most {LONGEST_NOUN} letters are needed, for one item and for many, "
            "such as film/films."
        )
    return {"one": one, "many": many}


def prepare_store(
    reading: Reading,
    store: str,
    rounds: dict[str, Any],
    suggested: dict[str, Any] | None,
    noun: dict[str, str] | None,
    values: dict[str, Any],
) -> str | None:
    """Bring the store up to date and found the federation if there is none; the operator's token if it is new."""
    from federank.service.server.founding import read_charter, renew_admin_token
    from federank.service.server.settings import RoundSettings
    from federank.service.server.store.database import Database
    from federank.service.server.store.schema import migrate
    from federank.service.server.store.statements import put_fact

    database = Database(store)
    if database.dialect == "sqlite" and not database.path.exists():
        RoundSettings(**rounds)  # refused before there is a file; with those of an old store they may make sense
    try:
        with database.connection() as connection:
            migrate(connection)
            charter = read_charter(connection)
            token = _found(connection, reading, rounds, values) if charter is None else None
            if charter is not None:
                _refuse_another(charter, reading, values)
                _change(connection, rounds)
                if values["restored"]:
                    from federank.service.server.store.restoring import jump_ahead

                    jump_ahead(connection)
            if noun is None and charter is None:
                noun = noun_of(NOUNS.get(reading.source.partition("-")[0]))
            for name, told in (("suggested_policy", suggested), ("noun", noun)):
                if told is not None:
                    with connection.transaction():
                        put_fact(connection, name, told)
            return renew_admin_token(connection) if values["new_admin_token"] and token is None else token
    finally:
        database.let_go()


def _found(connection: Connection, reading: Reading, rounds: dict[str, Any], values: dict[str, Any]) -> str | None:
    from federank.protocol.pairs.recipes import FPLSettings
    from federank.service.server.founding import found
    from federank.service.server.settings import RoundSettings

    given = {name: values[name] for name in RECIPE if values[name] is not None}
    trained = None
    if values["start_from"] is not None:
        from federank.recommenders.stored.model_folder import load_model

        trained = load_model(values["start_from"])
    settings = FPLSettings(**({"triples": "mean"} | given))
    data = reading.interactions()
    return found(connection, settings, data, RoundSettings(**rounds), name=values["name"], trained=trained)


def _refuse_another(charter: Any, reading: Reading, values: dict[str, Any]) -> None:
    """A store holds one federation: refuse settings, or data, of another."""
    if values["name"] not in (None, charter.name):
        raise SettingError(
            f"The store holds a federation called {charter.name}, not {values['name']}; leave --name out, or name "
            "another --store for a new federation."
        )
    for name in RECIPE:
        kept = getattr(charter.settings, name)
        if values[name] is not None and values[name] != kept and not (name == "triples" and values[name] == "mean"):
            raise SettingError(
                f"The store holds a federation with {name} = {kept}, not {values[name]}; leave "
                f"--{name.replace('_', '-')} out, or name another --store for a new federation."
            )
    if values["start_from"] is not None:
        raise SettingError("The store holds a federation that has begun; --start-from is for a new --store.")
    if click.get_current_context().get_parameter_source("source") is ParameterSource.COMMANDLINE:
        from federank.service.server.catalogue import catalogue_of

        if catalogue_of(reading.interactions()).digest != charter.catalogue.digest:
            raise SettingError(
                f"The store holds a federation called {charter.name} with another catalogue than {reading.source}; "
                "leave --data out to go on with it, or name another --store."
            )


def _change(connection: Connection, given: dict[str, Any]) -> None:
    """Settings of rounds may change from one start to the next; those that are given now are kept."""
    from dataclasses import asdict

    from federank.service.server.settings import RoundSettings
    from federank.service.server.store.statements import get_fact, put_fact

    if given:
        rounds: RoundSettings = RoundSettings(**(get_fact(connection, "rounds") | given))
        with connection.transaction():
            put_fact(connection, "rounds", asdict(rounds))
