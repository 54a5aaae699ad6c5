"""Uploads that no single server can read, as every family that may be sent as sums takes them in.

Of such an upload a server can tell its length and nothing else. It is added up by server/sums/ with the helper's word
for it; a family is handed the sum.
"""

from __future__ import annotations

import math
from typing import Any

from federank.protocol.accountant import mu_for
from federank.protocol.sums.forms import upload_from
from federank.protocol.sums.rounding import C_INT
from federank.service.server.families.family import Form, Kind, Promise


def one_noise(promise: Promise, messages: int) -> tuple[int, ...]:
    """One server's noise on each of a life's messages where all of them are alike; where nothing is promised, none."""
    each = promise.sigma or 0.0
    if promise.epsilon is not None:
        each = math.sqrt(messages) / mu_for(promise.epsilon, promise.delta)
    return (math.ceil(each * C_INT),) * messages


def judge_sealed(body: bytes, form: Form) -> int:
    """Refuse an upload of sums that has not the one form of them; what is in it nobody can tell."""
    if form.numbers:
        upload_from(form.check, body, form.numbers)
    return 0


def _unread(body: bytes, form: Form) -> Any:
    """An upload of sums adds nothing by itself: only with the helper's word does its share count."""
    del body, form
    raise AssertionError("uploads of sums are added up by service/server/sums")


SEALED = Kind(judge_sealed, _unread)
