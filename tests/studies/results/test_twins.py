import pytest

from federank.errors import SettingError
from federank.studies.results import Line
from federank.studies.rows import compared, gather

TWINS = {"PMF, federated": "PMF, unfederated"}


def rows():
    errors = {"PMF, unfederated": (0.74, 0.76), "PMF, federated": (0.75, 0.77)}
    return gather(
        Line(id=f"{group} {fold}", group=group, data="d", task="test", status="done", fold=fold, metrics={"mae": error})
        for group, of_folds in errors.items()
        for fold, error in enumerate(of_folds)
    )


def test_md_and_stdr_stand_beside_the_federated_row():
    asked = ["mae", "md:mae", "stdr:mae"]
    unfederated, federated = compared(rows(), asked, None, TWINS)
    assert federated.mean("md:mae") == pytest.approx(0.01 / 0.75 * 100)
    assert federated.mean("stdr:mae") == pytest.approx(0.02 / 0.75 * 100)
    assert federated.mean("mae") == pytest.approx(0.76)
    assert unfederated.mean("md:mae") is None


def test_md_needs_to_know_what_is_compared():
    with pytest.raises(SettingError):
        compared(rows(), ["md:mae"], None, {})
