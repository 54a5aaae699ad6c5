"""`federank helper`: the second server of secure aggregation, and which leaders it serves."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from federank.cli.listening import LOOPBACK, listening, listening_options
from federank.cli.options import FOLDER, JSON, LIMITS, CommandGroup, given_settings, settings_options
from federank.errors import SettingError
from federank.secagg.keys import fingerprint
from federank.service.helper.api import serve
from federank.service.helper.rounds import HelperSettings
from federank.service.helper.service import open_helper
from federank.service.helper.store import (
    FORMAT,
    SCHEMA,
    allow_leader,
    allowed_leaders,
    refuse_a_disk,
    remove_leader,
    usual_folder,
)
from federank.service.server.logs import Log
from federank.service.server.store.database import Connection, Database, without_password
from federank.service.server.store.schema import create_tables

Answer = TypeVar("Answer")


@click.group(cls=CommandGroup, invoke_without_command=True, params=settings_options(HelperSettings, section=LIMITS))
@click.option("--origin", metavar="URL", help="The address for clients and leaders.  [default: where it listens]")
@listening_options(8480)
@click.option("--admin-host", default="127.0.0.1", show_default=True, help="Address of /metrics; not a public one.")
@click.option("--admin-port", type=click.IntRange(0, 65535), help="0: any free one.  [default: --port + 1]")
@click.option(
    "--store", default="helper.db", show_default=True, help="A file, sqlite:///FILE or postgresql://USER@HOST/NAME."
)
@click.option(
    "--keys", type=FOLDER, help="A folder of memory for the keys of rounds under way.  [default: one in /dev/shm]"
)
@click.option("--new-identity", is_flag=True, help="Make a new identity key, signed by the old one.")
@click.option("--proxies", metavar="ADDRESSES", help="Proxies whose X-Forwarded-For is trusted.")
@click.option("--quiet", is_flag=True, help="No log on stderr.")
@click.pass_context
def helper(context: click.Context, /, **values: Any) -> None:
    """Run the second server of secure aggregation, or say which leaders it serves.

    Someone else than the federation's leader should run this: one who runs both can read every upload. It never
    learns titles, items or uploads. It serves the leaders whose keys were allowed; a leader shows its key when it
    starts. Compare the helper's fingerprint with those who rely on it.

    \b
    Examples:
      federank helper --store helper.db --origin https://helper.example --tls-cert cert.pem --tls-key key.pem
      federank helper allow "1f0c 9d2e 77aa 0b31 5c5e 2f08 9a4d e6b7" --name "Film club"
      federank helper list
    """
    if context.invoked_subcommand is None:
        sys.exit(_help(**values))


_STORE = click.option("--store", help="The helper's store.  [default: helper.db]")


@helper.command()
@click.argument("fingerprint")
@click.option("--name", default="", help="Whose key it is, for your own list.")
@_STORE
@click.pass_context
def allow(context: click.Context, fingerprint: str, name: str, store: str | None) -> None:
    """Serve the federations of a leader, named by the fingerprint of its key."""
    known = _fingerprint(fingerprint)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    is_new = _with_store(context, store, lambda connection: allow_leader(connection, known, name, now))
    click.echo(f"{known}  {'is allowed' if is_new else 'was allowed already'}")


@helper.command("list")
@JSON
@_STORE
@click.pass_context
def list_leaders(context: click.Context, as_json: bool, store: str | None) -> None:
    """Show the leaders that are allowed."""
    leaders = _with_store(context, store, allowed_leaders)
    if as_json:
        click.echo(json.dumps([leader._asdict() for leader in leaders]))
        return
    for leader in leaders:
        click.echo(f"{leader.fingerprint}  {leader.since}  {leader.name}")


@helper.command()
@click.argument("fingerprint")
@_STORE
@click.pass_context
def remove(context: click.Context, fingerprint: str, store: str | None) -> None:
    """Serve a leader no more. What was published of its rounds stays."""
    known = _fingerprint(fingerprint)
    if not _with_store(context, store, lambda connection: remove_leader(connection, known)):
        raise SettingError(f"No leader with the key {known} is allowed; `federank helper list` shows those that are.")
    click.echo(f"{known}  is removed")


def _fingerprint(text: str) -> str:
    digits = "".join(text.split()).lower()
    if len(digits) != 32 or not set(digits) <= set("0123456789abcdef"):
        raise SettingError(f"{text!r} is no fingerprint; 32 hexadecimal digits are needed, as `federank serve` shows.")
    return " ".join(digits[place : place + 4] for place in range(0, 32, 4))


def _with_store(context: click.Context, store: str | None, act: Callable[[Connection], Answer]) -> Answer:
    """Do something with the helper's store, which may be in use by a running helper."""
    assert context.parent is not None, "a command of the group"
    database = Database(_address(store or str(context.parent.params["store"])))
    try:
        with database.connection() as connection:
            create_tables(connection, SCHEMA, FORMAT)
            with connection.transaction():
                return act(connection)
    finally:
        database.release()


def _address(store: str) -> str:
    return store if "://" in store else f"sqlite:///{store}"


def _help(**values: Any) -> int:
    address, origin = _address(values["store"]), values["origin"]
    folder = values["keys"]
    if folder is None:
        folder = usual_folder(address if "postgres" in address else f"sqlite:///{Path(values['store']).resolve()}")
    refuse_a_disk(folder)
    if origin is not None:
        _refuse_origin(origin)
    with listening(values) as at:
        settings = HelperSettings(**given_settings(HelperSettings, values))
        log, renews = Log(None if values["quiet"] else sys.stderr), values["new_identity"]
        service = open_helper(address, origin or at.address, folder, settings, log, new_identity=renews)
        click.echo(f"helper       {service.helper.origin}")
        click.echo(f"fingerprint  {fingerprint(service.helper.identity.public)}")
        click.echo(f"store        {without_password(address)}")
        click.echo(f"round keys   {folder}")
        click.echo(f"metrics      http://{values['admin_host']}:{at.operator.getsockname()[1]}/metrics")
        if origin not in (None, at.address):
            click.echo(f"listens at   {at.address}")
        named = {"certificate": at.certificate, "key": at.key, "proxies": values["proxies"]}
        return serve(service, at.public, at.operator, **named)


def _refuse_origin(origin: str) -> None:
    """An origin is a scheme, a host and perhaps a port: it is written into federation configs as it is."""
    parts = urlsplit(origin)
    if parts.scheme not in ("https", "http") or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != origin:
        raise SettingError(f"--origin is {origin!r}; a scheme, a host and perhaps a port are needed, and nothing more.")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise SettingError(f"--origin is {origin}, but clients fetch the identity over TLS only; give https://...")
