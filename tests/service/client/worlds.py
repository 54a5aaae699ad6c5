"""A federation on a real socket that does as it is told: well-behaved, or broken in the way a test asks for."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
from safetensors.numpy import save
from tests.commands import serve_words, started

FACTORS, ITEMS = 4, 12
TITLES = [f"Place {number}" for number in range(ITEMS)]


def rows(items, round_number, version, factors=FACTORS, seed=0):
    """Rows of a model as they cross the wire."""
    rng = np.random.default_rng(seed)
    arrays = {
        "items": np.asarray(items, dtype=np.int32),
        "vectors": rng.normal(size=(len(items), factors)).astype(np.float32),
        "biases": np.zeros(len(items), dtype=np.float32),
    }
    return packed(arrays, round_number, version)


def squares_rows(items, round_number, version, factors=FACTORS, seed=0):
    """Rows of a model of few messages as they cross the wire."""
    rng = np.random.default_rng(seed)
    arrays = {
        "regulariser": np.array([0.5]),
        "weights": np.linspace(0.5, 1.5, ITEMS, dtype=np.float32)[list(items)],
        "codes": rng.integers(-127, 128, (len(items), factors)).astype(np.int8),
        "scales": np.full(len(items), 1 / 127, dtype=np.float32),
    }
    if len(items) < ITEMS:
        arrays["items"] = np.asarray(items, dtype=np.int32)
    return packed(arrays, round_number, version)


def rating_rows(round_number, version, reported=range(ITEMS - 1)):
    """A model of ratings as it crosses the wire; no upload has had the items that are not `reported`."""
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(ITEMS, FACTORS)).astype(np.float32)
    vectors[:, 0] += 2
    flags = np.isin(np.arange(ITEMS), list(reported)).astype(np.int8)
    return packed(
        {"vectors": vectors, "reported": flags, "iteration": np.array([version], np.int32)}, round_number, version
    )


def packed(arrays, round_number, version):
    return save(arrays, metadata={"round": f"{round_number:010d}", "version": f"{version:010d}"})


class ScriptedFederation:
    """Answers as the interface says; `faults` maps (method, path's beginning) to answers that come first."""

    def __init__(self, messages=None, ratings=False):
        self.ratings = ratings  # whether it is of ratings
        self.messages = messages  # few of them, where there is a number; else pairs are learnt
        self.version = 0
        self.tickets = 0
        self.faults = {}
        self.asked = []
        self.uploads = []
        self.stored = {}
        self.address = ""
        self.suggested_policy = None
        self.upload_period = 0
        self.federation_id = "f" * 32
        self.outcomes = []  # what is said of uploads first, in this order; then all are aggregated

    def fault(self, method, path, *answers):
        """Answer the next requests to a path so; an answer is (status, headers, body), or "cut" for a cut line."""
        self.faults.setdefault((method, path), []).extend(answers)

    def recipe(self):
        if self.ratings:
            return {
                "factors": FACTORS,
                "learning_rate": 0.1,
                "decay": 0.9,
                "regulariser": 0.001,
                "initial_range": 0.5,
                "t_predict": 1,
                "t_local": 3,
                "item_gradients": "before",
                "filling_start": "late",
                "local_training": "copy",
                "lowest": 1,
                "highest": 5,
                "step": 1,
                "first_prediction": "mean",
            }
        if self.messages is None:
            return {
                "factors": FACTORS,
                "learning_rate": 0.05,
                "user_regulariser": 0.05,
                "positive_regulariser": 0.05,
                "negative_regulariser": 0.005,
                "order": "as-in-code",
                "triples": 5,
                "initial_scale": 0.1,
            }
        return {
            "factors": FACTORS,
            "messages": self.messages,
            "alpha": 0.0,
            "unobserved_weight": 1.0,
            "activity": 0.15,
            "clip": None,
        }

    def rows(self):
        if self.ratings:
            return rating_rows(self.version, self.version)
        write = rows if self.messages is None else squares_rows
        return write(range(ITEMS), self.version, self.version)

    def info(self):
        return {
            "api": 1,
            "name": "A test",
            "method": "pmf" if self.ratings else "fpl" if self.messages is None else "frugal",
            "recipe": self.recipe(),
            "items": ITEMS,
            "catalogue": "c" * 16,
            "federation_id": self.federation_id,
            "version": self.version,
            "suggested_policy": self.suggested_policy,
            "upload_period_seconds": self.upload_period,
        }

    def catalogue(self):
        items = [
            {"id": str(100 + number), "title": TITLES[number], "categories": ["Food" if number < 3 else "Shop"]}
            for number in range(ITEMS)
        ]
        return {"digest": "c" * 16, "items": items}

    def answer(self, method, path, body):
        self.asked.append((method, path))
        place = "/api/v1/outcome" if path.endswith("/outcome") else path
        for (faulty, beginning), answers in self.faults.items():
            if faulty == method and place.startswith("/api/v1" + beginning) and answers:
                return answers.pop(0)
        path = path.removeprefix("/api/v1").partition("?")[0]
        if method == "POST" and path == "/devices":
            return 201, {}, json.dumps({"device": "d1", "token": "t1"}).encode()
        if method == "DELETE":
            return 204, {}, b""
        if path == "/federation":
            return 200, {}, json.dumps(self.info()).encode()
        if path == "/status":
            return 200, {}, json.dumps({"round": self.version, "version": self.version}).encode()
        if path == "/catalogue":
            return 200, {}, json.dumps(self.catalogue()).encode()
        if path == "/model":
            return 200, {}, self.rows()
        if path == "/work":
            self.tickets += 1
            return 200, {}, json.dumps(self.ticket()).encode()
        if method == "POST" and path.endswith("/update"):
            return self.take(path.split("/")[2], body)
        if path.endswith("/outcome"):
            return self.outcome(path.split("/")[2])
        if path.startswith("/tasks/"):
            return 200, {}, self.rows()
        return 404, {}, json.dumps({"error": "unknown", "message": "No."}).encode()

    def ticket(self):
        return {
            "ticket": f"ticket{self.tickets}",
            "round": self.version,
            "version": self.version,
            "deadline_seconds": 60,
            "most_rows": ITEMS,
        }

    def outcome(self, ticket):
        if ticket not in self.stored:
            return 404, {}, json.dumps({"error": "unknown", "message": "No."}).encode()
        word = self.outcomes.pop(0) if self.outcomes else "counted"
        return 200, {}, json.dumps({"outcome": word, "message": ""}).encode()

    def take(self, ticket, body):
        self.uploads.append((ticket, body))
        again = ticket in self.stored
        if again and self.stored[ticket] != body:
            return 409, {}, json.dumps({"error": "repeated", "message": "Another body."}).encode()
        self.stored[ticket] = body
        self.version += not again
        receipt = {"receipt": hashlib.sha256(body).hexdigest(), "round": self.version, "stored": True}
        return 200 if again else 201, {}, json.dumps(receipt).encode()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and content in one packet: the other end would wait for the second one
    federation: ScriptedFederation

    def _serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.federation.answer(self.command, self.path, body)
        if answer == "cut":
            self.close_connection = True
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815 (http.server prescribes the names)

    def log_message(self, *_):
        """Tests read what was asked, not a log."""


@contextmanager
def scripted_federation(messages=None, ratings=False):
    """A scripted federation that listens on a free port of this machine."""
    federation = ScriptedFederation(messages, ratings)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Requests", (_Requests,), {"federation": federation}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    federation.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield federation
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def served(folder, *options):
    """`federank serve` as a process of its own on a free port, with no one's limits; its address.

    It is of the published protocol where no method is named.
    """
    words = ["--port", "0", "--admin-port", "0", "--rehearsal", "--quiet"]
    store = f"sqlite:///{folder / 'federation.sqlite'}"
    words += ["--store", store, *([] if "--method" in options else ["--method", "fpl"]), *options]
    with started(*serve_words(*words), cwd=folder) as server:
        try:
            for line in server.stdout:
                if line.startswith("federation"):
                    yield line.split()[1]
                    break
            else:
                raise AssertionError("the server has not started")
        finally:
            server.terminate()
            server.stdout.read()
