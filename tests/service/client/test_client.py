"""The device's line to the server: patience with what passes, none with what does not, limits on everything."""

import gzip
import json
import threading
import time
from email.utils import formatdate

import pytest

from federank.errors import BadAnswer, NoAnswer, Refused, SettingError, Withdrawn
from federank.service.client.federation import register
from federank.service.client.http import LONGEST_BACKOFF, Client, checked_address


@pytest.fixture
def patient(federation):
    """A client that counts its pauses instead of making them."""
    pauses = []
    client = Client(federation.address, sleep=pauses.append, jitter=lambda: 1.0)
    client.pauses = pauses
    yield client
    client.close()


def complaint(status, slug="busy", **headers):
    return status, headers, json.dumps({"error": slug, "message": "A whole sentence."}).encode()


def test_pauses_double_up_to_the_longest(federation, patient):
    federation.fault("GET", "/federation", *[complaint(status) for status in (500, 502, 503, 504)], "cut")
    federation.fault("GET", "/federation", *[complaint(500)] * 7)
    assert patient.request("GET", "/federation").status == 200
    assert patient.pauses[:5] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert max(patient.pauses) == patient.pauses[-1] == LONGEST_BACKOFF


def test_retry_after_in_seconds_and_as_a_date(federation, patient):
    later = formatdate(time.time() + 90, usegmt=True)
    whens = ("17", later, "soon", "Mon, 01 Jan 0001 00:00:00 -0000")
    federation.fault("GET", "/federation", *[complaint(429, **{"Retry-After": when}) for when in whens])
    patient.request("GET", "/federation")
    assert patient.pauses[0] == 17
    assert 60 < patient.pauses[1] <= 90
    assert patient.pauses[2] == 2.0


def test_attempts_are_bounded(federation, patient):
    federation.fault("GET", "/federation", *[complaint(503)] * 3)
    with pytest.raises(NoAnswer, match="whole"):
        patient.request("GET", "/federation", attempts=3)
    assert len(federation.asked) == 3


def test_rate_limit_with_retry_after_uses_no_attempt(federation, patient):
    limit = complaint(429, "too-many", **{"Retry-After": "5"})
    federation.fault("POST", "/clients", *[limit] * 8, complaint(503), limit)
    assert patient.request("POST", "/clients", b"{}", attempts=2).status == 201
    assert len(federation.asked) == 11
    assert min(patient.pauses) >= 5


def test_rate_limit_without_retry_after_uses_an_attempt(federation, patient):
    federation.fault("POST", "/clients", *[complaint(429, "too-many")] * 3)
    with pytest.raises(NoAnswer):
        patient.request("POST", "/clients", b"{}", attempts=2)
    assert len(federation.asked) == 2


def test_no_retry_after_the_deadline(federation, patient):
    federation.fault("GET", "/federation", complaint(429, **{"Retry-After": "30"}))
    with pytest.raises(NoAnswer):
        patient.request("GET", "/federation", deadline=time.monotonic() + 20)
    assert patient.pauses == []


def test_slow_answer_ends_at_the_deadline(federation):
    given_up, answer = threading.Event(), federation.answer
    federation.answer = lambda *asked: (given_up.wait(3), answer(*asked))[1]
    client = Client(federation.address, sleep=lambda _: None)
    with pytest.raises(NoAnswer):  # a client that waited would get its answer after three seconds
        client.request("GET", "/federation", deadline=time.monotonic() + 0.3)
    given_up.set()
    client.close()


def test_refusal_is_not_retried(federation, patient):
    federation.fault("GET", "/federation", complaint(410, "late"))
    with pytest.raises(Refused, match="whole") as refused:
        patient.request("GET", "/federation")
    assert (refused.value.status, refused.value.slug) == (410, "late")
    assert len(federation.asked) == 1


def test_a_client_sends_its_invitation(federation):
    bodies, usual = [], federation.answer
    federation.answer = lambda method, path, body: bodies.append(body) or usual(method, path, body)
    for invitation in (None, "code"):
        with Client(federation.address, invitation=invitation) as client:
            assert register(client)[0] == "d1"
    assert bodies == [b"{}", b'{"invitation": "code"}']


def test_redirects_are_not_followed(federation, patient):
    federation.fault("GET", "/federation", (302, {"Location": "/api/v1/model"}, b""))
    with pytest.raises(Refused):
        patient.request("GET", "/federation")
    assert len(federation.asked) == 1


def test_withdrawn_request_is_not_retried(federation, patient):
    federation.fault("GET", "/federation", *[complaint(503)] * 5)
    with pytest.raises(Withdrawn):
        patient.request("GET", "/federation", is_wanted=lambda: len(patient.pauses) < 2)
    assert len(federation.asked) == 2
    with pytest.raises(Withdrawn):
        patient.request("GET", "/federation", is_wanted=lambda: False)
    assert len(federation.asked) == 2


def test_error_messages_have_no_control_characters(federation, patient):
    told = json.dumps({"error": "no", "message": "\x1b[2Jgone" + "x" * 10_000}).encode()
    federation.fault("GET", "/federation", (400, {}, told))
    with pytest.raises(Refused) as refused:
        patient.request("GET", "/federation")
    assert "\x1b" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("packed", [False, True])
def test_answers_are_bounded(federation, patient, packed):
    content = bytes(3 << 20)
    headers = {"Content-Encoding": "gzip"} if packed else {}
    federation.fault("GET", "/model", (200, headers, gzip.compress(content) if packed else content))
    with pytest.raises(BadAnswer, match="longer than"):
        patient.request("GET", "/model", most_bytes=1 << 20)


@pytest.mark.parametrize("packing", ["br", "gzip"])
def test_wrong_content_encoding_is_refused(federation, patient, packing):
    federation.fault("GET", "/model", (200, {"Content-Encoding": packing}, b"no packing at all"))
    with pytest.raises(BadAnswer):
        patient.request("GET", "/model")


@pytest.mark.parametrize("address", ["http://127.0.0.1:8470", "http://localhost:1/", "http://[::1]:8470"])
def test_plain_http_to_this_machine(address):
    assert checked_address(address) == address.rstrip("/")


@pytest.mark.parametrize("address", ["http://example.org", "http://10.0.0.1:8470", "http://localhost.example.org"])
def test_plain_http_to_another_machine_must_be_explicit(address):
    with pytest.raises(SettingError, match="--insecure"):
        checked_address(address)
    assert checked_address(address, insecure=True) == address


@pytest.mark.parametrize("address", ["example.org", "ftp://example.org", "https://", "https://me:word@example.org"])
def test_wrong_addresses_are_refused(address):
    with pytest.raises(SettingError, match="--server"):
        checked_address(address)
