"""The page's words are in one file for each language, complete in all of them, and nowhere else."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.service.web.conftest import LANGUAGES, PAGE

SCRIPTS = sorted(PAGE.rglob("*.js"))
PAGES = sorted(PAGE.glob("*.html"))
PLACE = re.compile(r"\{(\w+)\}")
PROSE = re.compile(r"[A-Za-z]{2,}[,:;]? +[a-z]{2,}|^[A-Z][a-z]+ *$")
DRAWN = re.compile(r"""[<>=]|^[MmLlHhVvQqCcAaZzTt][\d -]""")
"""Pieces of a drawing."""
NOT_WORDS = {
    *("Authorization", "Bearer ", "QuotaExceededError"),
    *("federank page ", "draft of ", "federank sums 1", "federank sums 1 ", "federation config"),
    *("no answer", "other tab", "on its way", "held back", "left out", "not used", "chart-bar bad", "yes wide"),
    *("your rating", "my rating", "star rating"),
    "button, a, label, summary",
    "(pointer: coarse) and (max-width: 900px)",
    *("English", "Italiano", "Deutsch"),
}
"""What is not for people to read: headers and errors, names of caches and digests, of states, of columns and of
elements; and what languages call themselves."""


def forms(entry):
    """The forms of a sentence: one, or one for each kind of number."""
    return {"": entry} if isinstance(entry, str) else entry


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_missing_and_none_is_too_many(words, language):
    assert words[language].keys() == words["en"].keys()
    for key, entry in words[language].items():
        assert forms(entry).keys() == forms(words["en"][key]).keys(), key
        assert all(text.strip() for text in forms(entry).values()), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_places_for_values(words, language):
    """A form for one may leave its number out, and a language the noun, where its grammar wants that."""
    for key, entry in words[language].items():
        needed = set(PLACE.findall(str(forms(words["en"][key]))))
        for form, text in forms(entry).items():
            assert set(PLACE.findall(text)) - needed == set(), key
            assert needed - set(PLACE.findall(text)) - {"items"} <= ({"count"} if form == "one" else set()), key


@pytest.mark.parametrize("language", ["de", "it"])
def test_a_translation_is_one(words, language):
    """Sentences of three words and more are nowhere the same as in English."""
    same = [
        key
        for key, entry in words[language].items()
        for text, english in zip(forms(entry).values(), forms(words["en"][key]).values(), strict=True)
        if text == english and len(re.findall(r"[a-z]{2,}", PLACE.sub("", text))) >= 3
    ]
    assert same == []


JARGON = {
    "en": r"federat|\bround|\bmodel|\bversion|epsilon|\bhelper",
    "de": r"föderation|\brunde|\bmodell|\bversion|epsilon|hilfsserver",
    "it": r"federazion|\bturn[oi]\b|\bmodell|\bversion|epsilon|ausiliar",
}
EXPLAINED = ("how.", "full.", "admin.", "health.", "state.", "chart.", "unit.", "limit.", "reason.", "federation.")
"""How this works, and the operator's page."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinary_sentences_have_no_jargon(words, language):
    """What only How this works explains is named nowhere else."""
    for key, entry in words[language].items():
        if not key.startswith(EXPLAINED):
            assert not re.search(JARGON[language], PLACE.sub("", " ".join(forms(entry).values())), re.IGNORECASE), key


@pytest.fixture(scope="module")
def literals(node, axe):
    """What scripts write as text, by the parser that comes with the page's tools."""

    def literals(*scripts):
        acorn = axe.parents[1] / "acorn" / "dist" / "acorn.mjs"
        program = Path(__file__).with_name("literals.mjs")
        done = subprocess.run([node, program, acorn.as_uri(), *scripts], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return literals


def test_no_words_stand_in_any_other_script(literals, words):
    known = NOT_WORDS | {key.removeprefix("category.") for key in words["en"] if key.startswith("category.")}
    for script, texts in zip(SCRIPTS, literals(*SCRIPTS), strict=True):
        prose = [text for text in texts if text not in known and PROSE.search(text) and not DRAWN.search(text)]
        assert prose == [], script.relative_to(PAGE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_its_words_and_holds_none(page):
    """But for the brand, and for what is said where there is no JavaScript, in every language."""
    text = re.sub(r"<noscript.*?</noscript\s*>", "", page.read_text(), flags=re.DOTALL)
    assert set(re.sub(r"<[^>]*>", " ", text).split()) == {"FedeRank"}
    assert not re.search(r'(aria-label|title|placeholder|alt)="[^"]+"', text)
    if page.name == "index.html":
        assert re.findall(r'<p lang="(\w+)">', page.read_text()) == ["en", "it", "de"]


SPARED = ("page.description", "noun.", "category.", "answered.", "health.", "level.", "outcome.", "reason.", "state.")
"""What the server writes into the page, and what stands for a word of the server's or the client's."""


def test_every_sentence_is_used_and_every_one_used_is_there(words):
    """Keys are written out wherever they are used, but for those that are spared."""
    used = "".join(file.read_text() for file in [*SCRIPTS, *PAGES])
    shown = "".join(file.read_text() for file in PAGES)
    named = set(re.findall(r'"([a-z][a-z0-9./-]*)"', used))
    spared = {key for key in words["en"] if key.startswith(SPARED)}
    assert set(words["en"]) - named - spared == set()
    assert set(re.findall(r'data-words(?:-\w+)?="([^"]*)"', shown)) - set(words["en"]) == set()


def test_what_a_browser_installs_is_described_in_every_language(words):
    manifest = json.loads((PAGE / "manifest.webmanifest").read_text())
    told = {manifest["lang"]: manifest["description"]} | {
        language: entry["value"] for language, entry in manifest["description_localized"].items()
    }
    assert told == {language: words[language]["page.description"] for language in LANGUAGES}
