"""Who allows what, read from a file: defaults, groups, single people, and mistakes told in a sentence."""

import numpy as np
import pytest

from federank.data.interactions import Interactions
from federank.errors import BadFile
from federank.methods.sharing import read_choices
from federank.privacy.policy import Policy

SETTINGS = {"sharing": "all", "item_epsilon": None, "basis": "default", "budget": None}
GENRES = {0: ["comedy"], 1: ["horror"], 2: ["horror", "comedy"], 3: ["drama"], 4: []}
PAIRS = [(user, item) for user in range(100) for item in range(5) if (user + item) % 3]
DATA = Interactions.from_columns([u for u, _ in PAIRS], [i for _, i in PAIRS], categories=GENRES)


def read(tmp_path, content, seed=1, pi=0.7, data=DATA, **settings):
    path = tmp_path / "people.toml"
    path.write_text(content)
    return read_choices(path, SETTINGS | settings, np.full(data.n_users, pi), data, seed)


def test_an_empty_file_leaves_every_user_with_the_settings(tmp_path):
    choices, groups = read(tmp_path, "")
    assert {choices.of(user) for user in range(100)} == {Policy(sharing="all", pi=0.7, basis="history")}
    assert groups == {}


def test_groups_have_the_shares_they_ask_for_and_no_user_is_in_two(tmp_path):
    content = """
        [default]
        sharing = "fixed-subset"
        pi = 0.3
        [groups.closed]
        share = 0.3
        pi = 0.0
        basis = "shared"
        [groups.randomized-response]
        share = 0.455
        sharing = "randomized-response"
        item_epsilon = 2
    """
    choices, groups = read(tmp_path, content)
    assert {name: len(people) for name, people in groups.items()} == {"closed": 30, "randomized-response": 46}
    assert len(np.unique(np.concatenate(list(groups.values())))) == 76
    for user in range(100):
        if user in groups["closed"]:
            wanted = Policy(sharing="fixed-subset", pi=0.0, basis="shared")
        elif user in groups["randomized-response"]:
            wanted = Policy(sharing="randomized-response", pi=0.3, item_epsilon=2, basis="shared")
        else:
            wanted = Policy(sharing="fixed-subset", pi=0.3, basis="shared")
        assert choices.of(user) == wanted
    again, other = (read(tmp_path, content, seed=seed)[1]["closed"] for seed in (1, 2))
    np.testing.assert_array_equal(again, groups["closed"])
    assert not np.array_equal(other, groups["closed"])


def test_a_user_has_the_last_word(tmp_path):
    content = """
        [groups.everyone]
        share = 1.0
        budget = 9
        never_categories = ["horror"]
        [people."7"]
        pi = 0.25
        never_items = [3, "4"]
        [people.8]
        paused = true
        budget = 1
    """
    choices, _ = read(tmp_path, content)
    horror = frozenset({1, 2})
    common = {"sharing": "all", "basis": "history"}
    assert choices.of(6) == Policy(pi=0.7, budget=9, never_items=horror, **common)
    assert choices.of(7) == Policy(pi=0.25, budget=9, never_items=frozenset({3, 4}) | horror, **common)
    assert choices.of(8) == Policy(pi=0.7, budget=1, paused=True, never_items=horror, **common)


def test_another_way_of_sharing_does_not_inherit_an_epsilon(tmp_path):
    content = '[default]\nsharing = "randomized-response"\nitem_epsilon = 1\n[people.3]\nsharing = "fixed-subset"\n'
    choices, _ = read(tmp_path, content)
    assert choices.of(3) == Policy(sharing="fixed-subset", pi=0.7, basis="shared")
    assert choices.of(4) == Policy(sharing="randomized-response", pi=0.7, item_epsilon=1, basis="shared")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[default\n", "is not a TOML file"),
        ("[defaults]\n", "the file has 'defaults', which is not known. Did you mean 'default'"),
        (
            "[default]\nitem_epsilom = 1\n",
            r"\[default\] has 'item_epsilom', which is not known. Did you mean 'item_epsilon'",
        ),
        ("[groups.shy]\nshared = 0.5\n", r"\[groups.shy\] has 'shared', .* Did you mean 'share'"),
        ("[groups.shy]\npi = 0.5\n", r"\[groups.shy\] needs a share"),
        ("[groups.shy]\nshare = 1.5\n", "above 0 and at most 1, not 1.5"),
        ("[groups.a]\nshare = 0.7\n[groups.b]\nshare = 0.5\n", "add up to 1.2"),
        ("[people.999]\npi = 0.5\n", "names someone who is not there"),
        ("[people.9]\npi = 7\n", r'\[people."9"\]: pi is 7'),
        ('[people.9]\nsharing = "randomized-response"\n', "needs an item_epsilon"),
        ("[people.9]\nnever_items = [77]\n", "never_items names what the training data do not have"),
        ('[people.9]\nnever_categories = ["horor"]\n', "no category is called 'horor'. Did you mean 'horror'"),
        ('[people.9]\nnever_categories = "horror"\n', "are lists"),
        ("[people]\n9 = 0.5\n", "must be tables"),
        ('[people.9]\npaused = "false"\n', "paused is 'false'; true or false is needed"),
    ],
)
def test_a_mistake_in_the_file_is_reported_where_it_is(tmp_path, content, complaint):
    with pytest.raises(BadFile, match=complaint):
        read(tmp_path, content)


def test_a_file_that_is_not_there_and_data_without_categories_are_refused(tmp_path):
    with pytest.raises(BadFile):
        read_choices(tmp_path / "none.toml", SETTINGS, np.ones(100), DATA, 1)
    plain = Interactions.from_columns([0, 1], [0, 1])
    with pytest.raises(BadFile):
        read(tmp_path, '[default]\nnever_categories = ["horror"]\n', data=plain)
