"""How the program ends when the system refuses it something."""

import errno

from tests.cli.program import program


def test_a_file_of_another_user_ends_a_command_with_code_2(monkeypatch):
    def stat(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "theirs/table.csv")

    monkeypatch.setattr("federank.data.loading.load", stat)
    answer = program("data", "stats", "theirs/table.csv")
    assert answer.returncode == 2
    assert "theirs/table.csv" in answer.stderr
