"""How fast and still the page is in this machine's headless Chromium.

    python benchmarks/page.py --json
    python benchmarks/page.py --only first-sight

`first_sight` is the films demo as it ships, on a phone's screen, with Lighthouse's phone setting applied through the
DevTools protocol (processor four times slower, slow 4G): largest contentful paint, cumulative layout shift until ten
seconds later, when the first items are there, and how often Tab is pressed until sharing is reached. The median of
several first visits.

`usable` is from the navigation to the first search results on the screen, with an empty browser profile and a server
on the same machine; the median of several first visits. A round's work and the top-10 run in the page, as the worker
runs them.
"""

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Page
from tests.service.web.browsing import Visitor, browsing, serving

FACTORS, TRIPLES = 20, 132
LOCAL_WORK = """async ({ items, factors, triples }) => {
  const [schemas, wire, policies, ranking, protocol] = await Promise.all(
    ["schemas", "federation/wire", "privacy/policy", "methods/ranking", "methods/fpl"]
      .map((name) => import(`/${name}.js`)));
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
    const shared = policies.sharedProfile(policy, 1, 2, history, items);
    const person = { seed: 1, user: 2, vector: values(factors), pi: 0.3, triples, ...shared };
    const gradients = protocol.compute(recipe, person, { ...broadcast, roundNumber: time });
    const update = protocol.share(recipe, person, time, gradients);
    wire.encodeRecord(schemas.MESSAGES["fpl-update"], update, { rows: update.items.length, factors });
  });
  const vector = protocol.homeVector(recipe, 1, 2, history, broadcast);
  const left = new Set(history);
  return {
    round,
    home: timed(() => protocol.homeVector(recipe, 1, 2, history, broadcast)),
    top: timed(() => ranking.topN(ranking.scores(vector, broadcast), 10, left)),
  };
}"""

SQUARES = """async ({ items, factors }) => {
  const protocol = await import("/methods/frugal.js");
  const codes = Int8Array.from({ length: items * factors }, () => Math.round(Math.random() * 254 - 127));
  const scales = Float32Array.from({ length: items }, () => 0.002 + Math.random() / 1000);
  const weights = Float32Array.from({ length: items }, () => 0.2 + Math.random());
  const profile = Int32Array.from({ length: 132 }, (_, index) => index * Math.floor(items / 132));
  const objective = { liked: 1, unobserved: 1 };
  const took = [];
  for (let time = 0; time < 11; time++) {
    const began = performance.now();
    const model = { vectors: protocol.restored(codes, scales), weights, regulariser: 50 };
    const vector = protocol.solveUser(objective, model, protocol.gramMatrix(model), profile);
    const strengths = protocol.residuals(objective, model.vectors, vector, profile);
    const update = protocol.send({ activity: 0.15, clip: 10 }, profile.length, strengths, vector);
    protocol.dense(update);
    protocol.encodeFrugalUpdate(update);
    took.push(performance.now() - began);
  }
  return { first: took[0], median: took.toSorted((one, other) => one - other)[5] };
}"""
SQUARES_SIZES = ((3706, 64), (41_488, 20))
PHONE = {"viewport": {"width": 412, "height": 823}, "device_scale_factor": 1.75, "is_mobile": True, "has_touch": True}
SLOW_4G = {"offline": False, "latency": 562.5, "downloadThroughput": 1474.56 * 128, "uploadThroughput": 675 * 128}
SLOWER_PROCESSOR, STILL_SECONDS, MOST_STOPS = 4, 10, 60
OBSERVED = """() => {
  window.seen = { lcp: 0, what: "", cls: 0 };
  new PerformanceObserver((list) => {
    for (const { startTime, element } of list.getEntries())
      Object.assign(window.seen, { lcp: startTime, what: element ? element.tagName + "#" + element.id : "" });
  }).observe({ type: "largest-contentful-paint", buffered: true });
  let session = 0, first = 0, last = 0;
  new PerformanceObserver((list) => {
    for (const { value, startTime, hadRecentInput } of list.getEntries()) {
      if (hadRecentInput) continue;
      if (startTime - last > 1000 || startTime - first > 5000) [session, first] = [0, startTime];
      [session, last] = [session + value, startTime];
      window.seen.cls = Math.max(window.seen.cls, session);
    }
  }).observe({ type: "layout-shift", buffered: true });
}"""
USABLE = "performance.getEntriesByName('usable')[0]"
SHARING = "a[href='#leaves'], #sharing :is(button, input)"


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
            usable.append(visitor.page.evaluate(f"() => {USABLE}.startTime"))
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


@contextmanager
def demo() -> Iterator[str]:
    """The films demo as it ships, on a free port; its address."""
    command = [sys.executable, "-m", "federank", "demo", "--serve", "--films", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if match := re.search(r"Open (http\S+[^.\s])", line):
                address = match[1]
            if "Ctrl-C" in line:
                break
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def measure_first_sight(chromium: str, visits: int) -> dict[str, float | str]:
    """First visits to the films demo with a phone's processor and network."""
    painted, shifted, items, largest, stops = [], [], [], "", 0
    with demo() as address, browsing(chromium) as browser:
        for _ in range(visits):
            context = browser.new_context(**PHONE)
            page = context.new_page()
            page.add_init_script(f"({OBSERVED})()")
            line = context.new_cdp_session(page)
            line.send("Network.enable")
            line.send("Network.emulateNetworkConditions", SLOW_4G)
            line.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER_PROCESSOR})
            page.goto(address, wait_until="commit")
            page.wait_for_function(f"() => {USABLE}", timeout=120_000)
            items.append(page.evaluate(f"() => {USABLE}.startTime"))
            page.wait_for_timeout(1000 * STILL_SECONDS)
            seen = page.evaluate("() => window.seen")
            painted.append(seen["lcp"])
            shifted.append(seen["cls"])
            largest = seen["what"]
            stops = tab_stops(page)
            context.close()
    return {
        "largest_contentful_paint_ms": round(statistics.median(painted)),
        "largest_contentful_paint_slowest_ms": round(max(painted)),
        "largest": largest,
        "first_items_ms": round(statistics.median(items)),
        "cumulative_layout_shift": round(max(shifted), 3),
        "tab_stops_to_sharing": stops,
    }


def tab_stops(page: Page) -> int:
    """How often Tab is pressed until something about sharing has the focus; more than `MOST_STOPS` are not counted."""
    page.evaluate("() => document.activeElement?.blur()")
    for presses in range(1, MOST_STOPS + 1):
        page.keyboard.press("Tab")
        if page.evaluate("(sharing) => document.activeElement?.matches(sharing)", SHARING):
            return presses
    return MOST_STOPS + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="One line of JSON.")
    parser.add_argument("--only", choices=["first-sight"], help="Only this part.")
    parser.add_argument("--visits", type=int, default=5)
    parser.add_argument("--items", type=int, nargs="+", default=[3706, 40_000])
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("Chromium is needed for this and is not installed.")
    first_sight = measure_first_sight(chromium, asked.visits)
    if asked.only == "first-sight":
        print(json.dumps({"first_sight": first_sight}))
        return
    results = [measure(chromium, items, asked.visits) for items in asked.items]
    squares = measure_squares(chromium)
    if asked.json:
        measured = {"results": results, "squares": squares, "first_sight": first_sight}
        print(json.dumps({"factors": FACTORS, "triples": TRIPLES} | measured))
        return
    for result in (*results, squares, first_sight):
        print(
            "  ".join(
                f"{name} {value:,}" if isinstance(value, float | int) else f"{name} {value}"
                for name, value in result.items()
            )
        )


if __name__ == "__main__":
    main()
