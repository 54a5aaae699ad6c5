"""The page in a real browser, against a real server: what a user does, and what the server then holds."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from safetensors.numpy import load
from tests.service.web.browsing import PATIENCE, Visitor, quick_page, serving
from tests.service.web.questions import POLICIES, assert_same_rounds, question_of_rounds

from federank.federation.method import Client
from federank.methods.fpl.method import FPL, FPLModel

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser):
    """Users who visit; at the end no browser has complained or asked anyone else for anything."""
    visitors = []

    def visit(server, **options):
        visitors.append(Visitor(browser, server.public, **options))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()
        assert visitor.complaints == []
        urls = {request.url for request in visitor.requests if not request.url.startswith(("data:", "blob:"))}
        assert {url[: len(visitor.address) + 1] for url in urls} == {f"{visitor.address}/"}


def python_recommends(server, stored, n=5):
    """What Python recommends with the home vector of the same history, seed and model."""
    told = server.get("federation").json()
    model = load(server.get("model").content)
    items = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    method = FPL(**told["recipe"])
    history = np.array(sorted(items.index(entry["id"]) for entry in stored["history"]), dtype=np.int32)
    identity = stored["records"]["identity"]
    model = FPLModel(model["vectors"], model["biases"])
    vector = method.fold_in(Client(identity["seed"], identity["user"], 0, history), model)
    scores = method.scores(model, vector)
    scores[history] = -np.inf
    return [items[item] for item in np.argsort(-scores, kind="stable")[:n]]


def ids(entries):
    return {entry["id"] for entry in entries}


def test_first_visit_gives_pythons_recommendations(town, visit):
    visitor = visit(town).open()
    page = visitor.page
    title = town.get("catalogue").json()["items"][7]["title"]
    page.locator("#search-text").fill(title[:-1].upper())
    page.locator(f'#grid .tile[aria-label="{title}"]').click()
    expect(page.locator("#search-text")).to_have_value("")  # the next name can be typed
    expect(page.locator("#grid .tile")).to_have_count(48)
    visitor.pick(4)
    page.locator("#go").click()
    assert visitor.recommended() == python_recommends(town, visitor.stored())
    assert town.get("status").json()["clients"] == 0, "looking and picking tell the server nothing"


def test_answers_and_undo(town, visit):
    visitor = visit(town).open().pick(3)
    page = visitor.page
    shown = visitor.recommended()
    stores = {"love": "history", "seen": "dismissed", "no": "dismissed"}
    for item, (answer, store) in zip(shown, stores.items(), strict=False):
        card = page.locator(f'#shelves .card[data-item="{item}"]')
        button = card.locator(f'[data-answer="{answer}"]')
        assert button.get_attribute("aria-label").startswith(button.inner_text())
        before = card.bounding_box()
        button.dblclick()  # a second tap hits nothing that anyone has chosen
        visitor.wait_until(lambda kept, item=item, store=store: item in ids(kept[store]))
        assert card.bounding_box() == before
        assert visitor.recommended() == shown, "nothing moves"
        expect(card.locator(".undo")).to_be_in_viewport()
    kept = visitor.stored()
    assert (len(kept["history"]), ids(kept["dismissed"])) == (4, set(shown[1:3]))
    for item in shown[:3]:
        page.locator(f'#shelves .card[data-item="{item}"] .undo').click()
    visitor.wait_until(lambda kept: len(kept["history"]) == 3 and not kept["dismissed"])
    page.locator(f'#shelves .card[data-item="{shown[3]}"] [data-answer="later"]').click()
    visitor.wait_until(lambda kept: kept["records"].get("later") == [shown[3]])
    page.locator(f'#shelves .card[data-item="{shown[4]}"] [data-answer="no"]').click()
    visitor.wait_until(lambda kept: ids(kept["dismissed"]) == {shown[4]})
    page.locator('#shelves [data-key="again"]').click()
    page.locator(f'#shelves .card[data-item="{shown[4]}"]').wait_for(state="detached")
    assert {request.method for request in visitor.requests} == {"GET"}


def test_the_browser_plays_rounds_as_python_does(town, visit):
    visitor = visit(town).open()
    asked = [question_of_rounds(policy) for policy in POLICIES.values()]
    text = Path(__file__).with_name("answers.mjs").read_text()
    functions = text[text.index("export async function") : text.index("// Under node")].replace("export ", "")
    modules = "await protocolAt((path) => import(`/${path}`))"
    found = visitor.page.evaluate(
        f"async (questions) => {{ {functions} return answers({modules}, questions); }}",
        [question for question, _ in asked],
    )
    for answer, (_, expected) in zip(found, asked, strict=True):
        assert_same_rounds(answer, expected)


def test_round_of_browsers_and_python_clients(visit, tmp_path):
    with serving(tmp_path, rounds={"target": 23, "over_selection": 1.0, "deadline": 60.0}) as server:
        visitors = [visit(server).open().pick(5) for _ in range(3)]
        program = Path(__file__).with_name("neighbours.py")
        fleet = subprocess.Popen([sys.executable, str(program), server.public, "20", "1"])
        try:
            for visitor in visitors:
                visitor.take_part()
            for visitor in visitors:
                visitor.wait_until(lambda kept: any(played.get("uploads") == 23 for played in kept["rounds"]))
            assert fleet.wait() == 0
        finally:
            fleet.kill()
            fleet.wait()
        [(state, reports)] = server.rows("SELECT state, reports FROM rounds WHERE number = 0")
        assert (state, reports) == ("aggregated", 23)
        expect(visitors[0].page.locator(".timeline li").last).to_contain_text("22")


def test_sharing_nothing_sends_nothing(town, visit):
    visitor = visit(town).open().pick(6).share("none")
    expect(visitor.page.locator(".side.out .tile")).to_have_count(0)
    visitor.page.locator('#leaves [data-key="go"]').click()
    assert len(visitor.recommended()) == 5
    assert {request.method for request in visitor.requests} == {"GET"}
    assert visitor.stored()["records"].get("taking") is not True
    assert town.get("status").json()["clients"] == 0


def test_items_chosen_by_hand_alone_are_sent(server, visit):
    visitor = visit(server).open().pick(6).share("few")
    page = visitor.page
    sides = {side: page.locator(f".side.{side} .tile") for side in ("out", "stays")}
    expect(sides["out"]).to_have_count(2)
    kept, shared = sides["out"].first.get_attribute("data-item"), sides["stays"].first.get_attribute("data-item")
    sides["out"].first.click()
    expect(sides["out"]).to_have_count(1)  # and no other takes its place
    sides["stays"].and_(page.locator(f'[data-item="{shared}"]')).click()
    expect(sides["out"]).to_have_count(2)
    named = set(sides["out"].evaluate_all("all => all.map((one) => one.dataset.item)"))
    assert shared in named
    assert kept not in named
    visitor.take_part().wait_for_rounds(2)
    visitor.pick(2).wait_for_rounds(visitor.received(visitor.stored()) + 2)  # what is added later stays
    ids_ = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    sent = {
        ids_[item]
        for update in server.updates()
        for item, bias in zip(update.items, update.biases, strict=True)
        if bias > 0
    }
    assert sent == named


def test_growing_list_keeps_its_share(server, visit):
    visitor = visit(server).open().pick(4).share("half").take_part().wait_for_rounds(1)
    sent = {entry["id"] for entry in visitor.stored()["ledger"] if entry["real"]}
    assert len(sent) <= 2
    visitor.wait_until(lambda kept: len([entry for entry in kept["ledger"] if entry["real"]]) == 2)
    sent = {entry["id"] for entry in visitor.stored()["ledger"] if entry["real"]}
    gone = sorted(sent)[0]
    visitor.go("mine").page.locator(f'#own [data-key="{gone}"]').click()
    visitor.page.locator("#item .danger").click()
    visitor.wait_until(lambda kept: len(kept["history"]) == 3)
    before = visitor.received(visitor.stored())
    visitor.wait_for_rounds(before + 1)
    assert {entry["id"] for entry in visitor.stored()["ledger"] if entry["real"]} == sent, "of three, two have left"
    expect(visitor.page.locator("#lock")).to_contain_text("2")


def test_reload_continues(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    before = visitor.stored()
    visitor.open().wait_for_rounds(len(before["rounds"]) + 2)
    after = visitor.stored()
    assert after["records"]["identity"] == before["records"]["identity"]
    assert ids(after["history"]) == ids(before["history"])
    assert {played["ticket"] for played in before["rounds"]} <= {played["ticket"] for played in after["rounds"]}
    assert server.get("status").json()["clients"] == 1


def test_leaving_erases_everything(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    page = visitor.page
    page.locator("#leave").click()
    page.locator('#sure [value="no"]').click()
    assert visitor.stored()["history"], "who keeps it has lost nothing"
    visitor.leave()
    stored = visitor.stored()
    assert {store: len(kept) for store, kept in stored.items() if kept} == {}
    assert server.rows("SELECT COUNT(*) FROM clients") == [(0,)]
    expect(page.locator("#grid .tile[aria-pressed=true]")).to_have_count(0)
    expect(page.locator("#lock")).to_have_attribute("data-kind", "closed")


def test_second_tab_takes_over(server, visit, words):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    other = visitor.tab()
    visitor.open(other, "/#leaves")
    expect(other.locator("#doing")).to_have_text(words["en"]["doing.other-tab"], timeout=PATIENCE)
    tickets = [played["ticket"] for played in visitor.stored(other)["rounds"]]
    assert len(tickets) == len(set(tickets))
    visitor.page.close()
    visitor.page = other
    visitor.wait_for_rounds(len(tickets) + 2).pause()
    visitor.wait_until(lambda kept: kept["pending"] == [])
    assert server.get("status").json()["clients"] == 1
    assert len(server.updates()) == visitor.received(visitor.stored())


def test_first_upload_waits_and_can_be_stopped(visit, tmp_path):
    with serving(tmp_path, page=quick_page(6000)) as server:
        visitor = visit(server).open().pick(4).share("all").take_part()
        page = visitor.page
        expect(page.locator("#lock")).to_have_attribute("data-kind", "hold")
        page.locator('[data-key="stop"]').click()
        page.locator('#leaves [data-key="go"]').wait_for()
        page.wait_for_timeout(7000)
        assert server.rows("SELECT COUNT(*) FROM uploads") == [(0,)]
        visitor.take_part().wait_for_rounds(1)
        before = ids(visitor.stored()["history"])
        visitor.pick(1).wait_until(lambda kept: len(kept["history"]) == 5)
        [added] = ids(visitor.stored()["history"]) - before
        visitor.go("leaves").page.locator('[data-key="stop"]').click()
        visitor.wait_until(lambda kept: kept["records"]["policy"]["neverIds"] == [added])
        visitor.wait_for_rounds(visitor.received(visitor.stored()) + 8)
        assert added not in {item for played in visitor.stored()["rounds"] for item in played["liked"]}


TOO_SMALL = """() => [...document.querySelectorAll("button, a, label.button, input:not(.unseen), summary, select")]
  .filter((made) => made.checkVisibility() && !made.closest(".skip, details:not([open]) > :not(summary)"))
  .filter((made) => !made.matches(".skip, input[type=checkbox], p a, dd a"))
  .map((made) => [made.textContent || made.id, made.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 44 || height < 44)
  .map(([words, { width, height }]) => [words, width, height])"""


def test_narrow_phone(server, visit):
    visitor = visit(server, viewport={"width": 320, "height": 640}).open()
    page = visitor.page
    assert page.locator("#grid .tile").first.bounding_box()["y"] < 330
    wide = "() => document.documentElement.scrollWidth"
    visitor.pick(7).take_part().wait_for_rounds(1)
    for screen in ("wall", "for-you", "mine", "leaves"):
        visitor.go(screen)
        for summary in page.locator("summary:visible").all():
            summary.click()
        assert page.evaluate(wide) == 320, screen
        assert page.evaluate(TOO_SMALL) == [], screen


def test_keyboard(server, visit):
    visitor = visit(server).open().pick(3)
    page = visitor.page
    visitor.go("for-you").page.reload()
    page.wait_for_selector("html[data-ready]")
    stops = 0
    for wanted in ("#tabs a[href='#leaves']", '#leaves [data-key="go"]'):
        while not page.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            page.keyboard.press("Tab")
            stops += 1
            assert stops <= 20
        page.keyboard.press("Enter")
    page.locator('#leaves [data-key="pause"]:not(.yes)').wait_for()


def test_loaded_file_asks_before_it_counts(town, visit, tmp_path):
    items = town.get("catalogue").json()["items"]
    names = [items[3]["title"].upper(), str(items[9]["id"]), 'A place, "unknown"', items[3]["title"]]
    rows = "\n".join('"' + name.replace('"', '""') + '",2020-01-01' for name in names)
    (tmp_path / "watched.csv").write_text("title,date\n" + rows)
    (tmp_path / "rated.csv").write_text(f'title,rating\n"{items[20]["title"]}",5\n')
    visitor = visit(town).open().go("mine")
    page = visitor.page
    page.locator("#file").set_input_files(tmp_path / "watched.csv")
    page.locator('#file-result [data-how="known"]').click()
    visitor.wait_until(lambda kept: ids(kept["dismissed"]) == {str(items[3]["id"]), str(items[9]["id"])})
    assert visitor.stored()["history"] == []
    page.locator("#file").set_input_files(tmp_path / "watched.csv")
    page.locator('#file-result [data-how="love"]').click()
    visitor.wait_until(lambda kept: len(kept["history"]) == 2 and not kept["dismissed"])
    page.locator("#file").set_input_files(tmp_path / "rated.csv")
    expect(page.locator('#file-result [data-how="known"]')).to_have_count(0)
    page.locator('#file-result [data-how="love"]').click()
    visitor.wait_until(lambda kept: len(kept["history"]) == 3)
    assert {request.method for request in visitor.requests} == {"GET"}


def test_saved_file_moves_list_and_record(visit, tmp_path):
    with serving(tmp_path, method="frugal") as server:
        visitor = visit(server).open().pick(5).take_part().wait_for_rounds(3)
        visitor.wait_until(lambda kept: all(played["outcome"] == "aggregated" for played in kept["rounds"]))
        shown = visitor.recommended()[0]
        visitor.page.locator(f'#shelves .card[data-item="{shown}"] [data-answer="no"]').click()
        visitor.wait_until(lambda kept: len(kept["dismissed"]) == 1)
        with visitor.page.expect_download() as download:
            visitor.go("leaves").page.locator('[data-key="save-record"]').click()
        path = tmp_path / "saved.json"
        download.value.save_as(path)
        other = visit(server).open().go("mine")
        other.page.locator("#file").set_input_files(path)
        other.wait_until(lambda kept: len(kept["history"]) == 5)
        mine, theirs = visitor.stored(), other.stored()
        for store in ("history", "dismissed", "ledger", "rounds"):
            assert theirs[store] == mine[store], store
        assert "identity" not in theirs["records"] or theirs["records"]["identity"]["token"] is None
        expect(other.go("leaves").page.locator(".timeline li")).to_have_count(3)
        assert other.page.locator('[data-key="pause"]').count() == 0, "its messages are spent here too"


def test_last_message_is_shown(server, visit):
    visitor = visit(server).open().pick(4).take_part().wait_for_rounds(1).pause()
    visitor.wait_until(lambda kept: kept["pending"] == [])
    page = visitor.page
    page.locator("#curious summary").click()
    expect(page.locator("#raw pre")).to_be_visible()
    kept = visitor.stored()["last"][0]
    [(body,)] = server.rows("SELECT body FROM uploads WHERE round = ?", kept["round"])
    assert bytes(kept["body"]) == bytes(body)
    assert bytes.fromhex(page.locator("#raw pre").inner_text()) == bytes(body)[:256]


OTHER_VERSION = """async (version) => {
  const request = indexedDB.open("federank", version);
  const stores = ["records", "history", "dismissed", "ledger", "rounds", "pending", "model"];
  request.onupgradeneeded = () => stores.forEach((store) => request.result.createObjectStore(store));
  await new Promise((resolve) => (request.onsuccess = resolve));
  const history = request.result.transaction("history", "readwrite").objectStore("history");
  await new Promise((resolve) => (history.put({ id: "3", title: "x", at: 1 }, "3").onsuccess = resolve));
  request.result.close();
}"""


@pytest.mark.parametrize("version", [1, 3])
def test_storage_of_another_version_is_refused(town, visit, words, version):
    visitor = visit(town)
    visitor.page.goto(f"{town.public}/how.html")
    visitor.page.evaluate(OTHER_VERSION, version)
    visitor.page.goto(town.public)
    expect(visitor.page.locator("#trouble")).to_contain_text(words["en"]["fault.storage-version"])
    assert [entry["id"] for entry in visitor.stored()["history"]] == ["3"]


def test_script_in_a_title_is_text(visit, tmp_path):
    titles = ["<script>window.broken = 1</script>", "<img src=x onerror='window.broken = 2'>", "</li><b>bold", "plain"]
    with serving(tmp_path, titles=titles * 4) as server:
        visitor = visit(server).open()
        labels = visitor.page.locator("#grid .tile").evaluate_all("all => all.map((one) => one.ariaLabel)")
        assert set(labels) == set(titles)
        visitor.pick(3).recommended()
        drawn = visitor.page.locator("#shelves img").evaluate_all(
            "async (all) => { await Promise.all(all.map((one) => one.decode())); return all.length; }"
        )
        assert drawn > 3, "a poster of such a title is still one"
        assert visitor.page.evaluate("() => window.broken") is None
        assert visitor.page.locator("main script, main b:not(.why b)").count() == 0


def test_posters_before_the_model_can_be_tapped(town, visit):
    visitor = visit(town)
    held = []
    visitor.context.route("**/api/v1/*", lambda route: held.append(route))
    visitor.page.goto(town.public)
    tiles = visitor.page.locator("#grid .tile")
    expect(tiles).to_have_count(24)
    before = tiles.evaluate_all("all => all.map((one) => one.dataset.key)")
    tiles.nth(2).click()
    expect(tiles.nth(2)).to_have_attribute("aria-pressed", "true")
    for route in held:
        route.continue_()
    visitor.context.unroute("**/api/v1/*")
    visitor.page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    expect(visitor.page.locator("#stack")).to_have_attribute("data-for", before[2])
    after = tiles.evaluate_all("all => all.map((one) => one.dataset.key)")
    assert after[: len(before)] == before, "nothing moves when the model is there"
    assert len(after) > len(before)


def test_page_is_small_and_has_nothing_inline(town, visit):
    visitor = visit(town).open()
    sent = {request.url: request.response() for request in visitor.requests if request.url.startswith(town.public)}
    files = {url: answer for url, answer in sent.items() if "/api/" not in url}
    scripts = {url.removeprefix(town.public) for url in files if url.endswith(".js")}
    assert scripts == {"/start.js", "/client/worker.js"}, "the server makes one file of each one's modules"
    assert len(files) < 10
    # A file that the worker needs too is asked for again, and answered with nothing.
    assert 20_000 < sum(int(answer.header_value("content-length") or 0) for answer in files.values()) < 120_000
    policy = visitor.page.request.get(town.public).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
