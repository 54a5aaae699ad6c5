"""Libraries that few tests use and that take long to import: imported where a test uses them, not by every worker."""

from types import ModuleType


def pandas() -> ModuleType:
    import pandas

    return pandas


def psycopg() -> ModuleType:
    import psycopg

    return psycopg
