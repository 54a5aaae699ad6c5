"""How fast the page is in this machine's headless Chromium: until it can be used, a round's local work, a top-10.

    python benchmarks/page.py --json

`usable` is from the navigation to the first search results on the screen, with an empty browser profile and a server
on the same machine; the median of several first visits. A round's work and the top-10 run in the page, as the worker
runs them.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.service.web.browsing import Visitor, browsing, serving

FACTORS, TRIPLES = 20, 132
LOCAL_WORK = """async ({ items, factors, triples }) => {
  const protocol = await import("/protocol/index.js");
  const recipe = protocol.recipeFor({ factors, triples, learning_rate: 0.05, user_regulariser: 0.05,
    positive_regulariser: 0.05, negative_regulariser: 0.005, order: "as-in-code", initial_scale: 0.1 });
  const values = (count) => Float32Array.from({ length: count }, () => Math.random() - 0.5);
  const broadcast = { vectors: values(items * factors), biases: values(items), roundNumber: 0 };
  const history = Int32Array.from({ length: 132 }, (_, index) => index * Math.floor(items / 132));
  const policy = { sharing: "fixed-subset", pi: 0.3, basis: "shared", neverItems: [] };
  const timed = (work) => {
    const took = [];
    for (let time = 0; time < 21; time++) {
      const began = performance.now();
      work(time);
      took.push(performance.now() - began);
    }
    return { first: took[0], median: took.toSorted((one, other) => one - other)[10] };
  };
  const round = timed((time) => {
    const shared = protocol.shared(policy, 1, 2, history, items);
    const person = { seed: 1, user: 2, vector: values(factors), pi: 0.3, triples, ...shared };
    const gradients = protocol.compute(recipe, person, { ...broadcast, roundNumber: time });
    protocol.encodeUpdate(protocol.share(recipe, person, gradients));
  });
  const vector = protocol.homeVector(recipe, 1, 2, history, broadcast);
  const left = new Set(history);
  return {
    round,
    home: timed(() => protocol.homeVector(recipe, 1, 2, history, broadcast)),
    top: timed(() => protocol.topN(protocol.scores(vector, broadcast), 10, left)),
  };
}"""

SQUARES = """async ({ items, factors }) => {
  const protocol = await import("/protocol/index.js");
  const codes = Int8Array.from({ length: items * factors }, () => Math.round(Math.random() * 254 - 127));
  const scales = Float32Array.from({ length: items }, () => 0.002 + Math.random() / 1000);
  const weights = Float32Array.from({ length: items }, () => 0.2 + Math.random());
  const profile = Int32Array.from({ length: 132 }, (_, index) => index * Math.floor(items / 132));
  const objective = { liked: 1, unobserved: 1 };
  const took = [];
  for (let time = 0; time < 11; time++) {
    const began = performance.now();
    const model = { vectors: protocol.restored(codes, scales), weights, regulariser: 50 };
    const vector = protocol.ownVector(objective, model, protocol.gramMatrix(model), profile);
    const strengths = protocol.pulls(objective, model.vectors, vector, profile);
    const update = protocol.send({ activity: 0.15, clip: 10 }, profile.length, strengths, vector);
    protocol.dense(update);
    protocol.encodeSquaresUpdate(update);
    took.push(performance.now() - began);
  }
  return { first: took[0], median: took.toSorted((one, other) => one - other)[5] };
}"""
SQUARES_SIZES = ((3706, 64), (41_488, 20))


def measure_squares(chromium: str) -> dict[str, float]:
    """A message of few: from the bytes of a Broadcast to the Update, written out too, in milliseconds."""
    took = {}
    with tempfile.TemporaryDirectory() as folder, browsing(chromium) as browser, serving(folder) as server:
        for items, factors in SQUARES_SIZES:
            visitor = Visitor(browser, server.public).open()
            work = visitor.page.evaluate(SQUARES, {"items": items, "factors": factors})
            visitor.close()
            took[f"squares_{items}x{factors}_ms"] = round(work["median"], 1)
            took[f"squares_{items}x{factors}_first_ms"] = round(work["first"], 1)
    return took


def measure(chromium: str, items: int, visits: int) -> dict[str, float]:
    """First visits to a federation of this many items, and the device's work in it."""
    settings = {"factors": FACTORS, "triples": TRIPLES}
    with (
        tempfile.TemporaryDirectory() as folder,
        browsing(chromium) as browser,
        serving(folder, made_up=items, settings=settings) as server,
    ):
        usable, weight, work = [], 0, {}
        for _ in range(visits):
            visitor = Visitor(browser, server.public).open()
            usable.append(visitor.page.evaluate("() => performance.getEntriesByName('usable')[0].startTime"))
            weight = sum(len(one.response().body()) for one in visitor.requests if "/api/" not in one.url)
            work = visitor.page.evaluate(LOCAL_WORK, {"items": items, "factors": FACTORS, "triples": TRIPLES})
            visitor.close()
    return {
        "items": items,
        "usable_ms": round(statistics.median(usable)),
        "usable_slowest_ms": round(max(usable)),
        "round_ms": round(work["round"]["median"], 2),
        "first_round_ms": round(work["round"]["first"], 2),
        "home_vector_ms": round(work["home"]["median"], 2),
        "top10_ms": round(work["top"]["median"], 2),
        "first_top10_ms": round(work["top"]["first"], 2),
        "page_bytes": weight,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="One line of JSON.")
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--items", type=int, nargs="+", default=[3706, 40_000])
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("Chromium is needed for this and is not installed.")
    results = [measure(chromium, items, asked.visits) for items in asked.items]
    squares = measure_squares(chromium)
    if asked.json:
        print(json.dumps({"factors": FACTORS, "triples": TRIPLES, "results": results, "squares": squares}))
        return
    for result in (*results, squares):
        print("  ".join(f"{name} {value:,}" for name, value in result.items()))


if __name__ == "__main__":
    main()
