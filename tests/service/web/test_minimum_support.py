"""Minimum support in the browser: the page makes Python's messages, and recommends what Python recommends."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from tests.secagg.worlds import HELPER, offer, secagg_config
from tests.service.simulated_clients.test_minimum_support import (
    COUNTS,
    DATA,
    FACTORS,
    ITEMS,
    POLICY,
    SUPPORT,
    Federation,
)
from tests.service.web.conversing import conversing
from tests.service.web.questions import CLOSE

from federank.federation.client import History, RoundVector, User
from federank.methods.frugal.protocol import count_unit, dense, flat
from federank.methods.frugal.wire import decode_any_frugal_update
from federank.privacy.ledger import Ledger
from federank.privacy.policy import SharedProfile
from federank.secagg.keys import public_key_of
from federank.secagg.round_config import sign_offer
from federank.service.client import rules

PAGE = Path(rules.__file__).parents[1] / "web"


@pytest.fixture(scope="module")
def ask(node):
    with conversing(node, "secagg.mjs", PAGE) as ask:
        yield lambda *questions: ask(questions)


def test_a_message_is_pythons_in_every_stage_of_a_federation(ask):
    played, user = Federation(), 3
    profile = DATA.profiles.of(user)
    real = np.ones(len(profile), dtype=np.bool_)
    kept = RoundVector(np.zeros(FACTORS, dtype=np.float32), None, frozenset())
    recipe = played.settings.public_settings()
    for spent, counts in ((0, None), (0, None), (1, None), (1, True)):
        now = played.published
        content = played.served.encode(played.settings, now, now.rows_since(None), 0)
        model, ledger = played.received(), Ledger()
        taken = SharedProfile(profile, real, real, True)
        if spent:
            ledger.record_message(0, taken, 1, 4)
        expected = None
        if counts is None:
            person = User(1, user, played.info.settings, ITEMS, POLICY, taken, kept)
            made = played.info.rules.play(person, model, ledger, 1)
            expected = decode_any_frugal_update(made.body, FACTORS, None, ITEMS)
        [found] = ask(
            {
                "kind": "frugal",
                "recipe": recipe,
                "content": content.hex(),
                "items": ITEMS,
                "profile": profile.tolist(),
                "spent": spent,
                "counts": counts,
            }
        )
        np.testing.assert_array_equal(np.float32(found["weights"]), model.tables["weights"])
        if expected is None:
            np.testing.assert_array_equal(np.flatnonzero(found["values"]), profile)
            continue
        body = decode_any_frugal_update(bytes.fromhex(found["body"]), FACTORS, None, ITEMS)
        np.testing.assert_allclose(body.strengths, expected.strengths, **CLOSE)
        np.testing.assert_allclose(body.vector, expected.vector, **CLOSE)
        assert body.scale == pytest.approx(expected.scale, rel=1e-6)
        assert found["liked"] == found["ledger"] == made.recorded.tolist()
        if spent:
            np.testing.assert_allclose(found["values"], flat(dense(expected)), rtol=1e-4, atol=1e-5)
            rules = played.info.rules
            home = rules.home_vector(played.info.settings, 1, user, History(made.recorded), model)
            scores = rules.scores(played.info.settings, model, home)
            shown = np.array([np.nan if score is None else score for score in found["scores"]])
            np.testing.assert_array_equal(np.isfinite(shown), COUNTS >= SUPPORT)
            np.testing.assert_allclose(shown[COUNTS >= SUPPORT], scores[COUNTS >= SUPPORT], rtol=1e-4, atol=1e-5)
        assert found["learnt"] == bool(played.published.content.state["received"][0])
        played.play()


def test_a_hidden_item_is_shown_by_no_client(ask):
    """An item without a vector, though with users: the server hides it, because its predicted audience has jumped."""
    played = Federation()
    for _ in range(3):
        played.play()
    content, profile = played.published.content, DATA.profiles.of(3)
    hidden = int(np.argmax(COUNTS))
    vectors = content.tables["vectors"].copy()
    vectors[hidden] = 0
    now = played.published.followed_by(content._replace(tables=content.tables | {"vectors": vectors}))
    played.published = now
    [found] = ask(
        {
            "kind": "frugal",
            "recipe": played.settings.public_settings(),
            "content": played.served.encode(played.settings, now, now.rows_since(None), 0).hex(),
            "items": ITEMS,
            "profile": profile.tolist(),
            "spent": 1,
            "counts": None,
        }
    )
    settings, model = played.info.settings, played.received()
    rules = played.info.rules
    home = rules.home_vector(settings, 1, 3, History(profile), model)
    scores = rules.scores(settings, model, home)
    expected = (COUNTS >= SUPPORT) & (np.arange(ITEMS) != hidden)
    np.testing.assert_array_equal(np.isfinite(scores), expected)
    assert [score is not None for score in found["scores"]] == expected.tolist()


def test_lengths_of_uploads_are_pythons(ask):
    configs = [
        secagg_config(recipe="spectral", messages=3, noises=(0,) * 3, min_support=5),
        secagg_config(min_support=5),
        secagg_config(recipe="spectral", messages=3, noises=(0,) * 3),
    ]
    cases = [(config, stage, rows) for config in configs for stage in (0, 1) for rows in (None, 4)]
    lengths = list(range(200))
    found = ask(
        *(
            {"kind": "lengths", "config": config.to_bytes().hex(), "stage": stage, "rows": rows, "lengths": lengths}
            for config, stage, rows in cases
        )
    )
    for (config, stage, rows), answer in zip(cases, found, strict=True):
        assert answer == {
            "columns": config.columns_of(stage),
            "length": config.length_of(stage, rows),
            "allowed": [length for length in lengths if config.allows_length(stage, length)],
            "unit": count_unit(config.items),
        }


def test_an_offer_about_another_number_of_rows_is_refused(ask):
    agreed = secagg_config(recipe="spectral", messages=3, noises=(0,) * 3, min_support=5)
    rows = agreed.items - 2
    made = offer(
        config=agreed.digest().hex(), noise=0, stage=1, length=agreed.length_of(1, rows), columns=agreed.columns
    )[0]
    question = {
        "kind": "offer",
        "content": sign_offer(HELPER, made).hex(),
        "helper": public_key_of(HELPER).hex(),
        "config": agreed.to_bytes().hex(),
        "model": made.model,
        "now": 0,
    }
    good, unknown, wrong = ask(*(question | {"rows": told} for told in (rows, None, rows - 1)))
    assert good["offer"] == unknown["offer"]
    assert "refused" in wrong


def test_a_message_says_which_items_it_has_rows_of(ask):
    """The page shows its owner the largest rows with their titles."""
    agreed = secagg_config(recipe="spectral", messages=3, noises=(0,) * 3, min_support=5)
    weights = [float(item not in (1, 4)) for item in range(agreed.items)]
    supported = [item for item, weight in enumerate(weights) if weight]
    for stage, length, named in ((0, agreed.items, None), (1, agreed.length_of(1, len(supported)), supported)):
        made = offer(
            config=agreed.digest().hex(), noise=0, stage=stage, length=length, columns=agreed.columns_of(stage)
        )[0]
        question = {"kind": "split", "config": agreed.to_bytes().hex(), "offer": asdict(made), "weights": weights}
        assert ask(question) == [named]
