"""Lists among some items or without some; similar items; choices by people's ids."""

from itertools import pairwise

import numpy as np
import pytest
from tests.worlds import two_tastes

import federank as fr

MODELS = [fr.ItemKNN(k=5), fr.IALS(factors=4, regulariser=1.0), fr.EASE(regulariser=1.0), fr.MostPopular()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_only_some_items_may_be_recommended(model):
    model.fit(two_tastes())
    usual = [entry.item for entry in model.recommend(0, 6)]
    assert [entry.item for entry in model.recommend(0, 6, without=usual[:2])][:4] == usual[2:]
    among = model.recommend(0, 6, among=[*usual[3:5], int(model.training.item_ids[model.seen.of(0)[0]])])
    assert [entry.item for entry in among] == usual[3:5]
    assert [entry.item for entry in model.recommend(0, 6, among=usual[:3], without=usual[:1])] == usual[1:3]
    all_users = model.recommend(n=4, among=usual)
    assert set(all_users.item_ids[all_users.items[all_users.items >= 0]].tolist()) <= set(usual)


def test_unknown_items_and_bare_text_are_refused():
    model = fr.MostPopular().fit(two_tastes())
    with pytest.raises(fr.FedeRankError, match="999"):
        model.recommend(0, among=[999])
    with pytest.raises(fr.FedeRankError):
        model.recommend(0, without="12")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_similar_items_are_of_the_same_taste(model):
    model.fit(two_tastes())
    near = model.similar(4, 3)
    assert len(near) == 3
    assert 4 not in [entry.item for entry in near]
    assert np.mean([entry.item % 2 == 0 for entry in near]) > 0.6
    assert all(one.score >= other.score for one, other in pairwise(near))


def test_an_item_may_be_named_by_its_title():
    data = fr.load("city").keep_users(min_interactions=20)
    model = fr.MostPopular().fit(data)
    title = str(data.titles[5])
    assert model.similar(title, 3) == model.similar(data.item_ids[5].item(), 3)
    with pytest.raises(fr.FedeRankError, match="'Nowhere'"):
        model.similar("Nowhere")


def test_users_choose_by_their_id():
    data = two_tastes()
    some = fr.FPL(factors=2, epochs=1, pi=0.5).fit(
        data, policies={3: 0.1, 5: fr.Policy(sharing="fixed-subset", basis="shared", pi=0.9)}
    )
    assert some.pi[[2, 3, 5]].tolist() == [0.5, 0.1, 0.9]
    all_users = dict.fromkeys(data.user_ids.tolist(), 0.25)
    assert fr.FPL(factors=2, epochs=1, pi=all_users).fit(data).pi.tolist() == [0.25] * data.n_users
    with pytest.raises(fr.FedeRankError, match="1"):
        fr.FPL(factors=2, epochs=1, pi={user: 0.25 for user in all_users if user != 3}).fit(data)
    with pytest.raises(fr.FedeRankError, match="999"):
        fr.FPL(factors=2, epochs=1).fit(data, policies={999: 0.1})
    with pytest.raises(fr.FedeRankError, match=r"0.*1"):
        fr.FPL(factors=2, epochs=1).fit(data, policies={3: "all"})


@pytest.mark.parametrize("kind", [fr.UserKNN, fr.ItemKNN])
def test_items_that_nothing_speaks_for_fill_no_list(kind):
    rows = [(user, item) for user in range(4) for item in range(user % 2 * 5, user % 2 * 5 + 4 + user // 2)]
    split = fr.split_given([*rows, (9, 99), (8, 88)], [(0, 4), (9, 1), (8, 1)])
    model = kind(k=3).fit(split.train)
    assert [entry.item for entry in model.recommend(0, 10)] == [4]
    assert model.recommend(9, 10) == []
    found = fr.evaluate(model, split, at=3)
    assert found.means["user_coverage"] == pytest.approx(1 / 3)
    assert {note.rpartition(": ")[2] for note in found.notes} >= {"2 of 3.", "1."}
    assert fr.evaluate(model, split, at=3, over="covered").means["recall@3"] == 1
    filled = kind(k=3, fill=True).fit(split.train)
    assert len(filled.recommend(9, 10)) == 10
    assert filled.recommend(0, 10)[0].item == 4
