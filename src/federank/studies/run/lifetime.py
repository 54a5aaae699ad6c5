"""What one device has sent and received in its life: messages and megabytes, means over all devices of a run."""

from __future__ import annotations

from typing import Any

from federank.recommenders.recommender import Recommender

_MEGABYTE = 1e6


def communication_of(model: Recommender) -> dict[str, Any] | None:
    """What a run has sent, counted, where the method is a federation that counts it."""
    content: dict[str, Any] | None = model.report.get("communication")
    if content is None and hasattr(model, "communication"):
        content = model.communication()
    return content


def lifetime(sent: dict[str, Any], devices: int) -> dict[str, float]:
    """Messages of a device, and the megabytes of its messages and downloads; rows that changed are all it downloads.

    `lifetime_written_out` has a message's whole matrix in the place of its two factors, as it must travel where only
    sums may be read; methods whose messages are rows as they are have only the one form.
    """
    up, down = sent["up"]["bytes"], sent.get("down_changed", sent["down_dense"])["bytes"]
    written_out = sent.get("up_written_out", sent["up"])["bytes"]
    return {
        "lifetime_messages": sent["uploads"] / devices,
        "lifetime_megabytes": (up + down) / devices / _MEGABYTE,
        "lifetime_up": up / devices / _MEGABYTE,
        "lifetime_down": down / devices / _MEGABYTE,
        "lifetime_written_out": (written_out + down) / devices / _MEGABYTE,
    }
