"""The parts of the demo that need no browser and no server; tests/service/web/test_neighbourhood.py has the rest."""

import pytest

from federank.service.demo import CLIENTS, GENERATION_SECONDS, PEOPLE, REQUESTS_PER_SECOND, WORLDS

MESSAGES = 5


@pytest.mark.parametrize("world", WORLDS)
def test_those_who_take_part_later_have_other_lists_of_the_same_catalogue(world):
    draw, draw_others, *_ = WORLDS[world]
    first, later, last = draw(seed=3), draw_others(200, 3, 4), draw_others(200, 3, 5)
    title_of = dict(zip(first.item_ids.tolist(), first.titles.tolist(), strict=True))
    for others in (later, last):
        assert others.n_users == 200
        assert dict(zip(others.item_ids.tolist(), others.titles.tolist(), strict=True)).items() <= title_of.items()
    assert later.items.tolist() != last.items.tolist()


def test_more_users_are_drawn_than_get_a_turn_in_that_time():
    assert PEOPLE > CLIENTS + GENERATION_SECONDS * REQUESTS_PER_SECOND / MESSAGES
