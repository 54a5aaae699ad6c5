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
from tests.service.web.questions import CLOSE
from tests.squares_worlds import read_update

from federank.federation.client import History, RoundVector, User
from federank.methods.frugal.protocol import count_unit, dense
from federank.privacy.ledger import Ledger
from federank.privacy.policy import SharedProfile
from federank.secagg.keys import public_key_of
from federank.secagg.round_config import sign_offer
from federank.service.client import rules

PAGE = Path(rules.__file__).parents[1] / "web"


@pytest.fixture
def ask(ask_secagg):
    return ask_secagg


def asked_of(played, profile, spent, counts=None):
    """A client's message in a federation: the question."""
    now = played.published
    content = played.served.encode(played.settings, now, now.rows_since(None), 0)
    model = {"recipe": played.settings.public_settings(), "content": content.hex(), "items": ITEMS}
    return {"kind": "frugal", "profile": profile.tolist(), "spent": spent, "counts": counts} | model


def test_message_is_pythons_in_every_stage(ask):
    played, user = Federation(), 3
    profile = DATA.profiles.of(user)
    real = np.ones(len(profile), dtype=np.bool_)
    kept = RoundVector(np.zeros(FACTORS, dtype=np.float32), None, frozenset())
    for spent, counts in ((0, None), (0, None), (1, None), (1, True)):
        model, ledger = played.received(), Ledger()
        taken = SharedProfile(profile, real, real, True)
        if spent:
            ledger.record_message(0, taken, 1, 4)
        expected = None
        if counts is None:
            person = User(1, user, POLICY, taken, kept)
            made = played.info.rules.play(person, model, ledger, 1)
            expected = read_update(made.body, FACTORS, ITEMS, min_support=2)
        [found] = ask(asked_of(played, profile, spent, counts))
        np.testing.assert_array_equal(np.float32(found["weights"]), model.tables["weights"])
        if expected is None:
            np.testing.assert_array_equal(np.flatnonzero(found["values"]), profile)
            continue
        body = read_update(bytes.fromhex(found["body"]), FACTORS, ITEMS, min_support=2)
        np.testing.assert_allclose(body.strengths, expected.strengths, **CLOSE)
        np.testing.assert_allclose(body.vector, expected.vector, **CLOSE)
        assert body.scale == pytest.approx(expected.scale, rel=1e-6)
        assert found["liked"] == found["ledger"] == made.recorded.tolist()
        if spent:
            np.testing.assert_allclose(
                found["values"], np.concatenate([part.ravel() for part in dense(expected)]), rtol=1e-4, atol=1e-5
            )
            rules = played.info.rules
            home = rules.home_vector(1, user, History(made.recorded), model)
            scores = rules.scores(model, home)
            shown = np.array([np.nan if score is None else score for score in found["scores"]])
            np.testing.assert_array_equal(np.isfinite(shown), COUNTS >= SUPPORT)
            np.testing.assert_allclose(shown[COUNTS >= SUPPORT], scores[COUNTS >= SUPPORT], rtol=1e-4, atol=1e-5)
        assert found["learnt"] == bool(played.published.content.state["received"][0])
        played.play()


def test_hidden_item_is_shown_by_no_client(ask):
    """An item without a vector, though with users: the server hides it, because its predicted audience has jumped."""
    played = Federation()
    for _ in range(3):
        played.play()
    content, profile = played.published.content, DATA.profiles.of(3)
    hidden = int(np.argmax(COUNTS))
    vectors = content.tables["vectors"].copy()
    vectors[hidden] = 0
    played.published = played.published.followed_by(content._replace(tables=content.tables | {"vectors": vectors}))
    [found] = ask(asked_of(played, profile, 1))
    model = played.received()
    rules = played.info.rules
    home = rules.home_vector(1, 3, History(profile), model)
    scores = rules.scores(model, home)
    expected = (COUNTS >= SUPPORT) & (np.arange(ITEMS) != hidden)
    np.testing.assert_array_equal(np.isfinite(scores), expected)
    assert [score is not None for score in found["scores"]] == expected.tolist()


SPECTRAL = {"recipe": "spectral", "messages": 3, "noises": (0,) * 3}


def offer_of(agreed, stage, length):
    columns = agreed.columns_of(stage)
    return offer(config=agreed.digest().hex(), noise=0, stage=stage, length=length, columns=columns)[0]


def test_lengths_of_uploads_are_pythons(ask):
    configs = [secagg_config(**SPECTRAL, min_support=5), secagg_config(min_support=5), secagg_config(**SPECTRAL)]
    cases = [(config, stage, rows) for config in configs for stage in (0, 1) for rows in (None, 4)]
    lengths = list(range(200))
    asked = [{"config": config.to_bytes().hex(), "stage": stage, "rows": rows} for config, stage, rows in cases]
    found = ask(*({"kind": "lengths", "lengths": lengths} | one for one in asked))
    for (config, stage, rows), answer in zip(cases, found, strict=True):
        assert answer == {
            "columns": config.columns_of(stage),
            "length": config.length_of(stage, rows),
            "allowed": [length for length in lengths if config.allows_length(stage, length)],
            "unit": count_unit(config.items),
        }


def test_offer_of_other_rows_is_refused(ask):
    agreed = secagg_config(**SPECTRAL, min_support=5)
    rows = agreed.items - 2
    made = offer_of(agreed, 1, agreed.length_of(1, rows))
    question = {"kind": "offer", "content": sign_offer(HELPER, made).hex(), "helper": public_key_of(HELPER).hex()}
    question |= {"config": agreed.to_bytes().hex(), "model": made.model, "now": 0}
    good, unknown, wrong = ask(*(question | {"rows": told} for told in (rows, None, rows - 1)))
    assert good["offer"] == unknown["offer"]
    assert "refused" in wrong


def test_message_names_the_items_of_its_rows(ask):
    """The page shows its owner the largest rows with their titles."""
    agreed = secagg_config(**SPECTRAL, min_support=5)
    weights = [float(item not in (1, 4)) for item in range(agreed.items)]
    supported = [item for item, weight in enumerate(weights) if weight]
    for stage, length, named in ((0, agreed.items, None), (1, agreed.length_of(1, len(supported)), supported)):
        made = offer_of(agreed, stage, length)
        question = {"kind": "split", "config": agreed.to_bytes().hex(), "offer": asdict(made), "weights": weights}
        assert ask(question) == [named]
