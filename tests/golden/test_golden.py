"""Models and messages are those on record (golden.json)."""

import pytest

from tests.golden.messages import ENTRIES as MESSAGES
from tests.golden.messages import PAGE_ENTRIES
from tests.golden.models import ENTRIES as MODELS
from tests.golden.records import differences, read, record

RECORDS = read()


@pytest.mark.parametrize("name", MODELS | MESSAGES)
def test_values_are_those_on_record(name):
    assert differences(record((MODELS | MESSAGES)[name]()), RECORDS[name]) == []


@pytest.mark.parametrize("name", PAGE_ENTRIES)
def test_page_sends_what_is_on_record(name, node):
    assert differences(record(PAGE_ENTRIES[name]()), RECORDS[name]) == []


def test_every_record_belongs_to_an_entry():
    assert list(RECORDS) == [*MODELS, *MESSAGES, *PAGE_ENTRIES]
