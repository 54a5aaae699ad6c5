"""`federank helper`: the second server of a federation whose messages no single server can read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from federank.errors import SettingError


class HelperCommand(click.Command):
    """The command, whose limits are flags made from their record when it is asked for."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Our own options, then those of the record."""
        from federank.cli.settings_flags import settings_options
        from federank.service.helper.rounds import HelperSettings

        if len(self.params) == self._own:
            self.params += settings_options(HelperSettings)
        return super().get_params(ctx)

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._own = len(self.params)


@click.command(cls=HelperCommand)
@click.option("--origin", metavar="URL", help="Where devices and leaders find it.  [default: where it listens]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(0, 65535), default=8480, show_default=True, help="0: any free one.")
@click.option(
    "--store", default="helper.db", show_default=True, help="A file, sqlite:///FILE or postgresql://USER@HOST/NAME."
)
@click.option(
    "--keys",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder of memory for the keys of rounds under way.  [default: one in /dev/shm]",
)
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="Certificate chain (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key (PEM).")
@click.option("--self-signed", is_flag=True, help="Make a certificate, and write it to the current folder.")
@click.option("--new-identity", is_flag=True, help="Make a new identity key, signed by the old one.")
@click.option("--proxies", metavar="ADDRESSES", help="Proxies whose X-Forwarded-For is believed.")
@click.option("--quiet", is_flag=True, help="No log on stderr.")
def helper(**values: Any) -> None:
    """Help federations to add messages up that neither they nor you can read.

    Someone else than the federation's leader should run this: anyone who runs both can read every message. It never
    learns titles, items or messages. Compare the fingerprint with people who rely on it.

    \b
    Examples:
      federank helper --store helper.db --origin https://helper.example --tls-cert cert.pem --tls-key key.pem
      federank helper --self-signed --host 0.0.0.0 --origin https://192.0.2.7:8480
    """
    sys.exit(_help(**values))


def _help(
    *,
    origin: str | None,
    host: str,
    port: int,
    store: str,
    keys: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    self_signed: bool,
    new_identity: bool,
    proxies: str | None,
    quiet: bool,
    **values: Any,
) -> int:
    from federank.cli.serve import certificate_of, refuse_names
    from federank.cli.settings_flags import given_settings
    from federank.secagg.keys import fingerprint
    from federank.service.helper.process import HelperServing, open_service, serve
    from federank.service.helper.rounds import HelperSettings
    from federank.service.helper.store import refuse_a_disk, usual_folder
    from federank.service.server.http.listening import bind
    from federank.service.server.store.database import without_password

    settings = HelperSettings(**given_settings(HelperSettings, values))
    refuse_names(proxies)
    address = store if "://" in store else f"sqlite:///{store}"
    folder = keys or usual_folder(address if "postgres" in address else f"sqlite:///{Path(store).resolve()}")
    refuse_a_disk(folder)
    if origin is not None:
        _refuse_origin(origin)
    certificate, key = certificate_of(tls_cert, tls_key, self_signed, host)
    with bind(host, port) as bound:
        scheme, shown = "https" if certificate else "http", f"[{host}]" if ":" in host else host
        listens = f"{scheme}://{shown}:{bound.getsockname()[1]}"
        serving = HelperServing(
            store=address,
            origin=origin or listens,
            keys=folder,
            settings=settings,
            certificate=certificate,
            key=key,
            proxies=proxies,
            quiet=quiet,
            new_identity=new_identity,
        )
        service = open_service(serving)
        click.echo(f"helper       {serving.origin}")
        click.echo(f"fingerprint  {fingerprint(service.helper.identity.public)}")
        click.echo(f"store        {without_password(address)}")
        click.echo(f"round keys   {folder}")
        if origin is not None and origin != listens:
            click.echo(f"listens at   {listens}")
        return serve(serving, service, bound)


def _refuse_origin(origin: str) -> None:
    """An origin is a scheme, a host and perhaps a port: it is written into federation configs as it is."""
    parts = urlsplit(origin)
    local = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme not in ("https", "http") or not parts.hostname or f"{parts.scheme}://{parts.netloc}" != origin:
        raise SettingError(f"--origin is {origin!r}; a scheme, a host and perhaps a port are needed, and nothing more.")
    if parts.scheme == "http" and not local:
        raise SettingError(f"--origin is {origin}, but devices fetch the identity over TLS only; give https://...")
