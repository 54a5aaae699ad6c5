"""What is shipped to run a federation with: parsed, held against what the server measures, and linted by promtool.

The image is not built and the units are not started here: there is no container engine, and no systemd that runs. Where
`systemd-analyze` is installed it verifies the units and rates their sandbox.
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
from tests.service.federations import serving

from federank.cli.helper import helper
from federank.cli.serve import serve
from federank.service.helper.service import Metrics
from federank.service.server.http.listening import proxies_of

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


def test_prometheus_takes_the_configuration_with_its_alert_rules(promtool, tmp_path):
    shutil.copy(DEPLOY / "prometheus.yml", tmp_path / "prometheus.yml")
    shutil.copy(DEPLOY / "alerts.yml", tmp_path / "federank.yml")
    command = [promtool, "check", "config", tmp_path / "prometheus.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"SUCCESS: \d+ rules found", done.stdout)


UNITS = {"federank.service": "serve", "federank-helper.service": "helper"}
MOST_EXPOSED = 30
"""Of systemd-analyze, in tenths."""


def flags_of(name):
    command = serve.get_command(None, "frugal") if name == "serve" else helper
    return {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}


@pytest.mark.parametrize(("unit", "command"), UNITS.items())
def test_a_unit_starts_a_server_that_there_is(unit, command):
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str
    read.read(DEPLOY / unit)
    started = read["Service"]["ExecStart"].split()
    assert started[1] == command
    assert {word for word in started if word.startswith("--")} <= flags_of(command)
    assert "HUP" in read["Service"]["ExecReload"]
    assert {"Restart", "MemoryMax", "TasksMax", "LimitNOFILE"} <= set(read["Service"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_a_unit_and_its_sandbox_is_tight(name, tmp_path):
    text = (DEPLOY / name).read_text()
    unit = tmp_path / name
    program = shutil.which("true")  # one that is there, at a path without a space
    unit.write_text(text.replace("/opt/federank/bin/federank", program))
    assert f"ExecStart={program} " in unit.read_text()
    for command in (
        ["verify", "--recursive-errors=no", "--man=no"],
        ["security", "--offline=yes", "--no-pager", f"--threshold={MOST_EXPOSED}"],
    ):
        done = subprocess.run(["systemd-analyze", *command, str(unit)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "services", "server", "command"),
    [
        ("compose.yaml", {"database", "server", "proxy"}, "server", "serve"),
        ("compose.helper.yaml", {"helper", "proxy"}, "helper", "helper"),
    ],
)
def test_a_compose_file_starts_servers_that_restart_within_limits(file, services, server, command):
    compose = yaml.safe_load((DEPLOY / file).read_text())
    assert set(compose["services"]) == services
    for service in compose["services"].values():
        assert service["restart"] == "unless-stopped"
        assert {"mem_limit", "logging", "security_opt"} <= set(service)
    ours = compose["services"][server]
    given = ours["command"]
    assert given[0] == command
    if command == "serve":
        assert given[1].startswith("${FEDERANK_READERS:?"), "who can read uploads is the operator's decision"
    flags = dict(word.split("=", 1) for word in given[1:] if word.startswith("--"))
    assert set(flags) <= flags_of(command)
    assert ours["build"]["dockerfile"] == "deploy/Containerfile"
    assert ours["read_only"]
    assert ours["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in ours["ports"]), "the operator's address is not for everyone"
    is_proxy = proxies_of(flags["--proxies"])
    pools = ["172.17.0.2", "172.31.255.254", "192.168.0.2", "192.168.255.254", "10.88.0.5"]  # of Docker and Podman
    assert all(map(is_proxy, pools))
    assert not is_proxy("203.0.113.9")


def test_prometheus_scrapes_both_servers_at_the_addresses_of_their_metrics():
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    jobs = {job["job_name"]: job["static_configs"][0]["targets"] for job in scraped}
    assert jobs == {"federank": ["127.0.0.1:8471"], "federank-helper": ["127.0.0.1:8481"]}
    rules = (DEPLOY / "alerts.yml").read_text()
    assert set(re.findall(r'job="([^"]*)"', rules)) == set(jobs)


def test_the_image_has_what_the_installation_needs_and_no_more():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    instructions = {line.split()[0] for line in lines if line and line[0].isupper()}
    assert instructions == {"ARG", "FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "ENV", "ENTRYPOINT", "CMD"}
    kept = {line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "src"}
