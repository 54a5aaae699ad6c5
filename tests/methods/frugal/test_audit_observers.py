"""Observers of few messages: one of two servers, someone outside, both together; and what noise allows them."""

from functools import cache

import pytest

import federank as fr
from federank.errors import SettingError
from federank.methods.fpl.recommender import FPL
from federank.methods.frugal.audit import most_order
from federank.methods.frugal.recommender import Frugal

CITY = fr.city(300, 60, 6_000, seed=3)


@cache
def noisy():
    return Frugal(min_support=1, epsilon=4.0, messages=3, factors=8).fit(CITY)


@cache
def plain():
    return Frugal(min_support=1, messages=3, factors=8).fit(CITY)


def audited(model, sees):
    findings, about = fr.audit_model(model, sees=sees)
    return findings[-1], about


@pytest.mark.parametrize("sees", ["both", "plain"])
def test_two_servers_that_collude_read_everything_that_messages_were_made_from(sees):
    found, about = audited(noisy(), sees)
    assert found.attacks["reading"]["recall"] == found.attacks["reading"]["precision"] == 1
    assert "epsilon" not in about


def test_one_server_has_the_guarantee_and_an_outsider_a_better_one():
    leader, helper, outsider = (audited(noisy(), sees)[1] for sees in ("leader", "helper", "outsider"))
    assert leader["epsilon"] == helper["epsilon"] == pytest.approx(noisy().report["epsilon"])
    assert outsider["epsilon"] < leader["epsilon"]
    assert 0.5 < outsider["order_allowed"] < leader["order_allowed"] < 1
    assert most_order(0.0) == 0.5


@pytest.mark.parametrize("sees", ["sums", "leader", "helper", "outsider"])
@pytest.mark.parametrize("model", [noisy, plain], ids=["noise", "no noise"])
def test_sums_over_all_users_tell_no_more_than_popularity(sees, model):
    found, about = audited(model(), sees)
    assert found.best["gain_high"] <= 0.02
    assert found.best["gain_low"] <= found.best["gain"] <= found.best["gain_high"]
    assert ("epsilon" in about) == (model is noisy and sees != "sums")


def test_noise_blurs_what_an_outsider_sees_of_popularity_more_than_what_a_server_sees():
    clear, leader, outsider = (
        audited(Frugal(min_support=1, sigma=6.0, messages=3, factors=8).fit(CITY), sees)[0].attacks["popularity"]["auc"]
        for sees in ("sums", "leader", "outsider")
    )
    assert clear > leader
    assert clear > outsider


def test_observers_of_sums_are_refused_for_methods_that_have_no_two_servers():
    model = FPL(epochs=1).fit(CITY)
    with pytest.raises(SettingError, match="leader"):
        fr.audit_model(model, sees="leader")
