"""What forked programs (forked.py) have before they begin: everything imported, and the page compressed.

Nothing else is done here: Polars and others start threads when they are first used, and a fork has no threads.
"""

# ruff: noqa: F401 (to have them imported is all)
import uvicorn
import uvloop

import federank.cli.fleet
import federank.cli.helper
import federank.cli.serve.command
import federank.service.fleet.devices
import federank.service.helper.app
import federank.service.server.http.connections
import tests.service.page.server
from federank.service.server.http.app import PAGE
from federank.service.server.http.assets import read_assets

read_assets(PAGE)
