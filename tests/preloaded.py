"""What forked programs (forked.py) have before they begin: everything imported, and the page compressed.

Nothing else is done here: Polars and others start threads when they are first used, and a fork has no threads.
"""

# ruff: noqa: F401 (to have them imported is all)
import uvicorn
import uvloop

import federank.cli.client
import federank.cli.helper
import federank.cli.serve
import federank.service.helper.process
import federank.service.server.http.listening
import federank.service.simulated_clients.clients
import tests.service.web.server
from federank.service.server.http.app import PAGE, read_assets

read_assets(PAGE)
