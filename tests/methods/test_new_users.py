"""Someone new, and new data: every method that follows a history takes both in."""

import numpy as np
import pytest
from tests.rated_worlds import two_opinions
from tests.worlds import two_tastes

import federank as fr
from federank.errors import DataError, SettingError

PEOPLE = two_tastes()
METHODS = [
    fr.EASE(),
    fr.IALS(factors=8),
    fr.ItemKNN(k=5),
    fr.UserKNN(k=5),
    fr.Frugal(min_support=1, factors=8),
    fr.BPR(epochs=30),
]


@pytest.mark.parametrize("model", METHODS, ids=lambda model: model.name)
def test_a_new_user_gets_what_their_like_get(model):
    model.fit(PEOPLE)
    own = PEOPLE.item_ids[PEOPLE.profiles.of(0)[:4]].tolist()
    person = fr.enrol(model, history=own)
    found = [entry.item for entry in person.recommend(3)]
    assert {item % 2 for item in found} == {own[0] % 2}
    assert not set(found) & set(own)


def test_the_history_of_someone_known_gets_the_list_that_they_have():
    for model in (fr.EASE(), fr.ItemKNN(k=5), fr.IALS(factors=8)):
        model.fit(PEOPLE)
        person = fr.enrol(model, history=PEOPLE.item_ids[PEOPLE.profiles.of(3)].tolist())
        assert [entry.item for entry in person.recommend(5)] == [
            entry.item for entry in model.recommend(PEOPLE.user_ids[3], 5)
        ]


def test_a_method_without_histories_takes_no_user_in():
    with pytest.raises(SettingError):
        fr.enrol(fr.Random().fit(PEOPLE), history=[1])


@pytest.mark.parametrize("kind", [fr.BPR, fr.IALS, fr.MostPopular])
def test_new_data_are_learnt_with_what_was_known(kind):
    half = PEOPLE.n_users // 2
    first = PEOPLE.take(PEOPLE.users < half).compact()
    new = PEOPLE.take(PEOPLE.users >= half).compact()
    model = kind().fit(first).fit_more(new)
    assert model.training.fingerprint == PEOPLE.compact().fingerprint
    assert model.recommend(int(PEOPLE.user_ids[-1]), 3)


def test_a_warm_start_begins_where_the_model_was():
    def started(model):
        before = []

        def note(number):
            if number == 1:
                before.append(model.item_vectors.copy())

        return before, fr.TrainingOptions(after_epoch=note)

    model = fr.BPR(epochs=20, learning_rate=0.001).fit(PEOPLE)
    known = model.item_vectors.copy()
    before, training_options = started(model)
    model.fit_more([(0, 1)], training_options=training_options)
    assert np.abs(before[0] - known).max() < 0.01


def test_of_a_pair_that_is_in_both_the_new_row_counts():
    known = fr.load([(1, 1, 3.0), (1, 2, 4.0), (2, 1, 2.0)])
    model = fr.Biases().fit(known).fit_more([(1, 2, 1.0), (3, 3, 5.0)])
    assert model.training.ratings.tolist() == [3.0, 1.0, 2.0, 5.0]
    assert model.user_ids.tolist() == [1, 2, 3]
    with pytest.raises(DataError):
        model.fit_more([(1, 2)])


@pytest.mark.parametrize("kind", [fr.PMF, fr.SVDPlusPlus])
def test_a_new_user_is_known_by_their_ratings(kind):
    data = two_opinions()
    model = kind(factors=4, iterations=60, learning_rate=0.1, federated=False).fit(data)
    own = {int(data.item_ids[i]): float(r) for i, r in zip(data.items[:12], data.ratings[:12], strict=True)}
    person = fr.enrol(model, history=own)
    assert np.abs(person.score(list(own)) - list(own.values())).mean() < 1
    with pytest.raises(SettingError):
        fr.enrol(model, history=[1])
    with pytest.raises(SettingError, match=r"1.*5"):
        fr.enrol(model, history={0: 9.0})
