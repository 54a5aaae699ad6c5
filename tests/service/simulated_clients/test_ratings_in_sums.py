"""A federation of ratings whose messages no single server reads: a fleet learns the simulation's model from sums."""

import httpx
import numpy as np
import pytest
from tests.rated_worlds import simulated
from tests.service.client.worlds import served
from tests.service.simulated_clients.test_ratings import (
    AS_PUBLISHED,
    PEOPLE,
    RATES,
    ROUND,
    flags,
    people,
    play,
)
from tests.service.simulated_clients.worlds import fetched, written

from federank.cli.serve import report_guarantee
from federank.errors import SettingError
from federank.methods.fedrec.method import PMF, SVDPlusPlus
from federank.service.server.bootstrap import FederationSpec, open_store
from federank.service.server.secure_config import SecaggSpec
from federank.service.simulated_clients.methods import Plan
from federank.service.simulated_clients.processes import Rehearsal, rehearse
from federank.service.verification import Servers, verify

SETTINGS = {"factors": 4, "initial_range": 0.5, "seed": 3} | AS_PUBLISHED
ROUNDS = 4
CLIP = 32.0
# Rounding moves a number by at most a unit of CLIP / 4096 a person; rounds of steps at most double that.
TOLERANCE = 4 * CLIP / 4096


def serving(folder, helper, method, *more):
    cohort = ["--helper", helper.origin, "--least-cohort", "20"]
    chosen = flags(SETTINGS | {"learning_rate": RATES[method]})
    return served(folder, "--data", written(people(), folder), "--method", method, *chosen, *ROUND, *cohort, *more)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "kind"), [("pmf", PMF), ("svdpp", SVDPlusPlus)])
def test_sums_without_noise_give_the_simulations_model(tmp_path, helper, method, kind):
    with serving(tmp_path, helper, method, "--sigma", "0", "--clip", CLIP) as address:
        played, federation, model = play(address, ROUNDS)
        found = verify(Servers(address, helper.origin))
    method = kind(**SETTINGS, learning_rate=RATES[method], filling="none", rho=0)
    expected = simulated(method, people(), ROUNDS).broadcast()
    for name, table in model.tables.items():
        np.testing.assert_allclose(table, getattr(expected, name), atol=TOLERANCE)
    assert (model.overall["iteration"][0], federation.info.settings.uploads_per_client) == (ROUNDS, 50)
    assert played.tally.report()["not_counted"] == {}
    assert (found.versions, found.messages, found.abandoned) == (ROUNDS, ROUNDS * PEOPLE, 0)


@pytest.mark.slow
def test_sums_with_noise_are_recomputed_and_quotas_hold(tmp_path, helper):
    with serving(tmp_path, helper, "pmf", "--sigma", "0.5", "--clip", "8", "--uploads-per-client", "2") as address:
        rehearsal = Rehearsal(plan=Plan(address=address), data=people(), seed=3, specs={})
        played = rehearse(rehearsal)  # ends because no one has a message left
        found = verify(Servers(address, helper.origin))
    assert (found.versions, found.messages, played.tally.interactions) == (2, 2 * PEOPLE, 2 * PEOPLE)


@pytest.mark.slow
def test_sum_beyond_the_scale_is_rejected(tmp_path, helper):
    far = ("--sigma", "0", "--uploads-per-client", "2", "--first-prediction", "mean", "--learning-rate", "1000")
    with serving(tmp_path, helper, "pmf", *far) as address:
        played = rehearse(Rehearsal(plan=Plan(address=address), data=people(), seed=3, specs={}))
        result = verify(Servers(address, helper.origin))
        _, model = fetched(address)
        status = httpx.get(f"{address}/api/v1/status").json()
    assert played.tally.interactions == 2 * PEOPLE
    assert (result.versions, result.abandoned, model.version) == (0, 2, 0)
    assert status["aggregates_rejected"] == 2


@pytest.mark.parametrize(
    ("sigma", "guarantee", "is_warned"), [(0.0, "none: sums carry no noise", False), (2.0, "epsilon", True)]
)
def test_operator_sees_the_guarantee(sqlite_store, helper, capsys, sigma, guarantee, is_warned):
    sums = SecaggSpec(helper=helper.origin, sigma=sigma, least_cohort=20)
    open_store(sqlite_store, FederationSpec(data=people, source="two", method="pmf", sums=sums))
    report_guarantee(sqlite_store, None)
    said = capsys.readouterr()
    assert f"guarantee    {guarantee}" in said.out
    assert ("worse than each user's own mean" in said.err) == is_warned


@pytest.mark.parametrize("settings", [{"rho": 2.0}, {"filling": "hybrid"}])
def test_virtual_ratings_are_refused_under_secure_aggregation(sqlite_store, tmp_path, settings):
    away = SecaggSpec(helper="http://127.0.0.1:9")
    spec = FederationSpec(data=people, source="two", method="pmf", accepts_few=True, settings=settings, sums=away)
    with pytest.raises(SettingError, match=next(iter(settings))):
        open_store(sqlite_store, spec)
    assert list(tmp_path.iterdir()) == []
