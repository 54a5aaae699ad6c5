"""Recipes: the papers' configurations, worked out for a population, and settings that make no sense."""

import numpy as np
import pytest
from tests.worlds import federation, two_tastes

import federank as fr
from federank.errors import SettingError
from federank.methods.fpl.settings import PRESETS, FedeRankSettings, FPLSettings, recipe_for

SIZES = np.array([3, 5, 10, 2])


def worked_out(sizes=SIZES, n_items=50, pi=None, **settings):
    return recipe_for(FPLSettings(**settings), sizes, n_items, np.ones(len(sizes)) if pi is None else pi)


@pytest.mark.parametrize(
    ("preset", "clients", "triples", "rounds"),
    [("sfpl", 1, 1, 20), ("sfpl+", 1, 5, 20), ("pfpl", 4, 1, 5), ("pfpl+", 4, 5, 5)],
)
def test_presets_are_the_papers_configurations(preset, clients, triples, rounds):
    recipe = worked_out(**PRESETS[preset])
    assert (recipe.clients_per_round, recipe.rounds_per_epoch) == (clients, rounds)
    assert recipe.triples.tolist() == [triples] * 4


def test_with_few_uploads_every_client_sends_one_per_epoch_and_learns_its_taste():
    data = two_tastes()
    model = fr.FPL(**PRESETS["few"] | {"factors": 4}).fit(data)
    assert model.communication()["uploads"] == 30 * data.n_users
    assert all(int(found.item) % 2 == user % 2 for user in range(20) for found in model.recommend(user, 4))


@pytest.mark.parametrize("triples", [1, "mean"])
def test_federank_is_a_preset_and_a_method(triples):
    as_printed = worked_out(**PRESETS["federank"], triples=triples)
    assert as_printed.summed
    assert as_printed.mask_per_row
    assert vars(FedeRankSettings(triples=triples)) == vars(FPLSettings(**PRESETS["federank"], triples=triples))


@pytest.mark.parametrize(("wanted", "clients"), [(1, 1), (3, 3), (0.5, 2), (0.01, 1), ("all", 4)])
def test_clients_can_be_a_number_a_share_or_all(wanted, clients):
    assert worked_out(clients_per_round=wanted).clients_per_round == clients


def test_an_epoch_has_as_many_interactions_with_the_server_as_there_are_in_training():
    for clients in (1, 2, 3, "all"):
        recipe = worked_out(clients_per_round=clients)
        assert recipe.clients_per_round * recipe.rounds_per_epoch == pytest.approx(20, abs=recipe.clients_per_round)


def test_an_epoch_is_as_long_as_complete_histories_are_though_little_of_them_is_shared():
    # What people take part with must not change how often they are asked, nor tell how much they hold back.
    data = two_tastes()
    shares_little = {"pi": 0.25, "sharing": "fixed-subset", "basis": "shared", "clients_per_round": 4}
    recipe = federation(data, **shares_little).recipe
    assert len(recipe.shared_profile.items) < len(data) / 2
    assert recipe.rounds_per_epoch == len(data) // 4
    assert federation(data, **shares_little | {"triples": "mean"}).recipe.triples.tolist() == [8] * data.n_users


def test_every_user_can_train_on_as_many_pairs_as_their_history_has():
    assert worked_out(triples="profile").triples.tolist() == SIZES.tolist()


def test_regularisers_are_multiples_of_the_learning_rate():
    recipe = worked_out(learning_rate=0.2)
    assert recipe.user_regulariser == np.float32(0.01)
    assert recipe.positive_regulariser == np.float32(0.01)
    assert recipe.negative_regulariser == np.float32(0.001)


def test_no_user_without_a_pair_to_draw_takes_part():
    recipe = worked_out(sizes=np.array([0, 4, 2]), n_items=4, clients_per_round="all")
    assert recipe.participants.tolist() == [2]
    with pytest.raises(SettingError):
        worked_out(sizes=np.array([4, 0]), n_items=4)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("pi", -0.1),
        ("pi", 1.1),
        ("pi", float("nan")),
        ("triples", 0),
        ("triples", "many"),
        ("triples", 1.5),
        ("factors", 0),
        ("factors", 2.5),
        ("learning_rate", 0),
        ("learning_rate", -1.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("clients_per_round", 0),
        ("clients_per_round", "few"),
        ("epochs", 0),
        ("seed", -1),
        ("seed", 2**32),
        ("order", "sideways"),
        ("mask", "never"),
        ("initial_scale", 0),
        ("initial_biases", "one"),
        ("user_regulariser", -1.0),
        ("online", 1.5),
        ("dropout", -0.5),
        ("server", "clever"),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("weight_decay", -1.0),
        ("weight_decay", float("nan")),
        ("triples", "0x profile"),
        ("triples", "3xprofile"),
    ],
)
def test_a_setting_out_of_its_range_is_named_with_what_it_should_be(setting, value):
    with pytest.raises(SettingError, match=f"^{setting} is "):
        FPLSettings(**{setting: value})


def test_more_clients_than_users_are_refused():
    with pytest.raises(SettingError, match="4"):
        worked_out(clients_per_round=5)
    with pytest.raises(SettingError, match="1"):
        worked_out(clients_per_round=2.5)


def test_every_user_needs_a_pi_of_their_own():
    with pytest.raises(SettingError, match=r"4.*3"):
        worked_out(pi=np.ones(3))
    with pytest.raises(SettingError, match="from 0 to 1"):
        worked_out(pi=np.array([0, 0.5, 1, 2]))


def test_pairs_may_be_several_times_ones_own_profile():
    sizes = np.array([5, 3, 10, 2])
    assert worked_out(sizes=sizes, n_items=30, triples="3x profile").triples.tolist() == [15, 9, 30, 6]


def test_what_adam_remembers_is_refused_for_the_plain_step():
    with pytest.raises(SettingError):
        FPLSettings(beta1=0.5)
