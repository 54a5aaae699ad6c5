"""What is published is what clients can read: the server's check is the code that clients use."""

import numpy as np
import pytest

from federank.data.interactions import Interactions
from federank.errors import BadMessage
from federank.service.client.methods import ClientMethod
from federank.service.server.config import FederationConfig, why_unreadable
from federank.service.server.methods import SERVER_METHODS
from federank.service.server.model_versions import first_model

ITEMS = 30


def first(method):
    """A method's settings as served by default, and the first model of a federation."""
    served, rng = SERVER_METHODS[method], np.random.default_rng(0)
    data = Interactions.from_columns(np.arange(300) % 10, rng.integers(0, ITEMS, 300), rng.integers(1, 6, 300))
    small = {"min_support": 1} if method == "frugal" else {}  # the catalogue has few items
    settings = served.settle(served.kind(**small), data, None)
    return served, settings, first_model(served.first_content(settings, data, None))


def read(method, served, settings, model):
    """The rows that a client reads from what the server encodes."""
    content = served.encode(settings, model, model.rows_since(None), 0)
    announced = served.kind.announced(settings.public_settings(), ITEMS, secure=False)
    return ClientMethod(announced, secure=False).read_rows(content)


def changed(model, row, value):
    vectors = model.vectors.copy()
    vectors[row] = value
    tables = {**model.content.tables, "vectors": vectors}
    return model._replace(content=model.content._replace(tables=tables))


@pytest.mark.parametrize("method", SERVER_METHODS)
def test_the_first_model_of_every_method_can_be_read(method):
    served, settings, model = first(method)
    assert why_unreadable(served, settings, model, model.rows_since(None), 0) is None
    rows = read(method, served, settings, model)
    np.testing.assert_allclose(rows.model.vectors, model.vectors, atol=0.01 * np.abs(model.vectors).max())


@pytest.mark.parametrize("method", SERVER_METHODS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_server_and_client_refuse_the_same_model(method, value):
    served, settings, model = first(method)
    wrong = changed(model, 3, value)
    with np.errstate(invalid="ignore", over="ignore"):
        assert why_unreadable(served, settings, wrong, wrong.rows_since(None), 0) is not None
        with pytest.raises(BadMessage):
            read(method, served, settings, wrong)


@pytest.mark.parametrize("method", SERVER_METHODS)
@pytest.mark.parametrize("value", [128 * 2.0**-149, -1e-40, 1e-31, 1e37])
def test_extreme_rows_can_be_read(method, value):
    served, settings, model = first(method)
    extreme = changed(model, 3, np.float32(value))
    assert why_unreadable(served, settings, extreme, extreme.rows_since(None), 0) is None


@pytest.mark.parametrize("method", SERVER_METHODS)
def test_a_model_that_clients_refuse_is_not_published(method):
    served, settings, model = first(method)
    config = FederationConfig("", served, settings, None, ITEMS, None, b"", b"", None, None)
    assert config.why_not_publish(model, model.followed_by(changed(model, 3, 0.1).content), 1) is None
    with np.errstate(invalid="ignore"):
        assert config.why_not_publish(model, model.followed_by(changed(model, 3, np.nan).content), 1) is not None
