"""What the norm check of a message costs: a device (in Python; the page's code under Node), the leader and the helper.

Processor time of one message, the median of a few, over what the same step takes without the check. Messages have the
sizes of MovieLens 1M with 20 factors (3,706 items) and of a large sparse catalogue (41,488 items).

    python benchmarks/norm_check.py [--runs 7] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from federank.secagg.exchange import standing
from federank.secagg.keys import new_private_key, public_key_of
from federank.secagg.proof.parameters import FULL, LIGHT, Parameters
from federank.secagg.proof.preparing import accepts, look_bytes, prepare
from federank.secagg.ring import C_INT
from federank.secagg.round_config import Offer, message_length
from federank.secagg.upload import make_upload, new_secrets, report_of, send, upload_bytes

COLUMNS = 21
ITEMS = (3_706, 41_488)
PAGE = Path(__file__).parents[1] / "src/federank/service/web/secagg"


def milliseconds(work: Callable[[], Any], runs: int) -> float:
    work()
    found = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        found.append(1000 * (time.process_time() - begin))
    return statistics.median(found)


def offer_of(length: int) -> tuple[Offer, bytes]:
    key, nothing = new_private_key(), "00" * 32
    told = {"config": nothing, "model": nothing, "round": 1, "version": 1, "expires": 2**31}
    return Offer(length=length, key=public_key_of(key).hex(), **told), key


def on_the_page(parameters: Parameters, offer: Offer, message: np.ndarray, runs: int) -> float | None:
    """The page's device under Node, over what an upload takes there without a proof."""
    node = shutil.which("node")
    if node is None:
        return None
    program = Path(__file__).with_suffix(".mjs")
    told = {"offer": json.loads(offer.to_bytes()), "projections": parameters.projections, "runs": runs}
    asked = json.dumps(told | {"value": int(message[0])})
    done = subprocess.run([node, program, PAGE.as_uri(), asked], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(parameters: Parameters, items: int, runs: int) -> dict[str, Any]:
    length = message_length(items, COLUMNS)
    offer, key = offer_of(length)
    terms = offer.digest()
    message = np.full(length, int(C_INT / np.sqrt(length)), dtype=np.int32)
    plain = make_upload(offer, message, new_secrets(os.urandom))
    upload = send(parameters, offer, message, os.urandom)
    report = report_of(terms, upload, parameters)
    look = prepare(parameters, key, terms, length, report)
    assert look is not None
    assert accepts(parameters, terms, upload, report, look)
    device = milliseconds(lambda: send(parameters, offer, message, os.urandom), runs)
    device -= milliseconds(lambda: make_upload(offer, message, new_secrets(os.urandom)), runs)
    helper = milliseconds(lambda: prepare(parameters, key, terms, length, report), runs)
    helper -= milliseconds(lambda: standing(key, terms, [report]), runs)
    leader = milliseconds(lambda: accepts(parameters, terms, upload, report, look), runs)
    leader += milliseconds(lambda: report_of(terms, upload, parameters), runs)
    leader -= milliseconds(lambda: report_of(terms, plain), runs)
    return {
        "projections": parameters.projections,
        "items": items,
        "numbers": length,
        "bytes": upload_bytes(length, parameters),
        "proof_bytes": parameters.proof_bytes,
        "look_bytes": look_bytes(parameters),
        "device_ms": round(device, 2),
        "page_ms": on_the_page(parameters, offer, message, runs),
        "leader_ms": round(leader, 2),
        "helper_ms": round(helper, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = [measured(parameters, items, asked.runs) for items in ITEMS for parameters in (LIGHT, FULL)]
    if asked.json:
        print(json.dumps({"machine": platform.processor() or platform.machine(), "results": found}))
        return
    for line in found:
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
