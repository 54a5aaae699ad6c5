"""Recommendations as different from one another as their owner wishes."""

import json
import subprocess

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.service.web.browsing import serving
from tests.service.web.conftest import PAGE


@pytest.fixture(scope="module")
def varied(node):
    """What the page chooses of items, given their values and vectors, for several wishes."""

    def varied(values, vectors, n, specs):
        best = np.argsort(-values, kind="stable").tolist()
        script = (
            f"import {{ varied }} from '{(PAGE / 'device' / 'owner' / 'variety.js').as_uri()}';"
            f"const values = Float32Array.from({values.tolist()});"
            f"const vectors = Float32Array.from({vectors.ravel().tolist()});"
            f"const chosen = {specs}.map((wish) => varied({best}, values, vectors, {n}, wish));"
            "console.log(JSON.stringify(chosen))"
        )
        done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return varied


def test_without_a_wish_the_best_come_in_their_order_and_with_one_the_tastes_take_turns(varied):
    """Two tastes: the first five items point one way and are a little better, the last five another."""
    values = np.linspace(1, 0.1, 10)
    vectors = np.repeat([[1.0, 0.0], [0.0, 1.0]], 5, axis=0)
    best, some, most = varied(values, vectors, 4, [0, 0.4, 0.7])
    assert best == [0, 1, 2, 3]
    assert some[0] == most[0] == 0, "the best item comes first whatever is wished for"
    assert 5 in some[:2]
    assert most[:2] == [0, 5]
    assert all(len(set(chosen)) == 4 for chosen in (best, some, most))


def test_a_catalogue_that_is_too_small_to_choose_from_is_shown_as_it_is(varied):
    assert varied(np.array([3.0, 1.0]), np.eye(2), 5, [0, 0.7]) == [[0, 1], [0, 1]]


@pytest.mark.slow
def test_a_wish_changes_the_list_at_once_and_is_kept_and_the_federation_has_its_own_word(visit, tmp_path):
    with serving(tmp_path, learnt=True, seen="Walked past", run_by="the city's library") as server:
        visitor = visit(server).open().pick(4)
        page = visitor.page
        expect(page.locator("#about")).to_have_text("Run by the city's library.")
        expect(page.locator("#recommended li").first.get_by_role("button").last).to_have_text("Walked past")
        titles = page.locator("#recommended .title")
        before = titles.all_inner_texts()
        page.get_by_label("Variety").select_option("as different as can be")
        expect(titles.nth(1)).not_to_have_text(before[1])
        expect(titles.first).to_have_text(before[0])
        after = titles.all_inner_texts()
        visitor.open()
        assert titles.all_inner_texts() == after
