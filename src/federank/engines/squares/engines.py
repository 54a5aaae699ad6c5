"""The engines that play rounds of few messages, by name."""

from __future__ import annotations

from federank.engines.federated import EngineName, Open, in_this_process
from federank.engines.squares import compiled, reference

ENGINES: dict[EngineName, Open] = {
    "compiled": in_this_process(compiled.play),
    "reference": in_this_process(reference.play),
}
