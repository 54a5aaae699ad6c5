"""Flags from a settings record: each field of the dataclass becomes an option, its docstring the help.

So a setting is written once, where it is defined and checked, and the command line cannot disagree with it. The text
below a field is not kept by Python at run time; it is read from the source of the class.

A method's setting may have the name of one of the command's own options: Mult-VAE has a `patience`, and so has `train`.
The setting's flag then begins with the method's name (`--vae-patience`), and `--patience` stays the command's.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from federank import extensions


def settings_options(
    settings: type[Any], method: str = "", reserved: frozenset[str] = frozenset()
) -> list[click.Option]:
    """One option per field. Options that were not given are absent from the command's values, so defaults stay the
    record's own. `reserved` are the names that belong to the command (`names_of`)."""
    hints, texts = get_type_hints(settings), field_texts(settings)
    return [
        click.Option(
            [_flag(_option_name(field.name, method, reserved), hints[field.name])],
            type=_with_brought(field.name, _kind(hints[field.name])),
            help=_help(texts.get(field.name, ""), field.default),
            metavar=_metavar(hints[field.name]),
            default=None,
        )
        for field in fields(settings)
    ]


def names_of(params: Iterable[click.Parameter]) -> frozenset[str]:
    """Every name that these parameters take, of their flags or in the values of the command."""
    params = list(params)
    flags = [flag for param in params for flag in (*param.opts, *param.secondary_opts, "--help")]
    return frozenset([str(param.name) for param in params] + [flag.lstrip("-").replace("-", "_") for flag in flags])


def _option_name(setting: str, method: str, reserved: frozenset[str]) -> str:
    return f"{method.replace('-', '_')}_{setting}" if setting in reserved else setting


def _flag(name: str, hint: Any) -> str:
    """`--name`; for what is true or false `--name/--no-name`."""
    flag = name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if _is_bool(hint) else f"--{flag}"


def _is_bool(hint: Any) -> bool:
    """Whether a value is true or false, or left open."""
    return bool in (get_args(hint) or (hint,))


def field_texts(settings: type[Any]) -> dict[str, str]:
    """The docstring below each field of a dataclass, by the field's name, also of fields it inherits."""
    found: dict[str, str] = {}
    for part in reversed([part for part in settings.__mro__ if is_dataclass(part)]):
        found |= _own_texts(part)
    names = {field.name for field in fields(settings)}  # a note below another attribute is none
    return {name: text for name, text in found.items() if name in names}


def _own_texts(settings: type[Any]) -> dict[str, str]:
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    except OSError:  # a class without a file has no texts
        return {}
    assert isinstance(body, ast.ClassDef)
    found = {}
    for above, below in zip(body.body, body.body[1:], strict=False):
        named = isinstance(above, ast.AnnAssign) and isinstance(above.target, ast.Name)
        if named and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[above.target.id] = " ".join(str(below.value.value).split())  # type: ignore[attr-defined]
    return found


def given_settings(
    settings: type[Any], values: dict[str, Any], method: str = "", reserved: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Take the values of settings out of a command's values, leaving out those that were not given."""
    taken = {field.name: values.pop(_option_name(field.name, method, reserved)) for field in fields(settings)}
    return {name: value for name, value in taken.items() if value is not None}


def _help(text: str, default: Any) -> str:
    shown = f"{default:.4g}" if isinstance(default, float) else str(default)
    return text if default is MISSING or default is None else f"{text}  [default: {shown}]"


def _kind(hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return click.Choice([str(choice) for choice in get_args(hint)])
    kinds = set(get_args(hint)) - {type(None)} or {hint}
    if str in kinds and kinds & {int, float}:
        return _NumberOrText()
    plain: Callable[..., Any] = next((kind for kind in (str, float, int, bool) if kind in kinds), str)
    return plain


def _with_brought(name: str, kind: Any) -> Any:
    """Ways of sharing may also come from other packages."""
    if name != "sharing" or not isinstance(kind, click.Choice):
        return kind
    return click.Choice([*kind.choices, *extensions.names("policies")])


def _metavar(hint: Any) -> str | None:
    kinds = set(get_args(hint)) or {hint}
    return (
        None
        if get_origin(hint) is Literal or _is_bool(hint)
        else "TEXT"
        if str in kinds
        else "N"
        if int in kinds
        else "X"
    )


class _NumberOrText(click.ParamType[Any]):
    """A number where the text is one, and the text otherwise."""

    name = "number or text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Whole numbers stay whole; everything that is not a number is left to the settings record to judge."""
        for kind in (int, float):
            try:
                return kind(value)
            except (TypeError, ValueError):
                continue
        return value
