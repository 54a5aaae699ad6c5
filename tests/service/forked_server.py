"""A server that can be killed and started again quickly: `python -m tests.service.forked_server STORE`.

This process has everything imported and the sockets bound. For every line on its stdin it forks a child that serves,
and prints the child's number; the child is a server like any other, and can be killed like any other.
"""

import json
import os
import sys

import uvicorn  # noqa: F401 (imported before the fork, like the two below)
import uvloop  # noqa: F401

import federank.service.server.http.app
import federank.service.server.http.listening  # noqa: F401
from federank.service.server.processes import Serving, asyncio_run, bind
from federank.service.server.settings import TrustSettings


def main(store):
    public, admin = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
    print(json.dumps([bound.getsockname()[1] for bound in (public, admin)]), flush=True)  # noqa: T201
    trust = TrustSettings(device_rate=0, address_rate=0, enrolment_rate=0, keep_updates=True, refuse_implausible=False)
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(asyncio_run(Serving(store=store, trust=trust, quiet=True), public, admin))
        print(child, flush=True)  # noqa: T201
        os.waitpid(child, 0)
        print("ended", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
