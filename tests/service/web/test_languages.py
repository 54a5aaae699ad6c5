"""The page speaks the browser's language, or the one that was chosen: all of it, at once, and next time too."""

import re

import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import PATIENCE, Visitor, serving
from tests.service.web.conftest import LANGUAGES

pytestmark = pytest.mark.slow

OPEN = "() => document.querySelectorAll('details').forEach((box) => (box.open = true))"
LOCALES = {"en": "en-GB", "it": "it-CH", "de": "de-AT"}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A federation of few messages about films, whose name and nouns are the operator's own."""
    noun = {"one": "film", "many": "films"}
    with serving(tmp_path_factory.mktemp("films"), method="frugal", noun=noun, name="Kino", learnt=False) as started:
        yield started


@pytest.fixture
def visit(browser):
    """Users who visit with a browser of a language."""
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
    visitor = visit(films.public, language).open().pick(3)
    page = visitor.page
    told = [everything(visitor.go(screen).page) for screen in ("wall", "for-you", "leaves", "mine")]
    visitor.take_part().wait_until(lambda kept: len(kept["rounds"]) == 3 and not kept["pending"])
    told.append(everything(page))
    page.goto(f"{films.public}/how.html")
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE)
    told.append(everything(page))
    said = "\n".join(told)
    assert sum(sentence in said for sentence in sentences(words, language)) > 20
    for other in set(LANGUAGES) - {language}:
        assert [sentence for sentence in sentences(words, other) - sentences(words, language) if sentence in said] == []
    assert not re.search(r"\{\w*\}", said), "every place for a value is filled"


def test_chosen_language_is_kept_until_one_leaves(films, visit, words):
    visitor = visit(films.public, "en").open().pick(2)
    page = visitor.page
    page.locator("#search-text").fill("a")
    page.locator("#language").select_option("de")
    expect(page.locator("#wall-title")).to_contain_text("Filme")
    expect(page.locator("#search-text")).to_have_value("a"), "nothing was reloaded"
    assert [sentence for sentence in sentences(words, "en") if sentence in everything(page)] == []
    visitor.open()
    assert page.evaluate("() => document.documentElement.lang") == "de"
    visitor.leave()
    expect(page.locator("#trouble")).to_have_text(words["de"]["gone.known"])
    assert page.evaluate("() => localStorage.length") == 0
    visitor.open()
    assert page.evaluate("() => document.documentElement.lang") == "en"


def test_a_federations_own_words_stay_its_own(browser, tmp_path):
    noun = {"one": "pizzeria", "many": "pizzerie"}
    with serving(tmp_path, noun=noun, seen="Mangiato", run_by="il Comune", description="Pizze!") as server:
        visitor = Visitor(browser, server.public, locale="fr-FR").open().pick(2)
        assert visitor.page.evaluate("() => document.documentElement.lang") == "en", "there is no French"
        expect(visitor.page.locator("#about")).to_contain_text("il Comune")
        expect(visitor.page.locator("#wall-title")).to_contain_text("pizzerie")
        visitor.recommended()
        expect(visitor.page.locator("[data-answer=seen]").first).to_contain_text("Mangiato")
        visitor.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_operators_page_speaks_it_too(films, visit, words, language):
    page = visit(films.admin, language, viewport={"width": 320, "height": 800}).page
    page.goto(f"{films.admin}/admin")
    page.locator("#token").fill(films.token)
    page.locator("#sign-in button", has_text=re.compile(".")).click()  # once its words and its script are there
    expect(page.locator("#pause")).to_have_text(words[language]["admin.pause"])
    told = everything(page)
    for other in set(LANGUAGES) - {language}:
        assert [sentence for sentence in sentences(words, other) - sentences(words, language) if sentence in told] == []
    assert not page.evaluate("() => document.documentElement.scrollWidth > window.innerWidth")
