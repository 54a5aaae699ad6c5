"""A federation that is begun again at the same address, as every `federank demo --serve` does: a browser that has been
there before keeps what is its owner's, drops what was the old federation's, and says so."""

import shutil

import numpy as np
import pytest
from playwright.sync_api import expect
from safetensors.numpy import load
from tests.service.web.browsing import PATIENCE, serving
from tests.service.web.test_faults import rest

pytestmark = pytest.mark.slow


def the_model(stored):
    """The model that a browser keeps, which lies beside the catalogue."""
    (model,) = (kept for kept in stored["model"] if "version" in kept)
    return model


def assert_same_model(kept, server):
    """What the browser keeps is the server's model, row by row, and nothing of another one."""
    told = server.get("model")
    arrays = load(told.content)
    assert kept["version"] == int(told.headers["X-Model-Version"])
    assert np.array_equal(np.array(kept["vectors"], np.float32), arrays["vectors"].ravel())
    assert np.array_equal(np.array(kept["biases"], np.float32), arrays["biases"])


def test_visitor_keeps_the_list_and_is_asked_to_join(server, visit, words, tmp_path_factory):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    rest(visitor)
    before = visitor.stored()
    server.stop()
    with serving(tmp_path_factory.mktemp("again"), port=server.options["port"], settings={"seed": 9}) as again:
        visitor.open()
        expect(visitor.page.locator("#trouble")).to_contain_text(words["en"]["notice.restarted"], timeout=PATIENCE)
        after = visitor.stored()
        assert [after[store] for store in ("history", "ledger")] == [before[store] for store in ("history", "ledger")]
        for now, then in zip(after["rounds"], before["rounds"], strict=True):
            was = then["outcome"]
            assert now == then | {"outcome": "unknown" if was == "received" else was}, "no one can be asked any more"
        assert after["records"]["identity"]["token"] is None
        assert after["records"]["taking"] is False
        assert_same_model(the_model(after), again)
        assert again.get("status").json()["clients"] == 0
        visitor.take_part().wait_for_rounds(visitor.received(after) + 1)
        rest(visitor)
        assert again.get("status").json()["version"] >= 1
    server.start()


def test_models_of_two_federations_are_not_mixed(server, visit, words, tmp_path_factory):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    rest(visitor)
    version = the_model(visitor.stored())["version"]
    server.stop()
    with serving(tmp_path_factory.mktemp("again"), port=server.options["port"], settings={"seed": 9}) as again:
        other = visit(again).open().pick(3).take_part().wait_for_rounds(version + 2)
        rest(other)
        assert again.get("status").json()["version"] > version
        visitor.open()
        expect(visitor.page.locator("#trouble")).to_contain_text(words["en"]["notice.restarted"], timeout=PATIENCE)
        assert_same_model(the_model(visitor.stored()), again)
    server.start()


def test_open_page_notices_a_restart(server, visit, words, tmp_path_factory):
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(1)
    server.stop()
    with serving(tmp_path_factory.mktemp("again"), port=server.options["port"], settings={"seed": 9}) as again:
        expect(visitor.page.locator("#trouble")).to_contain_text(words["en"]["notice.restarted"], timeout=PATIENCE)
        visitor.go("leaves").page.locator('#leaves [data-key="pause"].yes').wait_for()
        kept = visitor.stored()
        assert kept["pending"] == []
        assert len(kept["history"]) == 5
        assert_same_model(the_model(kept), again)
        assert again.get("status").json()["clients"] == 0
    server.start()


def test_restored_backup_is_reported(server, visit, tmp_path):
    server.stop()
    shutil.copytree(tmp_path, tmp_path / "copy")
    server.start()
    visitor = visit(server).open().pick(5).take_part().wait_for_rounds(2)
    rest(visitor)
    before = visitor.stored()
    server.stop()
    for file in tmp_path.glob("federation.db*"):
        file.unlink()
    for file in (tmp_path / "copy").iterdir():
        shutil.copy(file, tmp_path)
    server.start()
    visitor.open()
    expect(visitor.page.locator("#trouble")).to_contain_text("backup", timeout=PATIENCE)
    assert visitor.stored()["model"] == before["model"]
    assert len(visitor.stored()["history"]) == 5
