"""The page speaks the browser's language, or the one that was chosen: all of it, at once, and next time too."""

import re

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.conftest import LANGUAGES

pytestmark = pytest.mark.slow

OPEN = "() => document.querySelectorAll('details').forEach((box) => (box.open = true))"
TOO_WIDE = "() => document.documentElement.scrollWidth > window.innerWidth"
LOCALES = {"en": "en-GB", "it": "it-CH", "de": "de-AT"}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A federation of few messages about films, whose name and nouns are the operator's own."""
    noun = {"one": "film", "many": "films"}
    with serving(tmp_path_factory.mktemp("films"), method="frugal", noun=noun, name="Kino", learnt=False) as started:
        yield started


@pytest.fixture
def visit(browser):
    """People who visit with a browser of a language."""
    visitors = []

    def visit(address, language, **options):
        visitors.append(Visitor(browser, address, locale=LOCALES[language], **options))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        assert visitor.complaints == []
        visitor.close()


def everything(page):
    """All that a page says, what is only read out included."""
    page.evaluate(OPEN)
    labels = page.eval_on_selector_all("[aria-label]", "all => all.map((one) => one.getAttribute('aria-label'))")
    return "\n".join([page.title(), page.locator("body").inner_text(), *labels])


def sentences(words, language):
    """What can be recognised: sentences of four words and more, without places for values."""
    texts = [
        text for entry in words[language].values() for text in ([entry] if isinstance(entry, str) else entry.values())
    ]
    return {text for text in texts if "{" not in text and len(text.split()) >= 4}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_speaks_the_browsers_language_and_no_other(films, visit, words, language):
    visitor = visit(films.public, language, viewport={"width": 320, "height": 800}).open().pick(3).share(60)
    page = visitor.page
    assert page.evaluate("() => document.documentElement.lang") == language
    visitor.take_part().wait_until(lambda kept: len(kept["rounds"]) == 3 and not kept["pending"])
    own = words[language]
    expect(page.locator("#promise p").first).to_contain_text(
        own["lifetime.sent"].format(messages=own["messages"]["other"].format(count=3), made=3)
    )
    told = everything(page)
    assert sum(sentence in told for sentence in sentences(words, language)) > 20
    for other in set(LANGUAGES) - {language}:
        assert [sentence for sentence in sentences(words, other) - sentences(words, language) if sentence in told] == []
    assert not re.search(r"\{\w*\}", told), "every place for a value is filled"
    assert not page.evaluate(TOO_WIDE)
    page.goto(f"{films.public}/privacy.html")
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    assert page.evaluate("() => document.documentElement.lang") == language
    expect(page.locator("h1")).to_have_text(own["privacy.title"])
    assert own["privacy.counted"] in everything(page)


def test_a_language_that_was_chosen_is_spoken_at_once_and_remembered_until_one_leaves(films, visit, words):
    visitor = visit(films.public, "en").open().pick(2)
    page = visitor.page
    page.locator("#search-text").fill("a")
    page.locator("#language").select_option("de")
    expect(page.locator("#pick-title")).to_have_text(words["de"]["pick.title"])
    expect(page.locator("#yours-title")).to_have_text("Deine Liste: 2 Filme")
    expect(page.locator("#recommended button").nth(2)).to_have_text("Schon gesehen")
    expect(page.locator("#search-text")).to_have_value("a"), "nothing was reloaded"
    assert [sentence for sentence in sentences(words, "en") if sentence in everything(page)] == []
    visitor.open()
    assert page.evaluate("() => document.documentElement.lang") == "de"
    expect(page.locator("#yours-title")).to_have_text("Deine Liste: 2 Filme")
    page.locator("#leave").click()
    page.get_by_role("button", name=words["de"]["sure.yes"], exact=True).click()
    expect(page.locator("#trouble")).to_have_text(words["de"]["gone.known"])
    assert page.evaluate("() => localStorage.length") == 0
    visitor.open()
    assert page.evaluate("() => document.documentElement.lang") == "en"


def test_a_federations_own_words_stay_its_own(browser, tmp_path):
    noun = {"one": "pizzeria", "many": "pizzerie"}
    with serving(tmp_path, noun=noun, seen="Mangiato", run_by="il Comune") as server:
        visitor = Visitor(browser, server.public, locale="de-DE").open().pick(2)
        expect(visitor.page.locator("#yours-title")).to_have_text("Deine Liste: 2 pizzerie")
        expect(visitor.page.locator("#recommended button").nth(2)).to_have_text("Mangiato")
        expect(visitor.page.locator("#about")).to_have_text("Betrieben von: il Comune.")
        visitor.close()


def test_a_browser_of_another_language_gets_english(films, browser):
    visitor = Visitor(browser, films.public, locale="fr-FR").open()
    assert visitor.page.evaluate("() => document.documentElement.lang") == "en"
    visitor.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_operators_page_speaks_it_too(films, visit, words, language):
    page = visit(films.admin, language, viewport={"width": 320, "height": 800}).page
    page.goto(f"{films.admin}/admin")
    page.locator("#token").fill(films.token)
    page.locator("#sign-in button", has_text=re.compile(".")).click()  # once its words and its script are there
    expect(page.locator("#pause")).to_have_text(words[language]["admin.pause"])
    told = everything(page)
    assert words[language]["admin.judged-none"] in told
    for other in set(LANGUAGES) - {language}:
        assert [sentence for sentence in sentences(words, other) - sentences(words, language) if sentence in told] == []
    assert not page.evaluate(TOO_WIDE)
