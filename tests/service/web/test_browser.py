"""The page in a real browser, against a real server: what a person does, and what the server then holds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect
from safetensors.numpy import load
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.conftest import LANGUAGES
from tests.service.web.questions import POLICIES, assert_same_rounds, question_of_rounds

from federank.methods.fpl.method import home_vector
from federank.methods.fpl.settings import FPLSettings, recipe_for
from federank.methods.fpl.wire import Broadcast
from federank.privacy.policy import Policy, shared_profile

pytestmark = pytest.mark.slow


@pytest.fixture
def visit(browser):
    """People who visit; at the end no one's browser has complained or asked anyone else for anything."""
    visitors = []

    def visit(server, **options):
        visitors.append(Visitor(browser, server.public, **options))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.close()
        assert visitor.complaints == []
        assert {request.url[: len(visitor.address) + 1] for request in visitor.requests} == {f"{visitor.address}/"}


def python_recommends(server, stored, n=10):
    """What Python recommends to a person with the home vector of the same history, seed and model."""
    told = server.get("federation").json()
    model = load(server.get("model").content)
    items = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    settings = FPLSettings(**told["recipe"])
    history = np.array(sorted(items.index(entry["id"]) for entry in stored["history"]), dtype=np.int32)
    recipe = recipe_for(settings, np.array([len(history)]), len(items), np.zeros(1))
    identity = stored["facts"]["identity"]
    broadcast = Broadcast(0, 0, model["items"], model["vectors"], model["biases"])
    vector = home_vector(recipe, identity["seed"], identity["user"], history, broadcast)
    scores = model["vectors"] @ vector + model["biases"]
    scores[history] = -np.inf
    return [items[item] for item in np.argsort(-scores, kind="stable")[:n]]


def test_a_first_visit_leads_to_recommendations_that_python_would_give(town, visit):
    visitor = visit(town).open()
    page = visitor.page
    expect(page.locator("#recommended li")).to_have_count(0)
    title = town.get("catalogue").json()["items"][7]["title"]
    page.get_by_label("Search by name").fill(title[:-1].upper())
    page.locator("#found button", has_text=title).click()
    page.get_by_label("Search by name").fill("")
    expect(page.locator("#found button")).to_have_count(12)
    visitor.pick(4)
    expect(page.locator("#recommended li")).to_have_count(10)
    page.wait_for_function("() => document.querySelector('#yours-title').textContent.startsWith('Your 5 ')")
    expected = python_recommends(town, visitor.stored())
    expect(page.locator("#recommended li").first).to_have_attribute("data-item", expected[0])
    assert page.locator("#recommended li").evaluate_all("all => all.map((one) => one.dataset.item)") == expected
    assert town.get("status").json()["devices"] == 0, "looking and picking must tell the server nothing"


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_the_answer_that_says_so_adds_a_like(town, browser, words, language):
    visitor = Visitor(browser, town.public, locale=language).open().pick(3)
    page, own = visitor.page, words[language]
    store_of = {own["answer.yes"]: "history", own["answer.no"]: "dismissed", own["seen.know-it"]: "dismissed"}
    answered = []
    for answer, store in store_of.items():  # of whatever is first by then: every answer changes the list
        first = page.locator("#recommended li").first
        button = first.get_by_role("button").filter(has_text=re.compile(f"^{answer}$"))
        item = first.get_attribute("data-item")
        label = button.get_attribute("aria-label")
        assert label.startswith(answer), "what is read out begins with what is seen"
        assert first.locator(".title").inner_text() in label
        button.click()
        visitor.wait_until(lambda kept, item=item, store=store: item in ids(kept[store]))
        answered.append(item)
    kept = visitor.stored()
    assert len(kept["history"]) == 4, "three were picked and one is liked"
    assert ids(kept["dismissed"]) == set(answered[1:])
    for item in answered:
        expect(page.locator(f'#recommended li[data-item="{item}"]')).to_have_count(0)
    expect(page.locator("#recommended li")).to_have_count(10)
    visitor.close()


def ids(entries):
    return {entry["id"] for entry in entries}


def test_the_browser_plays_rounds_as_python_does(town, visit):
    visitor = visit(town).open()
    asked = [question_of_rounds(policy) for policy in POLICIES.values()]
    text = Path(__file__).with_name("answers.mjs").read_text()
    function = text[text.index("export function") + len("export ") : text.index("// Under node")]
    found = visitor.page.evaluate(
        f"async (questions) => {{ {function} return answers(await import('/protocol/index.js'), questions); }}",
        [question for question, _ in asked],
    )
    for answer, (_, expected) in zip(found, asked, strict=True):
        assert_same_rounds(answer, expected)


def test_the_ledger_lists_exactly_what_the_server_has_seen(server, visit):
    visitor = visit(server).open().pick(10).share(30).take_part().wait_for_rounds(3)
    visitor.page.get_by_role("button", name="Pause").click()
    expect(visitor.page.locator("#progress")).to_contain_text("nothing is sent")
    stored, seen = visitor.stored(), {}
    ids = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    for update in server.updates():
        for item, bias in zip(update.items, update.biases, strict=True):
            liked, compared = seen.get(ids[item], (0, 0))
            seen[ids[item]] = (liked + int(bias > 0), compared + int(bias < 0))
    assert {entry["id"]: (entry["times_liked"], entry["times_compared"]) for entry in stored["ledger"]} == seen
    sent = {item for item, (liked, _) in seen.items() if liked}
    assert sent <= {entry["id"] for entry in stored["history"]}
    assert 0 < len(sent) <= 3, "at 30 %, 3 of 10 may ever leave"
    expect(visitor.page.locator("#left-sentence")).to_contain_text(f"{len(sent)} of your 10 items")


def test_a_full_round_with_three_browsers_and_twenty_python_devices(visit, tmp_path):
    with serving(tmp_path, rounds={"target": 23, "over_selection": 1.0, "deadline": 60.0}) as server:
        visitors = [visit(server).open().pick(5) for _ in range(3)]
        program = Path(__file__).with_name("neighbours.py")
        fleet = subprocess.Popen([sys.executable, str(program), server.public, "20", "1"])
        try:
            for visitor in visitors:
                visitor.take_part()
            for visitor in visitors:
                visitor.wait_for_rounds(1)
            assert fleet.wait(60) == 0
        finally:
            fleet.kill()
            fleet.wait()
        [(state, reports)] = server.rows("SELECT state, reports FROM rounds WHERE number = 0")
        assert (state, reports) == ("folded", 23)
        assert server.get("status").json()["version"] >= 1
        for visitor in visitors:
            assert visitor.complaints == []


def test_with_the_slider_at_zero_nothing_at_all_is_sent(town, visit):
    visitor = visit(town).open().pick(6).share(0)
    expect(visitor.page.locator("#share-sentence")).to_contain_text("Nothing leaves this device")
    visitor.take_part()
    expect(visitor.page.locator("#progress")).to_contain_text("You share nothing, so nothing is sent")
    expect(visitor.page.locator("#recommended li")).to_have_count(10)
    assert {request.method for request in visitor.requests} == {"GET"}
    assert town.get("status").json()["devices"] == 0
    assert town.updates() == []
    assert visitor.stored()["ledger"] == []


def test_moving_the_slider_to_zero_ends_what_was_being_sent(server, visit):
    visitor = visit(server).open().pick(6).share(50).take_part().wait_for_rounds(1)
    visitor.share(0)
    expect(visitor.page.locator("#progress")).to_contain_text("You share nothing")
    visitor.wait_until(lambda kept: kept["pending"] == [])
    before = len(server.updates())
    visitor.page.wait_for_timeout(2500)
    assert len(server.updates()) == before


def test_what_is_marked_never_to_be_shared_never_leaves(server, visit):
    visitor = visit(server).open().pick(6).share(100)
    page = visitor.page
    rows = page.locator("#yours li")
    marked = rows.nth(0).locator(".what").inner_text().split("\n")[0].removesuffix(" may leave").strip()
    rows.nth(0).get_by_role("button", name="Never share").click()
    expect(rows.nth(0)).to_contain_text("stays here")
    page.get_by_text("Never share a whole category").click()
    categories = {str(item["title"]): item["categories"] for item in server.get("catalogue").json()["items"]}
    history = [entry["title"] for entry in visitor.stored()["history"]]
    category = next(categories[title][0] for title in history if title != marked)
    page.locator("#never-categories").get_by_role("button", name=category).click()
    page.locator("#never-categories").get_by_role("button", name=f"{category}: never").wait_for()
    forbidden = {marked} | {title for title in history if category in categories[title]}
    visitor.take_part().wait_for_rounds(3)
    titles = list(categories)
    sent = {titles[item] for update in server.updates() for item, bias in zip(*update[::2], strict=True) if bias > 0}
    assert sent
    assert not sent & forbidden


def test_a_reload_goes_on_where_it_was(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    before = visitor.stored()
    visitor.open().wait_for_rounds(len(before["rounds"]) + 2)
    after = visitor.stored()
    assert after["facts"]["identity"] == before["facts"]["identity"]
    assert after["history"] == before["history"]
    assert {played["ticket"] for played in before["rounds"]} <= {played["ticket"] for played in after["rounds"]}
    assert server.get("status").json()["devices"] == 1


def test_leaving_erases_everything_here_and_the_device_there(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    page = visitor.page
    page.get_by_role("button", name="Leave and erase everything").click()
    page.get_by_role("button", name="Keep it").click()
    assert visitor.stored()["history"], "who keeps it has lost nothing"
    page.get_by_role("button", name="Leave and erase everything").click()
    page.get_by_role("button", name="Leave and erase", exact=True).click()
    expect(page.locator("#trouble")).to_contain_text("You have left")
    stored = visitor.stored()
    assert {store: len(kept) for store, kept in stored.items() if kept} == {}
    assert server.rows("SELECT COUNT(*) FROM devices") == [(0,)]
    visitor.open()
    expect(page.locator("#pick-lead")).to_contain_text("Begin with three")


def test_of_two_tabs_one_takes_part_and_the_other_takes_over(server, visit):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    other = visitor.tab()
    visitor.open(other)
    expect(other.locator("#progress")).to_contain_text("Another tab", timeout=PATIENCE)
    tickets = [played["ticket"] for played in visitor.stored(other)["rounds"]]
    assert len(tickets) == len(set(tickets))
    visitor.page.close()
    visitor.page = other
    visitor.wait_for_rounds(len(tickets) + 2)
    other.get_by_role("button", name="Pause").click()
    other.get_by_role("button", name="Take part").wait_for()
    visitor.wait_until(lambda kept: kept["pending"] == [])
    assert server.get("status").json()["devices"] == 1
    assert len(server.updates()) == visitor.received(visitor.stored())


def test_two_tabs_that_share_nothing_leave_each_other_in_peace(server, visit):
    visitor = visit(server).open().pick(3).share(0).take_part()
    other = visitor.tab()
    visitor.open(other)
    expect(other.locator("#progress")).to_contain_text("You share nothing")
    heard = other.evaluate(
        """async () => {
          const line = new BroadcastChannel("federank");
          let count = 0;
          line.onmessage = () => count++;
          await new Promise((resolve) => setTimeout(resolve, 1000));
          return count;
        }"""
    )
    assert heard == 0


def test_a_list_that_grows_keeps_the_promise_of_the_slider(server, visit):
    visitor = visit(server).open().pick(4).share(25).take_part().wait_for_rounds(1)
    for count in range(5, 9):
        visitor.pick(1).agree().wait_for_rounds(visitor.received(visitor.stored()) + 1)
        sent = {entry["id"] for entry in visitor.stored()["ledger"] if entry["times_liked"]}
        assert 1 <= len(sent) <= -(-count // 4)


def test_what_has_left_counts_for_life_even_when_it_is_removed_from_the_list(server, visit):
    visitor = visit(server).open().pick(4).share(25).take_part()
    visitor.wait_until(lambda kept: any(entry["real"] for entry in kept["ledger"]))
    [sent] = [entry for entry in visitor.stored()["ledger"] if entry["real"]]
    page = visitor.page
    page.get_by_role("button", name=f"Remove {sent['title']}").click()
    expect(page.locator("#progress")).to_contain_text("As much as you allow has left already")
    expect(page.locator("#share-sentence")).to_contain_text("None of your 3 items may leave any more")
    visitor.wait_until(lambda kept: kept["pending"] == [])
    before = len(server.updates())
    page.locator(f'#found button[aria-pressed=false]:not([data-key="{sent["id"]}"])').first.click()
    expect(page.locator("#yours-title")).to_have_text("Your 4 items")
    page.wait_for_timeout(2500)
    assert len(server.updates()) == before
    visitor.share(50).agree()  # of four, two may leave now: the one that has, and one more
    visitor.wait_for_rounds(before + 2)
    ids = [str(item["id"]) for item in server.get("catalogue").json()["items"]]
    seen = {ids[item] for update in server.updates() for item, bias in zip(*update[::2], strict=True) if bias > 0}
    assert len(seen) == 2
    assert sent["id"] in seen


def test_randomized_response_sharing_says_what_it_does_not_hide(town, visit):
    visitor = visit(town).open().pick(6)
    page = visitor.page
    page.get_by_text("Other ways to share").click()
    page.get_by_label("With decoys").check()
    expect(page.locator("#kinds")).to_contain_text("what you add or remove later")
    expect(page.locator("#share-sentence")).to_contain_text("what changes later can be noticed")
    expect(page.locator("#guesses")).to_contain_text("as long as your list and your choices stay")
    visitor.share(95)
    rows = page.locator("#yours li")
    for place in range(6):
        rows.nth(place).get_by_role("button", name="Never share").click()
        rows.nth(place).locator("[aria-pressed=true]").wait_for()
    kept, items = visitor.stored(), town.get("catalogue").json()["items"]
    ids, identity = [str(item["id"]) for item in items], kept["facts"]["identity"]
    history = sorted(ids.index(entry["id"]) for entry in kept["history"])
    chosen = Policy(
        sharing="randomized-response", pi=0.95, item_epsilon=2, basis="shared", never_items=frozenset(history)
    )
    answered = shared_profile(chosen, identity["seed"], identity["user"], np.array(history, np.int32), len(ids)).profile
    for place in range(6):
        title, tag = rows.nth(place).locator(".what").inner_text(), rows.nth(place).locator(".tag").inner_text()
        number = next(number for number in history if title.startswith(items[number]["title"]))
        assert tag == ("may be sent as a decoy" if number in answered else "stays here")
    sent_as_decoys = len(np.intersect1d(answered, history))
    expect(page.locator(".legend")).to_contain_text(f"stays: {6 - sent_as_decoys}")


def test_it_fits_a_narrow_phone(server, visit):
    visitor = visit(server, viewport={"width": 320, "height": 640}).open()
    page = visitor.page
    widths = "() => [document.documentElement.scrollWidth, window.innerWidth]"
    assert page.evaluate(widths) == [320, 320]
    visitor.pick(10).take_part().wait_for_rounds(1)
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate(widths) == [320, 320]


def test_everything_can_be_done_with_the_keyboard(server, visit):
    visitor = visit(server).open()
    page = visitor.page
    page.get_by_label("Search by name").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.closest('#found') !== null"), "category, then what was found"
    key = page.evaluate("() => document.activeElement.dataset.key")
    page.keyboard.press("Enter")
    page.locator(f'#found button[data-key="{key}"][aria-pressed=true]').wait_for()
    assert page.evaluate("() => document.activeElement.dataset.key") == key, "focus stays where it was"
    page.locator("#share").focus()
    page.keyboard.press("End")
    expect(page.locator("#share-value")).to_have_text("100 %")
    page.wait_for_function("() => document.querySelector('#share-origin').textContent === ''")
    page.locator("#take-part").focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Pause").wait_for()


def test_every_control_has_a_name_and_every_picture_words(town, visit):
    visitor = visit(town).open().pick(5)
    nameless = visitor.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a, [role=img], dialog, section")]
          .filter((one) => !one.labels?.length && !one.textContent.trim())
          .filter((one) => !one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby"))
          .map((one) => one.outerHTML)"""
    )
    assert nameless == []


def test_a_history_file_is_matched_here_and_sent_nowhere(town, visit, tmp_path):
    items = town.get("catalogue").json()["items"]
    names = [items[3]["title"].upper(), str(items[9]["id"]), 'A place, "unknown"', items[3]["title"]]
    rows = "\n".join('"' + name.replace('"', '""') + '",2020-01-01' for name in names)
    (tmp_path / "history.csv").write_text("title,date\n" + rows)
    (tmp_path / "history.json").write_text(json.dumps([{"name": items[20]["title"], "stars": 5}, {"name": "nowhere"}]))
    visitor = visit(town).open()
    page = visitor.page
    page.get_by_text("Load a history file instead").click()
    page.locator("#file").set_input_files(tmp_path / "history.csv")
    expect(page.locator("#file-result")).to_contain_text("2 of 4 lines matched")
    expect(page.locator("#file-result")).to_contain_text("1 not in this catalogue")
    page.get_by_role("button", name="Add 2 items").click()
    expect(page.locator("#yours-title")).to_have_text("Your 2 items")
    page.locator("#file").set_input_files(tmp_path / "history.json")
    expect(page.locator("#file-result")).to_contain_text("1 of 2 lines matched")
    assert {request.method for request in visitor.requests} == {"GET"}
    assert {entry["id"] for entry in visitor.stored()["history"]} == {str(items[3]["id"]), str(items[9]["id"])}


def test_the_last_message_can_be_looked_at_byte_by_byte(server, visit):
    visitor = visit(server).open().pick(4).take_part().wait_for_rounds(1)
    page = visitor.page
    page.get_by_role("button", name="Pause").click()
    visitor.wait_until(lambda kept: kept["pending"] == [])
    page.get_by_text("The last message, as it is").click()
    shown = page.locator("#raw pre")
    expect(shown).to_be_visible()
    kept = visitor.stored()["last"][0]
    [(body,)] = server.rows("SELECT body FROM uploads WHERE round = ?", kept["round"])
    assert bytes(kept["body"]) == bytes(body)
    assert bytes.fromhex(shown.inner_text()) == bytes(body)[:512]
    expect(page.locator("#raw")).to_contain_text(f"Made for round {kept['round']}: {len(body):,} bytes.")


OTHER_VERSION = """async (version) => {
  const request = indexedDB.open("federank", version);
  const stores = ["facts", "history", "dismissed", "ledger", "rounds", "pending", "model"];
  request.onupgradeneeded = () => stores.forEach((store) => request.result.createObjectStore(store));
  await new Promise((resolve) => (request.onsuccess = resolve));
  const history = request.result.transaction("history", "readwrite").objectStore("history");
  await new Promise((resolve) => (history.put({ id: "3", title: "x", at: 1 }, "3").onsuccess = resolve));
  request.result.close();
}"""


@pytest.mark.parametrize("version", [1, 3])
def test_what_another_version_of_the_page_kept_is_refused(town, visit, version):
    visitor = visit(town)
    visitor.page.goto(f"{town.public}/privacy.html")
    visitor.page.evaluate(OTHER_VERSION, version)
    visitor.page.goto(town.public)
    expect(visitor.page.get_by_text("another version of this page")).to_be_visible()
    assert [entry["id"] for entry in visitor.stored()["history"]] == ["3"]


def test_a_wrong_match_is_left_out_and_an_unknown_name_is_looked_for_by_hand(town, visit, tmp_path):
    items = town.get("catalogue").json()["items"]
    names = [items[3]["title"].upper(), items[9]["title"], "nowhere at all"]
    (tmp_path / "history.csv").write_text("title\n" + "\n".join(f'"{name}"' for name in names))
    visitor = visit(town).open()
    page = visitor.page
    page.get_by_text("Load a history file instead").click()
    page.locator("#file").set_input_files(tmp_path / "history.csv")
    page.get_by_text("Look through what was matched").click()
    expect(page.locator("#file-result")).to_contain_text(f"from: {names[0]}")
    page.get_by_label(items[3]["title"]).uncheck()
    page.get_by_text("1 not in this catalogue").click()
    page.get_by_role("button", name="nowhere at all").click()
    expect(page.locator("#search-text")).to_have_value("nowhere at all")
    expect(page.locator("#search-text")).to_be_focused()
    page.get_by_role("button", name="Add 1 item").click()
    expect(page.locator("#yours-title")).to_have_text("Your 1 item")
    assert [entry["id"] for entry in visitor.stored()["history"]] == [str(items[9]["id"])]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("huge.csv", b"x" * (10 * 2**20 + 1), "a history of up to 10 MB can be read"),
        ("empty.csv", b"", "This file is empty"),
        ("picture.csv", bytes(range(256)) * 20, "not text in UTF-8"),
        ("zeros.txt", b"title\n\0\0\0", "not text"),
        ("cut.json", b'[{"title": "A', "begins like JSON and then is not"),
        ("table.json", b'{"a": 1}', "holds no list"),
        ("open.csv", b'title\n"never ends', "never ends"),
        ("blank.csv", b"title\n\n\n", "No items were found"),
    ],
)
def test_a_file_that_is_no_history_gets_a_sentence(town, visit, tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    visitor = visit(town).open()
    visitor.page.get_by_text("Load a history file instead").click()
    visitor.page.locator("#file").set_input_files(tmp_path / name)
    expect(visitor.page.locator("#file-result [role=alert]")).to_contain_text(sentence, timeout=PATIENCE)


def test_script_in_a_title_is_text(visit, tmp_path):
    titles = ["<script>window.broken = 1</script>", "<img src=x onerror='window.broken = 2'>", "</li><b>bold", "plain"]
    with serving(tmp_path, titles=titles * 4) as server:
        visitor = visit(server).open().pick(3)
        for title in titles[:3]:
            assert title in visitor.page.locator("body").inner_text()
        assert visitor.page.evaluate("() => window.broken") is None
        assert visitor.page.locator("main b, main img, main script").count() == 0


def test_what_the_federation_suggests_is_shown_and_can_be_changed(visit, tmp_path):
    with serving(
        tmp_path, suggested_policy={"sharing": "randomized-response", "pi": 0.5, "item_epsilon": 1.0, "basis": "shared"}
    ) as server:
        visitor = visit(server).open().pick(4)
        page = visitor.page
        expect(page.locator("#share-value")).to_have_text("50 %")
        expect(page.locator("#share-origin")).to_contain_text("Testville suggests")
        expect(page.locator("#share-sentence")).to_contain_text("you did not choose")
        page.get_by_text("Other ways to share").click()
        page.get_by_label("A fixed part, for its lifetime").check()
        expect(page.locator("#share-sentence")).to_have_text(
            "As your list stands, 2 of your 4 items may ever leave this device."
        )
        assert visitor.stored()["facts"]["policy"]["sharing"] == "fixed-subset"


def test_the_page_is_light_and_needs_nothing_inline(town, visit):
    visitor = visit(town).open()
    sent = {request.url: request.response() for request in visitor.requests if "/api/" not in request.url}
    assert len(sent) > 10
    # A file that the worker needs too is asked for again, and answered with nothing.
    assert 20_000 < sum(int(answer.header_value("content-length") or 0) for answer in sent.values()) < 120_000
    policy = visitor.page.request.get(town.public).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
