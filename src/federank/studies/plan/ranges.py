"""Several values of a setting: a list, or a range such as { from = 0, to = 1, step = 0.1 }, both ends included."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from federank.errors import SettingError
from federank.studies.plan.vocabulary import RANGE, refuse_unknown


def several(content: Any, where: str) -> tuple[Any, ...]:
    """The values that a list or a range stands for; one value alone is a list of one."""
    if isinstance(content, Mapping):
        return _range(content, where)
    listed = content if isinstance(content, list) else [content]
    if not listed:
        raise SettingError(f"{where} is an empty list; one or more values are needed.")
    if any(isinstance(value, dict | list) for value in listed):
        raise SettingError(f"{where} is {content!r}; plain values are needed, or {{ from = 0, to = 1, step = 0.1 }}.")
    return tuple(listed)


def crossed(lists: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Every combination of one value from each list, the last list turning fastest; one empty one of no lists."""
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def points(content: Any, where: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The points of a sweep, each as what is swept and what goes along with it.

    A table of lists or ranges is crossed. A list of tables is one point each: what all of them have and the first
    names first is swept, the rest goes along: [{ rho = 1, t_predict = 10 }, { rho = 2, t_predict = 5 }].
    """
    if isinstance(content, Mapping):
        lists = {name: several(values, f"{name} of {where}") for name, values in content.items()}
        return [(swept, {}) for swept in crossed(lists)]
    if (
        not isinstance(content, list)
        or not content
        or not all(isinstance(point, Mapping) and point for point in content)
    ):
        raise SettingError(f"The sweep of {where} is {content!r}; a table of lists, or a list of tables, is needed.")
    name = next(iter(content[0]))
    if not all(name in point for point in content):
        raise SettingError(f"Some points of the sweep of {where} have no {name}; all need what is swept.")
    return [({name: point[name]}, {key: value for key, value in point.items() if key != name}) for point in content]


def _range(content: Mapping[str, Any], where: str) -> tuple[Any, ...]:
    refuse_unknown(content, RANGE, f"The range of {where}")
    ends = [content.get(name) for name in RANGE]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        raise SettingError(f"The range of {where} is {dict(content)!r}; from, to and step are needed, all numbers.")
    # Decimal, so that steps of 0.1 come out as 0.3 and not as 0.30000000000000004.
    first, last, step = (Decimal(str(end)) for end in ends)
    if step <= 0 or last < first or (last - first) / step > 10_000:
        raise SettingError(
            f"The range of {where} goes from {first} to {last} in steps of {step}; a step above 0 and at most 10,000 "
            "values from low to high are needed."
        )
    count = int((last - first) / step) + 1
    values = [first + step * position for position in range(count)]
    is_whole = all(isinstance(end, int) for end in ends)
    return tuple(int(value) if is_whole else float(value) for value in values)
