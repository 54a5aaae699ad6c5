"""A scripted federation on a real socket: correct, or broken in the way a test asks for."""

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


RATINGS_RECIPE = {
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
FPL_RECIPE = {
    "factors": FACTORS,
    "learning_rate": 0.05,
    "user_regulariser": 0.05,
    "positive_regulariser": 0.05,
    "negative_regulariser": 0.005,
    "order": "as-in-code",
    "triples": 5,
    "initial_scale": 0.1,
}
FRUGAL_RECIPE = {"factors": FACTORS, "alpha": 0.0, "unobserved_weight": 1.0, "activity": 0.15, "clip": None}


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
    arrays = {"vectors": vectors, "reported": flags, "iteration": np.array([version], np.int32)}
    return packed(arrays, round_number, version)


def packed(arrays, round_number, version):
    return save(arrays, metadata={"round": f"{round_number:010d}", "version": f"{version:010d}"})


def in_json(content, status=200, **headers):
    """An answer of the scripted federation."""
    return status, headers, json.dumps(content).encode()


UNKNOWN = in_json({"error": "unknown", "message": "No."}, 404)


class ScriptedFederation:
    """Answers as the interface says; `faults` maps (method, path's beginning) to answers that come first.

    It is of Frugal where there is a number of messages, of PMF with ratings, and else of FPL.
    """

    def __init__(self, messages=None, ratings=False):
        self.messages, self.ratings = messages, ratings
        self.version, self.tickets, self.address, self.federation_id = 0, 0, "", "f" * 32
        self.faults, self.asked, self.uploads, self.stored = {}, [], [], {}
        self.suggested_policy, self.upload_period = None, 0
        self.outcomes = []  # of the first uploads, in this order; then all are aggregated

    def fault(self, method, path, *answers):
        """Answer the next requests to a path so; an answer is (status, headers, body), or "cut" for a cut line."""
        self.faults.setdefault((method, path), []).extend(answers)

    def recipe(self):
        if self.ratings:
            return dict(RATINGS_RECIPE)
        return dict(FPL_RECIPE) if self.messages is None else FRUGAL_RECIPE | {"messages": self.messages}

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
        if method == "POST" and path == "/clients":
            return in_json({"client": "d1", "token": "t1"}, 201)
        if method == "DELETE":
            return 204, {}, b""
        if path == "/federation":
            return in_json(self.info())
        if path == "/status":
            return in_json({"round": self.version, "version": self.version})
        if path == "/catalogue":
            return in_json(self.catalogue())
        if path == "/work":
            self.tickets += 1
            return in_json(self.ticket())
        if method == "POST" and path.endswith("/update"):
            return self.take(path.split("/")[2], body)
        if path.endswith("/outcome"):
            return self.outcome(path.split("/")[2])
        if path == "/model" or path.startswith("/tasks/"):
            return 200, {}, self.rows()
        return UNKNOWN

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
            return UNKNOWN
        return in_json({"outcome": self.outcomes.pop(0) if self.outcomes else "counted", "message": ""})

    def take(self, ticket, body):
        self.uploads.append((ticket, body))
        again = ticket in self.stored
        if again and self.stored[ticket] != body:
            return in_json({"error": "repeated", "message": "Another body."}, 409)
        self.stored[ticket] = body
        self.version += not again
        receipt = {"receipt": hashlib.sha256(body).hexdigest(), "round": self.version, "stored": True}
        return in_json(receipt, 200 if again else 201)


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
    """`federank serve` as a process on a free port, without limits, of FPL where no method is named; its address."""
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
