"""Sampled negatives: a perfect and a hopeless model, chance, and what is refused."""

import numpy as np
import pytest

import federank as fr
from federank.data.interactions import Interactions
from federank.errors import BadSplit, SettingError
from federank.evaluation.lists import sampled_means
from federank.methods.baselines.popular import MostPopular, Random


def sampled(model, split, *, negatives=100, at=10, seed=1):
    means = sampled_means(model, split, [at], negatives=negatives, seed=seed)
    return {name: float(values.mean()) for name, values in means.items()}


def split_of_strangers(users=60, items=120, seed=0):
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(items, 12, replace=False) for _ in range(users)]
    data = Interactions.from_columns(
        np.repeat(np.arange(users), 12), np.concatenate(chosen), times=np.tile(np.arange(12), users)
    )
    return fr.split_temporal(data, test=0.25)


def test_items_at_random_hit_as_often_as_chance_has_it():
    split = split_of_strangers(users=300)
    found = sampled(Random().fit(split.train), split, negatives=19, at=5)
    assert found["sampled_hit_rate@5"] == pytest.approx(5 / 20, abs=0.05)


def test_an_item_that_beats_all_others_is_found_and_one_that_loses_every_tie_comes_last():
    # Ten people have item 50 and one thing each of their own; person 10 has item 60 only.
    train = [(person, person) for person in range(10)] + [(person, 50) for person in range(10)] + [(10, 60)]
    test = [(10, 50), (0, 60)]
    users, items = np.array(train + test).T
    whole = Interactions.from_columns(users, items)
    held_out = ((users[:, None] == [10, 0]) & (items[:, None] == [50, 60])).any(axis=1)[np.lexsort((items, users))]
    split = fr.split_given(whole.take(~held_out), whole.take(held_out))
    model = MostPopular().fit(split.train)

    def hit_rate(at):
        return sampled(model, split, negatives=9, at=at)[f"sampled_hit_rate@{at}"]

    # 50 is the most popular. 60 ties with nine other things of one person, and has the largest number.
    assert hit_rate(1) == 0.5
    assert hit_rate(9) == 0.5
    assert hit_rate(10) == 1

    # Person 0 has two of the twelve items in training and one in test: what is in test is never drawn.
    with pytest.raises(SettingError, match=r"0.*9.*10"):
        sampled(model, split, negatives=10)


def test_the_same_seed_draws_the_same_negatives():
    split = split_of_strangers()
    model = MostPopular().fit(split.train)
    once, again, other = (sampled(model, split, negatives=10, seed=s) for s in (1, 1, 2))
    assert once == again != other


def test_none_at_all_are_refused():
    split = split_of_strangers()
    with pytest.raises(SettingError, match="at least 1"):
        sampled(Random().fit(split.train), split, negatives=0)


def test_a_model_that_learnt_the_test_is_refused():
    split = split_of_strangers()
    with pytest.raises(BadSplit, match="proves nothing"):
        sampled(Random().fit(split.test), split)


def test_evaluate_tells_of_sampled_items_where_it_is_asked_and_nowhere_else():
    split = split_of_strangers()
    model = MostPopular().fit(split.train)
    assert not [name for name in fr.evaluate(model, split, at=5).means if "sampled" in name]
    one = fr.evaluate(model, split, at=5, negatives=20)
    assert one.means["sampled_ndcg@5"] == pytest.approx(one.per_user["sampled_ndcg@5"].mean())
    assert any(" 20 " in note for note in one.notes)
    # Everyone has as many test items, so the mean over people is the mean over items.
    alone = sampled(model, split, negatives=20, at=5)
    assert one.means["sampled_hit_rate@5"] == pytest.approx(alone["sampled_hit_rate@5"])
    named = fr.evaluate(model, split, at=5, metrics=["sampled_mrr"]).means
    assert {name for name in named if "@" in name} == {"sampled_mrr@5"}


def test_lists_alone_cannot_be_ranked_among_sampled_items():
    split = split_of_strangers()
    lists = MostPopular().fit(split.train).recommend(n=5)
    with pytest.raises(SettingError, match="sampled_hit_rate"):
        fr.evaluate(lists, split, at=5, negatives=20)
