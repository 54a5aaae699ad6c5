"""Options that several commands share: data, the settings of a method, and help in two lengths.

`--help` shows what a user normally needs. `--help-all` shows everything: switches that only reproduce a paper (settings
marked `paper` in their metadata), how files are read, and limits. A setting is defined once, in a method's record: its
name, type, default and the docstring below it become a flag.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from federank import extensions
from federank.checks import unknown_name
from federank.errors import SettingError

if TYPE_CHECKING:
    from federank.data.interactions import Interactions

GENERAL, SETTINGS, PAPERS, SCHEDULE, FILES, LIMITS, MORE = (
    "Options",
    "Settings",
    "Settings that only reproduce a paper",
    "Settings of the simulated population",
    "Reading files",
    "Limits",
    "More options",
)
_ONLY_ALL = (PAPERS, SCHEDULE, FILES, LIMITS, MORE)
"""Sections that only `--help-all` shows."""
_SHOWS_ALL = "federank.help_all"


class Option(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args: Any, section: str = GENERAL, **values: Any) -> None:
        super().__init__(*args, **values)
        self.section = section


def more(*names: str, section: str = MORE, **values: Any) -> Callable[[Any], Any]:
    """Like `click.option`, for an option that only `--help-all` shows."""
    return click.option(*names, cls=Option, section=section, **values)


def options(*added: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a command these options, in this order."""

    def add(command: Any) -> Any:
        for option in reversed(added):
            command = option(command)
        return command

    return add


class Command(click.Command):
    """A command whose help comes in two lengths."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's parameters, with `--help-all` where some are hidden from `--help`."""
        params = super().get_params(ctx)
        if any(_section(param) in _ONLY_ALL for param in params):
            params.insert(-1, _HELP_ALL)
        return params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section; the short form has the first sentence of each."""
        shows_all = ctx.meta.get(_SHOWS_ALL, False)
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                text = record[1] if shows_all else _in_short(record[1])
                sections.setdefault(_section(param), []).append((record[0], text))
        for title in sorted(sections, key=lambda title: (title in _ONLY_ALL, title != SETTINGS)):
            if shows_all or title not in _ONLY_ALL:
                with formatter.section(title):
                    formatter.write_dl(sections[title], col_max=26)


class CommandGroup(Command, click.Group):
    """A group whose help comes in two lengths."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def _section(param: click.Parameter) -> str:
    return getattr(param, "section", GENERAL)


def _in_short(text: str) -> str:
    """The first sentence of a help text, up to what it lists or adds, and its usual default without the range."""
    text = re.sub(r"; [\d.<=]*x[<>=][^]]*\]$", "]", re.sub(r"\s+\[[\d.<=]*x[<>=][^]]*\]$", "", text))
    default = re.search(r"\s*\[default: [^]]*\]\s*$|\s*\[required\]\s*$", text)
    end = default.start() if default else len(text)
    first = re.split(r"(?<=[^.]\w[.)])\s+(?=\S)", text[:end])[0]
    head = re.match(r"(?:\S+\s+){3,}?\S+?(?=[:;] )(?![^(]*\))", first)
    return (head[0] if head else first).rstrip(".") + "." + re.sub(r"; [^]]*\]", "]", text[end:])


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class _PathType(click.Path):
    def __init__(self, name: str) -> None:
        super().__init__(path_type=Path)
        self.name = name


FILE, FOLDER = _PathType("file"), _PathType("dir")
"""A path to a file or to a folder, by the name that help shows."""
AT_LEAST_1, ABOVE_0, SHARE = click.IntRange(min=1), click.FloatRange(min=0, min_open=True), click.FloatRange(0, 1)
JSON = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")

_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show every option."
)


class MethodGroup(click.Group):
    """One command per method, whose flags are made from the method's settings when it is called.

    `names` are listed in the help; `accepts` says whether another name is a method too. `others` are commands of other
    kinds, each in the file of its name, or in the one that `files` names.
    """

    def __init__(
        self,
        *args: Any,
        names: Callable[[], Sequence[str]],
        build: Callable[[str], click.Command],
        accepts: Callable[[str], bool] = lambda _: False,
        default: str | None = None,
        others: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
        **values: Any,
    ) -> None:
        super().__init__(*args, **{"subcommand_metavar": "METHOD [OPTIONS]..."} | values)
        self._names, self._build, self._accepts, self._default = names, build, accepts, default
        self.others, self._files = others, files or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The methods, then commands of other kinds."""
        return [*self._names(), *self.others]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this method."""
        if cmd_name in self.others:
            module = import_module(f"federank.cli.{self._files.get(cmd_name, cmd_name)}")
            other: click.Command = getattr(module, cmd_name)
            return other
        if cmd_name in self._names() or self._accepts(cmd_name):
            return self._build(cmd_name)
        raise SettingError(unknown_name("method", cmd_name, self.list_commands(ctx)))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Where there is a default method, it may be left out."""
        ctx.meta[METHOD_NAMED] = True
        if self._default is not None and (not args or (args[0].startswith("-") and args[0] not in ("-h", "--help"))):
            ctx.meta[METHOD_NAMED] = False
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of methods, without importing any of ours."""
        from federank.methods.registry import help_of

        with formatter.section("Methods"):
            formatter.write_dl([(name, help_of(name)) for name in self._names()])
        if others := [(name, self.get_command(ctx, name)) for name in self.others]:
            with formatter.section("Commands"):
                formatter.write_dl([(name, other.get_short_help_str(60)) for name, other in others if other])


_SECTIONS = dict.fromkeys(
    ("online", "trace", "dropout", "cohorts", "rounding", "policies", "budget", "item_epsilon"), SCHEDULE
)
_SECTIONS |= dict.fromkeys(("encoding", "weight_decay", "most_triples", "most_shown", "sigma", "delta"), MORE)

METHOD_NAMED = "federank.method_named"
"""Context key: whether the user named the method."""


# Flags from a settings record. A method's setting may have the name of an option of the command: Mult-VAE has a
# `patience`, and so has `train`. The setting's flag then begins with the method's name (`--vae-patience`).


def settings_options(
    settings: type[Any], method: str = "", reserved: frozenset[str] = frozenset(), section: str = SETTINGS
) -> list[click.Parameter]:
    """One option per field. Options that were not given are None in the command's values.

    `reserved` are the names of the command's own options (`names_of`).
    """
    hints, texts = get_type_hints(settings), field_texts(settings)
    return [
        _option(field, hints[field.name], texts.get(field.name, ""), option_name(field.name, method, reserved), section)
        for field in fields(settings)
    ]


def _option(field: Field[Any], hint: Any, text: str, name: str, section: str) -> Option:
    """The option of a setting: a choice of words, a switch, a number, a text, or a number or a text."""
    kinds = {str if get_origin(kind) is Literal else kind for kind in get_args(hint)} - {type(None)} or {hint}
    flag, metavar = f"--{name.replace('_', '-')}", None
    kind: Any
    if get_origin(hint) is Literal:
        more = extensions.names("policies") if field.name == "sharing" else []  # policies of other packages
        kind = click.Choice([*map(str, get_args(hint)), *more])
    elif bool in kinds:
        flag, kind = f"{flag}/{flag.replace('--', '--no-')}", bool
    elif str in kinds:
        kind, metavar = (_NumberOrText() if kinds & {int, float} else str), "TEXT"
    else:
        kind, metavar = (float if float in kinds else int), "N" if int in kinds else "X"
    if field.default is not MISSING and field.default is not None:
        default = f"{field.default:.4g}" if isinstance(field.default, float) else field.default
        text += f"  [default: {default}]"
    if field.metadata.get("paper"):
        section = PAPERS
    else:
        section = MORE if field.metadata.get("expert") else _SECTIONS.get(field.name, section)
    return Option([flag], type=kind, help=text, metavar=metavar, default=None, section=section)


def given_settings(
    settings: type[Any], values: dict[str, Any], method: str = "", reserved: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Take the values of settings out of a command's values, without those that were not given."""
    taken = {field.name: values.pop(option_name(field.name, method, reserved)) for field in fields(settings)}
    return {name: value for name, value in taken.items() if value is not None}


def names_of(params: Iterable[click.Parameter]) -> frozenset[str]:
    """Every name that these parameters take, of their flags or in the values of the command."""
    params = list(params)
    flags = [flag for param in params for flag in (*param.opts, *param.secondary_opts, "--help", "--help-all")]
    return frozenset([str(param.name) for param in params] + [flag.lstrip("-").replace("-", "_") for flag in flags])


def is_given(name: str) -> bool:
    """Whether this option stands on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def flag_of(name: str) -> str:
    """The flag of an option by its name in Python."""
    return f"--{name.replace('_', '-')}"


def option_name(setting: str, method: str, reserved: frozenset[str]) -> str:
    """The name of a setting's option in a command's values."""
    return f"{method.replace('-', '_')}_{setting}" if setting in reserved else setting


def field_texts(settings: type[Any]) -> dict[str, str]:
    """The docstring below each field of a dataclass, inherited fields included; read from the source."""
    texts: dict[str, str] = {}
    for part in reversed([part for part in settings.__mro__ if is_dataclass(part)]):
        try:
            [record] = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        except OSError:  # a class without a file has no texts
            continue
        assert isinstance(record, ast.ClassDef)
        for above, below in pairwise(record.body):
            match above, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=text)):
                    texts[name] = " ".join(str(text).split())
    return {field.name: texts[field.name] for field in fields(settings) if field.name in texts}


class _NumberOrText(click.ParamType[Any]):
    """A number where the text is one, and the text otherwise."""

    name = "number or text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Integers stay integers; the settings record checks everything else."""
        for kind in (int, float):
            try:
                return kind(value)
            except (TypeError, ValueError):
                continue
        return value


def preset_option(method: str) -> list[click.Parameter]:
    """The option that names a published configuration of FPL; none for other methods."""
    if method != "fpl":
        return []
    from federank.methods.fpl.settings import PRESETS

    return [click.Option(["--preset"], type=click.Choice(list(PRESETS)), help="A configuration by name.")]


def taken_preset(values: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of the named configuration out of a command's values."""
    name = values.pop("preset", None)
    if name is None:
        return {}
    from federank.methods.fpl.settings import PRESETS

    return dict(PRESETS[name])


TRACK_HELP = "Log to mlflow or tensorboard; a place may follow a colon: mlflow:mlruns, tensorboard:logs."


# Data: which set or file, how to read it, and what to keep. Without a name or file, the synthetic city.


_FILTERS = ("min_rating", "min_interactions", "k_core")
_COLUMNS = ("users", "items", "ratings", "times")
READING = ("source", *_COLUMNS, "header", "delimiter", "repeats", "item_file", *_FILTERS)
"""The options of a `Reading`."""


class Reading(NamedTuple):
    """A source of data, how it is read, and what is kept."""

    source: str
    how: dict[str, Any]
    filters: dict[str, float]
    """The filters that were given, by name."""

    def interactions(self) -> Interactions:
        """Read the data and keep what the filters let through."""
        from federank.data.interactions import filtered
        from federank.data.loading import load

        return filtered(load(self.source, **self.how), self.filters)


_AS_ARGUMENT = click.argument("source", metavar="[NAME_OR_FILE]", default="city")
_AS_OPTION = click.option(
    "--data", "source", metavar="NAME_OR_FILE", default="city", show_default=True, help="A known set, or a file."
)
_OPTIONS = (
    click.option("--min-interactions", type=int, metavar="N", help="Keep users with at least N interactions."),
    more("--k-core", type=int, metavar="K", section=FILES, help="Keep users and items with at least K each."),
    click.option("--min-rating", type=float, metavar="X", help="Keep ratings of at least X, as likes."),
    more("--users", metavar="COLUMN", section=FILES, help="Column of users: a name, or a position from 0."),
    more("--items", metavar="COLUMN", section=FILES, help="Column of items."),
    more("--ratings", metavar="COLUMN", section=FILES, help="Column of ratings; 'none' to leave them out."),
    more("--times", metavar="COLUMN", section=FILES, help="Column of times; 'none' to leave them out."),
    more("--header/--no-header", default=None, section=FILES, help="Whether the first line names the columns."),
    more("--delimiter", metavar="TEXT", section=FILES, help="The separator of columns, such as ',' or '\\t'."),
    more(
        "--repeats",
        type=click.Choice(["latest", "first", "refuse"]),
        default="latest",
        show_default=True,
        section=FILES,
        help="Which row of a repeated (user, item) pair to keep. Of many check-ins at one place one counts, so that no "
        "test is of a known place.",
    ),
    more("--item-file", metavar="FILE", section=FILES, help="A file with titles or categories of the items."),
)


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the argument and options of a `Reading`, passed to it as `reading`."""
    return _with_reading(command, _AS_ARGUMENT)


def reads_data_option(command: Callable[..., None]) -> Callable[..., None]:
    """The same, with the data named by `--data`."""
    return _with_reading(command, _AS_OPTION)


def taken_reading(values: dict[str, Any]) -> Reading:
    """Take a `Reading` out of a command's values."""
    taken = {name: values.pop(name) for name in READING}
    filters = {name: taken.pop(name) for name in _FILTERS}
    taken |= {name: _column(taken[name]) for name in _COLUMNS}
    if taken["delimiter"] is not None:
        taken["delimiter"] = taken["delimiter"].replace("\\t", "\t")
    return Reading(taken.pop("source"), taken, {name: value for name, value in filters.items() if value is not None})


def _with_reading(command: Callable[..., None], source: Callable[[Any], Any]) -> Callable[..., None]:
    @wraps(command)
    def with_reading(**values: Any) -> None:
        command(reading=taken_reading(values), **values)

    added: Callable[..., None] = options(source, *_OPTIONS)(with_reading)
    return added


def _column(text: str | None) -> str | int | bool | None:
    """A column as the readers want it: a position where the text is an integer, False for 'none'."""
    if text == "none":
        return False
    return int(text) if text is not None and text.isdecimal() else text
