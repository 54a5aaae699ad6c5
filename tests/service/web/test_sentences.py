"""What the page says is true in every state: counts are the ledger's, and only guarantees that hold are stated."""

import pytest
from tests.service.web.conftest import LANGUAGES, PAGE
from tests.service.web.conversing import conversing

NOUN = {"one": "film", "many": "films"}
SAFE = {
    "helper": "https://helper.example",
    "fingerprint": "AB CD",
    "together": None,
    "leastCohort": 8,
    "epsilon": None,
    "delta": 1e-6,
}


@pytest.fixture(scope="module")
def said(node):
    """What the page's functions say: a list of [name, arguments ...] gives a list of sentences."""
    with conversing(node, "sentences.mjs", PAGE / "show" / "sentences.js") as ask:
        yield lambda *questions, language="en": ask({"language": language, "questions": questions})


def item(number, **more):
    return {"id": str(number), "title": f"Film {number}", "mayLeave": False, "left": False, "waits": False} | more


def played(outcome, **more):
    return {"ticket": "t", "at": 1, "liked": [], "outcome": outcome} | more


def view(**more):
    """How things stand, as far as sentences are made of it."""
    return {
        "taking": False,
        "pending": 0,
        "messages": None,
        "plain": True,
        "guarantee": None,
        "blocked": None,
        "hold": None,
        "next": 0,
        "period": 0,
        "decoys": 0,
        "sealed": False,
        "helperAway": False,
        "rounds": [],
        "ledger": [],
        "progress": {"says": ["doing.waiting"], "state": "waiting"},
        "choice": {"sharing": "fixed-subset", "pi": 0.3, "basis": "shared"},
        "history": [item(number) for number in range(5)],
        "federation": {
            "items": 200,
            "noun": NOUN,
            "name": "Club",
            "description": "",
            "runBy": "",
            "language": "en",
            "translations": {"de": {"name": "Verein", "description": "Ein Verein."}},
        },
    } | more


def left(*numbers, removed=0):
    """A list of five of which some have left, and what else has left before it was taken off."""
    history = [item(number, left=number in numbers, mayLeave=number in numbers) for number in range(5)]
    entries = [*map(str, numbers), *(f"gone {number}" for number in range(removed))]
    return {"history": history, "ledger": [{"id": entry, "real": True} for entry in entries]}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("removed", [0, 2])
@pytest.mark.parametrize("numbers", [(), (1,), (0, 3)])
def test_what_has_left_is_counted_as_the_ledger_counts_it(said, words, language, numbers, removed):
    state = view(**left(*numbers, removed=removed), rounds=[played("aggregated")], messages={"made": 1, "most": 5})
    sentence, counts, lock = said(["whatHasLeft", state], ["leftOf", state], ["lock", state, 0], language=language)
    assert counts == {"left": len(numbers), "removed": removed}
    both = len(numbers) + removed
    films = words[language]["noun.film/films"]["other"]
    expected = words[language]["report.of-most"]
    assert sentence == expected.format(count=both, counted=f"{5 + removed} {films}", made=1, most=5)
    assert lock["kind"] == "open"
    if both:
        assert str(both) in lock["text"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_uncharged_messages_have_left(said, words, language):
    """A discarded one, that is, and those of earlier seasons; what was held back has not gone out."""
    quota = {"made": 0, "most": 5}
    rounds = [played("discarded"), played("held back")]
    states = [view(**left(1), rounds=rounds, messages=messages) for messages in (quota, None)]
    one = words[language]["messages"]["one"].format(count=1)
    films = words[language]["noun.film/films"]["other"]
    expected = words[language]["report.in"].format(count=1, counted=f"5 {films}", messages=one)
    assert said(*(["whatHasLeft", state] for state in states), language=language) == [expected] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_has_left_at_first(said, words, language):
    for state in (view(), view(taking=True), view(history=[])):
        [lock, sentence] = said(["lock", state, 0], ["whatHasLeft", state], language=language)
        assert lock["kind"] == "closed"
        assert sentence == words[language]["report.soon" if state["taking"] else "report.nothing"]


def test_what_waits_is_reported_at_the_top(said):
    waiting = view(taking=True, hold=5000)
    assert [found["kind"] for found in said(["lock", waiting, 1000], ["lock", waiting, 6000])] == ["hold", "closed"]


def test_every_item_is_on_one_side(said):
    own = [item(0, mayLeave=True), item(1, left=True), item(2), item(3, mayLeave=True, left=True)]
    [sides] = said(["sides", view(history=own)])
    assert [[one["id"] for one in sides[side]] for side in ("out", "stays")] == [["0", "1", "3"], ["2"]]


OUTCOMES = {
    "on its way": ("outcome.on-its-way", None),
    "received": ("outcome.received", None),
    "held back": ("outcome.held-back", False),
    "left out": ("outcome.left-out", False),
    "not used": ("outcome.not-used", False),
    "unknown": ("outcome.unknown", None),
    "discarded": ("outcome.discarded", False),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_outcome_has_its_sentence(said, words, language):
    own = words[language]
    asked = [["outcome", played(word, number=1), view()] for word in OUTCOMES]
    found = said(*asked, language=language)
    assert found == [{"text": own[key], "good": good} for key, good in OUTCOMES.values()]
    counted = view(messages={"made": 0, "most": 5})
    free, with_others, alone = said(
        ["outcome", played("discarded"), counted],
        ["outcome", played("aggregated", uploads=42), counted],
        ["outcome", played("aggregated", uploads=1), counted],
        language=language,
    )
    assert free["text"] == own["outcome.discarded-free"]
    assert "41" in with_others["text"]
    assert alone["text"] == own["outcome.counted-alone"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_can_read_it_is_true_for_how_it_is(said, words, language):
    own = words[language]
    here = SAFE | {"together": "machine"}
    states = {
        "reads": view(),
        "apart": view(plain=False, guarantee=SAFE),
        "together": view(plain=False, guarantee=here),
        "none": view(plain=False),
    }
    kinds = said(*(["readers", state] for state in states.values()), language=language)
    assert kinds == list(states)
    asked = (["whoReads", state, "leader.example", language] for state in states.values())
    reads, apart, together, none = said(*asked, language=language)
    club = "Verein" if language == "de" else "Club"
    assert reads["words"] == own["who.plain"].format(name=club)
    assert apart["words"].startswith(own["who.apart"].format(leader=club, helper="helper.example"))
    assert apart["warning"] == ""
    assert together["warning"] == own["who.one-machine"]
    assert none["words"] == own["who.unchecked"]
    noisy = view(plain=False, guarantee=SAFE | {"epsilon": 3.8})
    [quiet, noise] = said(["whoReads", states["apart"], "x", "en"], ["whoReads", noisy, "x", "en"], language=language)
    assert quiet["words"].endswith(own["who.total"].format(count=8))
    assert noise["words"].endswith(own["who.noise"].format(count=8))


def test_epsilon_is_rounded_up(said):
    [without, exact] = said(
        ["inFull", view(plain=False, guarantee=SAFE), "x"],
        ["inFull", view(plain=False, guarantee=SAFE | {"epsilon": 3.81}, messages={"made": 0, "most": 5}), "x"],
    )
    assert not any("3." in title for title, _ in without)
    assert any("3.9" in title for title, _ in exact)
    assert said(["inFull", view(), "x"]) == [[]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_done_now_is_reported_in_every_state(said, words, language):
    own = words[language]
    far = 8.64e15
    states = [
        (view(), "doing.paused"),
        (view(pending=1), "doing.late"),
        (view(taking=True, blocked=["blocked.nothing"]), "blocked.nothing"),
        (view(taking=True, helperAway=True), "fault.helper-away"),
        (view(taking=True), "doing.waiting"),
    ]
    found = said(*(["nowDoing", state] for state, _ in states), language=language)
    assert found == [own[key] for _, key in states]
    assert said(["nowDoing", view(taking=True, hold=far)], language=language) == [""]


def test_a_period_is_reported_in_its_largest_unit(said):
    assert said(["duration", 86_400], ["duration", 60], ["duration", 5400]) == ["1 day", "1 minute", "2 hours"]
    [often] = said(["howOften", view(messages={"made": 0, "most": 5}, period=60)])
    assert "5" in often
    assert "1 minute" in often


@pytest.mark.parametrize(
    ("language", "name", "marked"),
    [("it", "Il padrino", None), ("de", "The Godfather", "en"), ("en", "The Godfather", None)],
)
def test_titles_in_the_readers_language(said, language, name, marked):
    film = {"title": "The Godfather", "local": {"it": "Il padrino"}, "lang": "en"}
    assert said(["titleOf", film], language=language) == [{"name": name, "lang": marked}]


def test_unknown_fault_is_reported_by_its_code(said, words):
    [told] = said(["nowDoing", view(taking=True, blocked=["wire.shape", {"name": "items"}])])
    assert told == words["en"]["fault.technical"].format(code="wire.shape items")
