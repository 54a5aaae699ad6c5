"""What the page says is true in every state that it can be said in."""

import itertools

import pytest
from tests.service.web.conftest import LANGUAGES, PAGE
from tests.service.web.conversing import conversing

NOUN = {"one": "place", "many": "places"}
OWN = {"mayLeave": True, "left": False, "waits": False}
SHARING = {"before": 0, "ever": 0, "never": 0}
POLICY = {"sharing": "fixed-subset", "pi": 0.3, "basis": "shared"}


@pytest.fixture(scope="module")
def said(node):
    """What the page's functions say: a list of [name, arguments ...] gives a list of sentences."""
    with conversing(node, "sentences.mjs", PAGE / "show" / "sentences.js") as ask:
        yield lambda *questions, language="en": ask({"language": language, "questions": questions})


def view(*, taking=False, pi=0.3, own=3, fresh=False, pending=0, messages=None, hurdle=None, **choice):
    """How things stand, as far as sentences are made of it."""
    return {
        "taking": taking,
        "fresh": fresh,
        "pending": pending,
        "messages": messages,
        "plain": True,
        "promised": None,
        "hurdle": hurdle,
        "sealed": bool(messages and messages["made"] >= messages["most"]),
        "rounds": [],
        "progress": {"says": "Waiting for the next round.", "state": "waiting"},
        "choice": POLICY | {"pi": pi} | choice,
        "sharing": SHARING,
        "history": [{"id": str(item)} | OWN for item in range(own)],
        "federation": {"items": 200, "noun": NOUN},
    }


STATES = [
    dict(zip(("taking", "pi", "own", "fresh", "messages"), state, strict=True))
    for state in itertools.product(
        (False, True), (0, 0.3, 1), (0, 1, 5), (False, True), (None, {"made": 1, "most": 3}, {"made": 3, "most": 3})
    )
]


def may_send(taking, pi, messages, **_):
    return taking and pi > 0 and (messages is None or messages["made"] < messages["most"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_said_to_stay_that_may_leave_and_nothing_to_leave_that_stays(said, words, language):
    own = words[language]
    told = said(
        *(["leadOfPicks", view(**state)] for state in STATES),
        *(["leadOfRecommendations", view(**state)] for state in STATES),
        language=language,
    )
    may_leave = (own["pick.waits"], own["for-you.may-leave"])
    for sentence, state in zip(told, STATES * 2, strict=True):
        assert sentence.endswith(may_leave) == may_send(**state)
    for sentence, state in zip(told[: len(STATES)], STATES, strict=True):
        assert (own["not-sent"].split("{")[0] in sentence) != may_send(**state)


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_nothing_leaves_any_more_no_sentence_says_that_something_may(said, words, language):
    """Because all messages are made, or because of what the federation at this address would do with them."""
    states = [
        view(taking=True, messages={"made": 3, "most": 3}),
        view(taking=True, hurdle=["hurdle.would-read"]) | {"sealed": True},
        view(taking=True) | {"progress": {"says": ["doing.invited-enough"], "state": "resting"}},
    ]
    own = words[language]
    for state, why in zip(states, ("why.spent", "why.hurdle", "why.hurdle"), strict=True):
        picks, slider = said(["leadOfPicks", state], ["meaningOf", state, 0.3], language=language)
        assert picks.endswith(own["not-sent"].format(why=own[why]))
        if state["sealed"]:
            assert slider == own["share.sealed"]


def test_what_has_left_counts_what_was_taken_off_the_list_and_tells_what_was_held_back(said):
    rounds = [{"outcome": "received"}, {"outcome": "held back"}]
    history = [{"id": "1"} | OWN | {"left": True}, {"id": "2"} | OWN]
    one = view() | {"rounds": rounds[:1], "history": history, "sharing": SHARING | {"ever": 1}}
    more = one | {"rounds": rounds, "sharing": SHARING | {"ever": 3}}
    summed = one | {"plain": False}
    assert said(["whatHasLeft", view()], ["whatHasLeft", one], ["whatHasLeft", more], ["whatHasLeft", summed]) == [
        "Nothing has left this device, as far as this browser's record goes.",
        "1 of your 2 places has left, in 1 message.",
        "1 of your 2 places has left, in 2 messages. 2 places that are no longer on your list have left too. "
        "1 message was held back, and may not have been sent.",
        "1 of your 2 places is part of what has left: 1 message.",
    ]


def test_a_reason_why_nothing_is_sent_is_the_reason(said):
    spent = {"made": 3, "most": 3}
    away, nothing, silent = said(
        ["leadOfPicks", view()],
        ["leadOfPicks", view(taking=True, pi=0)],
        ["leadOfPicks", view(taking=True, messages=spent)],
    )
    assert away.endswith("you are not taking part.")
    assert nothing.endswith("you share nothing.")
    assert silent.endswith("this device makes no more messages.")


def test_a_model_that_has_learnt_from_nobody_claims_nothing(said):
    fresh, known, chance, worked = said(
        *(["leadOfNames", view(fresh=fresh)] for fresh in (True, False)),
        *(["leadOfRecommendations", view(fresh=fresh)] for fresh in (True, False)),
    )
    assert (fresh, known) == ("Some of 200 places:", "Some that many like, of 200 places:")
    assert "chance" in chance
    assert "Worked out" in worked


def test_who_has_paused_is_not_told_that_nothing_is_sent_while_a_message_is_on_its_way(said):
    quiet, sending, chip, late = said(
        ["nowDoing", view()], ["nowDoing", view(pending=1)], ["standing", view()], ["standing", view(pending=1)]
    )
    assert quiet == "You are not taking part: nothing is sent."
    assert chip == "Not taking part: nothing is sent"
    assert "may still arrive" in sending
    assert "may still arrive" in late


@pytest.mark.parametrize(
    ("own", "pi", "sentence"),
    [
        (1, 0.05, "Your one place may leave this device: however low the slider, one always may."),
        (1, 1, "Your one place may leave this device."),
        (5, 0.3, "As your list stands, 2 of your 5 places may ever leave this device."),
        (5, 1, "All your 5 places may leave this device."),
        (0, 0.3, "About 3 of every 10 places you pick may ever leave this device."),
        (4, 0, "Nothing leaves this device. You still get recommendations."),
    ],
)
def test_the_slider_promises_what_it_keeps(said, own, pi, sentence):
    assert said(["meaningOf", view(own=own, pi=pi), pi]) == [sentence]


def test_what_came_of_an_answer_follows_from_where_the_item_is(said):
    places = ({"waits": True}, {"left": True}, {}, {"mayLeave": False})
    states = [view() | {"history": [{"id": "7"} | OWN | where]} for where in places]
    told = said(*(["answered", state, "7", "Il Bar"] for state in [*states, view(own=0)]))
    assert told == [
        "Il Bar is on your list, and waits half a minute before it may leave.",
        "Il Bar is on your list, and has left this device.",
        "Il Bar is on your list, and may leave if you take part.",
        "Il Bar is on your list.",
        "Il Bar is not shown again.",
    ]


PAIRS = {"triples": 12, "mostTriples": 20}


@pytest.mark.parametrize(
    ("choice", "pairs", "most"),
    [
        ({}, 12, 24),
        ({"triples": None}, 12, 24),
        ({"triples": 1}, 1, 2),
        ({"triples": 20}, 20, 40),
        ({"triples": 99}, 20, 40),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_is_said_to_be_made_from_as_many_pairs_as_it_is(said, words, language, choice, pairs, most):
    state = view(**choice)
    state["federation"] |= {"pairs": PAIRS, "items": 30, "noun": {"one": "pizzeria", "many": "pizzerie"}}
    [told] = said(["pairsInWords", state], language=language)
    own = words[language]
    form = own["pairs.now"]["one" if pairs == 1 else "other"]
    sentence = form.format(count=pairs, held=f"{min(most, 30)} pizzerie")  # never more than there are
    cut = own["pairs.cut"].format(wish=99, most=20) + " "
    assert told["howMany"] == (cut if choice == {"triples": 99} else "") + sentence
    assert told["more"] == own["pairs.more"].format(items="pizzerie")


def test_pairs_are_said_to_be_drawn_from_what_they_are_drawn_from(said):
    shared, whole = said(
        *(
            ["pairsInWords", view(basis=basis) | {"federation": view()["federation"] | {"pairs": PAIRS}}]
            for basis in ("shared", "history")
        )
    )
    assert "one of what may leave" in shared["what"]
    assert "one of your list" in whole["what"]


PROMISED = {"helper": "https://helper.example", "fingerprint": "0123", "leastCohort": 50, "delta": 1e-5}
PROMISES = [
    (plain, promised, {"made": made, "received": received, "released": released, "most": 10})
    for plain, promised in (
        (True, None),
        (False, None),
        *(
            (False, PROMISED | {"together": together, "epsilon": epsilon})
            for together, epsilon in itertools.product((None, "machine", "host"), (None, 3.7501))
        ),
    )
    for made, received, released in ((0, 0, 0), (3, 3, 0), (3, 2, 0), (3, 3, 1))
]


def test_a_promise_says_no_more_than_what_is_kept(said):
    states = [view(messages=messages) | {"plain": plain, "promised": told} for plain, told, messages in PROMISES]
    told = said(*(["promise", state] for state in states))
    full = said(*(["promiseInFull", state, "https://leader.example"] for state in states))
    for sentence, rest, (plain, promised, messages) in zip(told, full, PROMISES, strict=True):
        assert ("can read every message" in sentence) == plain
        assert f"At most 10 {'messages' if plain else 'counted messages'}, ever;" in sentence
        assert ("discarded" in sentence) == bool(messages["released"]), "what left beyond the count is not kept quiet"
        counted = {(0, 0): "none sent.", (3, 3): "3 sent.", (3, 2): "3 made, 2 received."}
        assert counted[messages["made"], messages["received"]] in sentence
        has_noise = promised is not None and promised["epsilon"] is not None
        assert ("epsilon 3.8" in sentence) == has_noise, "rounded up, and claimed only where there is noise"
        apart = promised is not None and promised["together"] is None
        assert ("Neither of the two servers can read one" in sentence) == apart
        assert ("could put the two halves together" in sentence) == (promised is not None and not apart)
        assert ("nothing is sent" in sentence) == (not plain and promised is None)
        assert bool(rest) == (promised is not None)
        assert any("Both servers together can read" in words for _, words in rest) == bool(rest)
        assert any("one in 100,000" in words for _, words in rest) == has_noise, "the federation config's own delta"
