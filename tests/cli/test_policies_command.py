"""`federank train fpl` where people choose what leaves: from flags, from a file, with noise."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.worlds import shop_of, two_tastes

from federank.cli import federank
from federank.errors import FedeRankError
from federank.methods.model_folder import load_model
from federank.privacy.policy import Policy

pytestmark = pytest.mark.slow

QUICK = ("--factors", "4", "--epochs", "2", "--quiet", "--split", "none", "--no-count")


@pytest.fixture
def shop(tmp_path):
    return shop_of(tmp_path, two_tastes())


def train(shop, *words):
    out = shop.parent / "model"
    result = CliRunner().invoke(federank, ["train", "fpl", "--data", str(shop), "--out", str(out), *QUICK, *words])
    if isinstance(result.exception, FedeRankError):
        raise result.exception
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout, load_model(out)


def test_flags_give_every_user_a_policy(shop):
    words = ("--sharing", "randomized-response", "--pi", "0.5", "--item-epsilon", "2")
    told, model = train(shop, *words)
    assert {model.choices.of(user) for user in range(20)} == {
        Policy(sharing="randomized-response", pi=0.5, item_epsilon=2.0, basis="shared")
    }
    assert "160" in told
    assert model.home_vectors is not None


def test_a_file_gives_each_their_own(shop):
    people = shop.parent / "people.toml"
    people.write_text('[default]\nsharing = "fixed-subset"\n[people.3]\npi = 0.0\nbasis = "shared"\n')
    _told, model = train(shop, "--pi", "0.5", "--policies", str(people))
    assert model.choices.of(3) == Policy(sharing="fixed-subset", pi=0.0, basis="shared")
    assert model.choices.of(4) == Policy(sharing="fixed-subset", pi=0.5, basis="shared")
    result = CliRunner().invoke(federank, ["recommend", str(shop.parent / "model"), "--user", "3"])
    assert result.exit_code == 0


def test_the_report_states_the_figure_of_the_noise_or_why_there_is_none(shop):
    told, model = train(shop, "--clip", "1", "--noise", "30", "--clients-per-round", "all")
    assert f"epsilon {model.report['privacy']['epsilon']:.3g} at delta 1e-06" in told
    told, _ = train(shop, "--clip", "1", "--noise", "30", "--noise-on", "sums", "--dropout", "0.1", "--overwrite")
    assert "epsilon " not in told
    told, _ = train(shop, "--clip", "1", "--noise", "30", "--overwrite", "--json")
    assert np.isfinite(json.loads(told)["privacy"]["epsilon"])
