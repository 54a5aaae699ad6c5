"""A public function that is handed something of the wrong type says which argument it was."""

import pytest

import federank as fr
from federank.errors import FedeRankError

DATA = fr.load([(user, item) for user in range(12) for item in range(user, user + 10)])
SPLIT = fr.split_random(DATA, test=0.3, validation=0.2)
POPULAR = fr.MostPopular().fit(SPLIT.train)
FPL = fr.FPL(epochs=1, factors=2).fit(SPLIT.train)
JUDGED = fr.evaluate(POPULAR, SPLIT, at=2)

CASES = {
    "split": [
        lambda: fr.evaluate(3, 4),
        lambda: fr.evaluate(POPULAR, 4),
        lambda: fr.evaluate(POPULAR, DATA),
        lambda: fr.search("fpl", DATA, pi=[0.5, 1.0]),
    ],
    "MostPopular": [
        lambda: fr.evaluate(fr.MostPopular(), SPLIT, at=2),
        lambda: fr.evaluate(fr.MostPopular, SPLIT, at=2),
    ],
    "at": [
        lambda: fr.evaluate(POPULAR, SPLIT, at="ten"),
        lambda: fr.evaluate(POPULAR, SPLIT, at=2.5),
        lambda: fr.evaluate(POPULAR, SPLIT, at=None),
        lambda: fr.evaluate(POPULAR, SPLIT, at=[1, "ten"]),
    ],
    "metrics": [
        lambda: fr.evaluate(POPULAR, SPLIT, at=2, metrics=3),
        lambda: fr.compare(JUDGED, JUDGED, metrics=3),
    ],
    "int": [lambda: fr.compare(3, 4), lambda: fr.compare({"one": JUDGED, "two": 3}, metrics=["precision@2"])],
    "FPL": [lambda: fr.audit_model(fr.FPL())],
    "people": [
        lambda: fr.audit_model(FPL, people="all"),
        lambda: fr.audit_training(fr.FPL(epochs=1), SPLIT.train, people=2.5),
        lambda: fr.city("large"),
    ],
    "data": [
        lambda: fr.split_random(3),
        lambda: fr.split_random("city"),
        lambda: fr.split_temporal(SPLIT),
        lambda: fr.split_temporal_global(None),
        lambda: fr.split_leave_last_out([(1, 2)]),
        lambda: fr.split_folds(3),
        lambda: fr.statistics(3),
    ],
    "method": [lambda: fr.fit(3, SPLIT), lambda: fr.fit(POPULAR, SPLIT), lambda: fr.search(int, SPLIT, pi=[1])],
    "users": [lambda: POPULAR.recommend(3.5), lambda: POPULAR.recommend(len)],
    "user": [lambda: POPULAR.recommend([[1]]), lambda: POPULAR.recommend([None])],
    "items": [lambda: POPULAR.score(0, 3)],
    "item": [lambda: FPL.similar(None), lambda: FPL.score(0, [{}])],
    "history": [lambda: fr.enrol(FPL, 4), lambda: fr.enrol(FPL, None)],
    "model": [lambda: fr.prediction_errors(3, DATA), lambda: fr.prediction_errors(POPULAR, DATA)],
    "test": [lambda: fr.prediction_errors(fr.Biases(), 4)],
    "suffix": [lambda: fr.register_reader(print, 4)],
}


@pytest.mark.parametrize(
    ("named", "call"),
    [
        pytest.param(name, call, id=f"{name}-{number}")
        for name, calls in CASES.items()
        for number, call in enumerate(calls)
    ],
)
def test_the_error_names_what_was_wrong(named, call):
    with pytest.raises(FedeRankError, match=rf"\b{named}\b"):
        call()
