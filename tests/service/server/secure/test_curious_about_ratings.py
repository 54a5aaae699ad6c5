"""An audit of running federations of ratings: what each server gets of the same people, plainly and as sums.

Everything that reaches the server is noted with the device that sent it, as a curious operator could; only to judge the
guesses is it known whose device is whose.
"""

import hashlib
from collections import defaultdict

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.service.client.homes import leading
from tests.service.federations import PATIENT, establish_in, stored
from tests.service.helper.helpers import ThreadedHelper

from federank.audit.scoring import judge
from federank.federation import wire
from federank.federation.method import ItemGradients
from federank.methods.fedrec.audit import Answer, RatingView, intersection, two_steps
from federank.methods.fedrec.method import PMF
from federank.secagg.proof.parameters import FULL
from federank.secagg.ring import C_INT, centred
from federank.secagg.upload import decode_upload
from federank.service.server.http import client_api as devices
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.secure_config import SecaggSpec
from federank.service.simulated_clients.methods import Plan, SimulatedClients
from federank.service.simulated_clients.processes import Rehearsal, rehearse

pytestmark = pytest.mark.slow

PEOPLE, ITEMS, RATED, ROUNDS, FACTORS, CLIP = 24, 40, 10, 5, 4, 64.0
COLUMNS = FACTORS + 1
SETTINGS = {"factors": FACTORS, "initial_range": 0.5, "seed": 3, "learning_rate": 0.4}


def people():
    return two_opinions(PEOPLE, ITEMS, RATED)


class Watched:
    """What came, by device, and the models that devices answered to; who is who, for the judge alone."""

    def __init__(self, monkeypatch):
        self.bodies, self.vectors, self._owner = defaultdict(dict), {}, {}
        keep, message, upload = devices.keep_upload, SimulatedClients.message, SimulatedClients.upload

        def noted(connection, sent):
            self.bodies[sent.client][sent.ticket.round_number] = sent.body
            return keep(connection, sent)

        def of(user, round_number, model, body):
            self.vectors[round_number] = np.array(model.vectors[:, :FACTORS])
            self._owner[hashlib.sha256(body).digest()] = user
            return body

        monkeypatch.setattr(devices, "keep_upload", noted)
        monkeypatch.setattr(
            SimulatedClients,
            "message",
            lambda own, user, number, model: of(user, number, model, message(own, user, number, model)),
        )
        monkeypatch.setattr(
            SimulatedClients,
            "upload",
            lambda own, user, model, terms: of(user, terms.offer.round, model, upload(own, user, model, terms)),
        )

    def by_person(self):
        """Every device's messages by round, in the order of the people."""
        found = {self._owner[hashlib.sha256(sent[0]).digest()]: sent for sent in self.bodies.values()}
        return [found[user] for user in range(PEOPLE)]


def played(tmp_path, helper=None, **settings):
    """A real federation, with everyone in every round."""
    store = f"sqlite:///{tmp_path / 'leader.sqlite'}"
    rounds = {"target": PEOPLE, "minimum": PEOPLE, "over_selection": 1.0} | PATIENT
    sums = None if helper is None else SecaggSpec(helper=helper.origin, sigma=0.0, least_cohort=PEOPLE)
    establish_in(store, PMF(**SETTINGS, **settings), SERVER_METHODS["pmf"], rounds, people(), sums=sums)
    with leading(store) as leader:
        rehearse(Rehearsal(plan=Plan(address=leader.address), data=people(), rounds=ROUNDS, seed=3, specs={}))
    return store


def as_view(named):
    """What an attack is given: which items each person's messages named, message by message."""
    counts = named.sum(axis=1).astype(np.uint16)
    nothing = np.zeros(counts.shape, dtype=np.bool_)
    vectors = np.zeros((ITEMS, FACTORS), dtype=np.float32)
    return RatingView(counts, np.full(PEOPLE, ROUNDS), named[:, 0], nothing, vectors, RATED)


def marks(named):
    profiles = [people().profiles.of(user) for user in range(PEOPLE)]
    return judge(intersection(as_view(named)), profiles, np.zeros((PEOPLE, ITEMS), dtype=np.bool_))


def guessed_and_true(answers):
    """Ratings by two consecutive messages of each person, and those that the person has given."""
    data, guesses, truth = people(), [], []
    for user, (first, second) in enumerate(answers):
        found = two_steps(first, second, 0.001, 1, 5)
        stars = dict(zip(found.items.tolist(), found.ratings.tolist(), strict=True))
        here = slice(data.profiles.starts[user], data.profiles.starts[user + 1])
        for item, rating in zip(data.profiles.items[here].tolist(), data.ratings[here].tolist(), strict=True):
            guesses.append(stars[item])
            truth.append(rating)
    return np.array(guesses), np.array(truth)


def test_server_that_reads_uploads_recovers_ratings(tmp_path, monkeypatch):
    watched = Watched(monkeypatch)
    played(tmp_path, filling="average", rho=1.0, sampling="fresh")
    method = PMF(n_items=ITEMS, factors=FACTORS)
    sent = [
        [wire.decode(ItemGradients, method, messages[number]) for number in range(ROUNDS)]
        for messages in watched.by_person()
    ]
    named = np.zeros((PEOPLE, ROUNDS, ITEMS), dtype=np.bool_)
    for user, updates in enumerate(sent):
        for number, update in enumerate(updates):
            named[user, number, update.items] = True
    found = marks(named)
    assert found.recall.min() == 1.0
    assert found.precision.mean() > 0.9, "what came back every time was rated"
    answers = [[Answer(updates[number], watched.vectors[number]) for number in (2, 3)] for updates in sent]
    guesses, truth = guessed_and_true(answers)
    assert np.mean(np.rint(guesses) == truth) > 0.8, "and two messages give the stars"


def test_servers_of_secure_aggregation_recover_nothing(tmp_path, monkeypatch):
    watched = Watched(monkeypatch)
    with ThreadedHelper(tmp_path) as helper:
        store = played(tmp_path, helper)
    shares = np.array(
        [
            [decode_upload(messages[number], ITEMS * COLUMNS, FULL).share for number in range(ROUNDS)]
            for messages in watched.by_person()
        ]
    ).reshape(PEOPLE, ROUNDS, ITEMS, COLUMNS)
    found = marks((shares != 0).any(axis=3))
    assert (found.recall.min(), found.auc.mean()) == (1.0, pytest.approx(0.5)), "every message names every item"
    assert found.precision.mean() == pytest.approx(RATED / ITEMS)
    # The leader's half of a message, taken for gradients: it points nowhere.
    rows = centred(shares).astype(np.float64) * (CLIP / C_INT)
    everything = np.arange(ITEMS, dtype=np.int32)
    answers = [
        [
            Answer(ItemGradients(everything, own[number, :, :FACTORS].astype(np.float32)), watched.vectors[number])
            for number in (2, 3)
        ]
        for own in rows
    ]
    guesses, truth = guessed_and_true(answers)
    assert abs(np.corrcoef(guesses, truth)[0, 1]) < 5 / np.sqrt(len(truth))
    counts = np.abs(rows[..., -1]).mean(axis=1)
    is_rated = np.zeros((PEOPLE, ITEMS), dtype=np.bool_)
    for user in range(PEOPLE):
        is_rated[user, people().profiles.of(user)] = True
    assert abs(np.corrcoef(counts.ravel(), is_rated.ravel())[0, 1]) < 5 / np.sqrt(is_rated.size)

    # What their records hold afterwards: no message, no half of one.
    assert {bytes(body) for (body,) in stored(store, "SELECT body FROM uploads")} <= {b""}
    helpers = b"".join(part.read_bytes() for part in tmp_path.glob("helper.sqlite*"))
    halves = [share.astype("<u4").tobytes() for own in shares for share in own]
    assert halves, "there were messages"
    assert not any(half in helpers for half in halves)
