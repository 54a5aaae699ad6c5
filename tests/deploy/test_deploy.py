"""What is shipped to run a federation with: parsed, held against what the server measures, and linted by promtool.

The images are not built and the unit is not started here: there is no container engine, and no systemd that runs. Where
`systemd-analyze` is installed it verifies the unit.
"""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from tests.service.federations import in_a_loop, serving

from federank.cli.serve import serve
from federank.service.helper.service import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"


async def measured(running):
    """The names of everything that /metrics of a server and of a helper have."""
    running.service.metrics.upload("stored", 10, 1)
    running.service.metrics.download(10)
    await running.client.get("/health")
    text = (await running.admin.get("/metrics")).text + Metrics().text({}).decode()
    return {match[1] for match in re.finditer(r"^(?:# TYPE )?(federank_[a-z_]+)", text, re.MULTILINE)}


def names_in(expressions):
    return {name for text in expressions for name in re.findall(r"federank_[a-z_]+", text)}


@in_a_loop
async def test_alerts_and_dashboard_ask_only_for_what_the_server_measures(tmp_path):
    rules = [rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    panels = json.loads((DEPLOY / "dashboard.json").read_text())["panels"]
    asked = names_in(rule["expr"] for rule in rules)
    asked |= names_in(target["expr"] for panel in panels for target in panel["targets"])
    async with serving(f"sqlite:///{tmp_path / 'federation.sqlite'}") as running:
        known = await measured(running)
    assert asked <= known, asked - known
    assert {"federank_drift", "federank_largest_move", "federank_busiest_range_reports"} <= asked
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_prometheus_takes_the_alert_rules(promtool):
    command = [promtool, "check", "rules", DEPLOY / "alerts.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def flags_of_serve():
    command = serve.get_command(None, "frugal")
    return {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}


def test_the_unit_starts_a_server_that_there_is():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(DEPLOY / "federank.service")
    started = unit["Service"]["ExecStart"].split()
    assert started[1] == "serve"
    assert {word for word in started if word.startswith("--")} <= flags_of_serve()
    assert "HUP" in unit["Service"]["ExecReload"]
    assert unit["Service"]["NoNewPrivileges"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path):
    text = (DEPLOY / "federank.service").read_text()
    unit = tmp_path / "federank.service"
    program = shutil.which("true")  # one that is there, at a path without a space
    unit.write_text(text.replace("/opt/federank/bin/federank", program))
    assert f"ExecStart={program} serve" in unit.read_text()
    command = ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_the_compose_file_starts_a_server_a_database_and_a_proxy():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"database", "server", "proxy"}
    server = compose["services"]["server"]
    assert server["command"][0] == "serve"
    assert server["command"][1].startswith("${FEDERANK_READERS:?"), "who can read uploads is the operator's decision"
    assert {word.split("=")[0] for word in server["command"][2:]} <= flags_of_serve()
    assert server["build"]["dockerfile"] == "deploy/Containerfile"
    assert all(port.startswith("127.0.0.1:") for port in server["ports"]), "the operator's address is not for everyone"


@pytest.mark.parametrize("instruction", ["FROM", "COPY", "USER", "HEALTHCHECK", "ENTRYPOINT"])
def test_the_image_has_what_a_server_needs(instruction):
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    instructions = [line.split()[0] for line in lines if line and not line.startswith("#")]
    known = {*("FROM", "RUN", "COPY", "USER", "WORKDIR", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD")}
    assert instruction in instructions
    assert set(instructions) <= known
