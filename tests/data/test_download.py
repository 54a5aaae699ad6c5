"""Downloads against a real server on loopback that cuts, stalls, redirects, refuses and lies."""

import fcntl
import hashlib
import os
from pathlib import Path

import pytest
from tests.data.publisher import serving

from federank.data.download import Patience, fetch, install_copy
from federank.errors import BadFile, DownloadError

CONTENT = hashlib.sha256(b"federank").digest() * 40_000  # 1,280,000 bytes, in several chunks
HALF = len(CONTENT) // 2
QUICK = Patience(timeout=30.0, attempts=3, pause=0.0)


def sum_of(content):
    return hashlib.md5(content).hexdigest()


RIGHT = len(CONTENT), sum_of(CONTENT)


def cut_in_half(answer):
    answer.wfile.write(answer.begin()[:HALF])


def silent_from_the_start(answer):
    answer.server.over.wait()


def refuse(status):
    return lambda answer: answer.send_error(status)


def redirect(answer):
    answer.send_response(302)
    answer.send_header("Location", "/moved/file.zip")
    answer.end_headers()


def without_length_and_cut(answer):
    answer.send_response(200)
    answer.end_headers()
    answer.wfile.write(CONTENT[:HALF])


def larger_than_any_disk(answer):
    answer.wfile.write(answer.begin(length=10**18))


@pytest.fixture
def publisher(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(CONTENT) as server:
        yield server


@pytest.fixture
def target(tmp_path):
    return tmp_path / "data" / "file.zip"


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_complete_file_arrives_and_nothing_is_left_beside_it(publisher, target):
    fetch(publisher.address, target, *RIGHT)
    assert target.read_bytes() == CONTENT
    assert names_in(target.parent) == ["file.zip"]


def test_a_cut_connection_is_taken_up_where_it_broke(publisher, target):
    publisher.answers = [cut_in_half]
    fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == CONTENT
    assert [request.get("Range") for request in publisher.requests] == [None, f"bytes={HALF}-"]


def test_what_an_earlier_run_left_is_gone_on_with(publisher, target):
    publisher.answers = [cut_in_half, refuse(503), refuse(503), refuse(503)]
    with pytest.raises(DownloadError, match=r"503.*640,000"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert names_in(target.parent) == ["file.zip.part"]
    fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == CONTENT
    assert publisher.requests[-1]["Range"] == f"bytes={HALF}-"


def test_a_part_that_is_complete_already_is_installed_without_asking_the_server(publisher, target):
    target.parent.mkdir()
    target.with_name("file.zip.part").write_bytes(CONTENT)
    fetch(publisher.address, target, *RIGHT)
    assert target.read_bytes() == CONTENT
    assert publisher.requests == []


@pytest.mark.parametrize("length", [1, HALF, len(CONTENT), len(CONTENT) + 1])
def test_a_part_of_some_other_file_is_found_out_and_started_again(publisher, target, length):
    target.parent.mkdir()
    target.with_name("file.zip.part").write_bytes(b"x" * length)
    fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == CONTENT


def test_a_server_without_ranges_sends_everything_again(publisher, target):
    publisher.ranges = False
    publisher.answers = [cut_in_half]
    fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == CONTENT


def test_a_cut_is_noticed_even_where_the_server_states_no_length(publisher, target):
    publisher.answers = [without_length_and_cut]
    fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == CONTENT


def test_endless_redirects_are_an_error(publisher, target):
    publisher.answers = [redirect] * 50
    with pytest.raises(DownloadError, match="302"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)


def test_a_silent_server_is_given_up_on(publisher, target):
    publisher.answers = [silent_from_the_start] * 2
    with pytest.raises(DownloadError):
        fetch(publisher.address, target, *RIGHT, patience=Patience(timeout=0.1, attempts=2, pause=0.0))
    assert not target.exists()


def test_a_missing_file_is_not_asked_for_twice(publisher, target):
    publisher.answers = [refuse(404)] * 5
    with pytest.raises(DownloadError, match=r"404 \(Not Found\)"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert len(publisher.requests) == 1


def test_a_wrong_checksum_installs_nothing_and_leaves_the_old_file(publisher, target):
    target.parent.mkdir()
    target.write_bytes(b"the old file")
    publisher.content = CONTENT[::-1]
    with pytest.raises(DownloadError, match=rf"its MD5 sum is \w+ where {RIGHT[1]} was expected"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert target.read_bytes() == b"the old file"
    assert names_in(target.parent) == ["file.zip"]


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x"])
def test_a_wrong_size_is_refused_before_it_is_fetched(publisher, target, content):
    publisher.content = content
    with pytest.raises(DownloadError, match=rf"offers {len(content):,} bytes, the known file has {len(CONTENT):,}"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert not target.parent.exists()


def test_a_stream_that_does_not_end_is_stopped_at_the_known_size(publisher, target):
    def overlong(answer):
        answer.send_response(200)
        answer.end_headers()
        for _ in range(20):
            answer.wfile.write(CONTENT)

    publisher.answers = [overlong]
    with pytest.raises(DownloadError, match="1,280,000"):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert not target.exists()


def test_a_disk_too_small_is_noticed_before_anything_is_written(publisher, target):
    publisher.answers = [larger_than_any_disk]
    with pytest.raises(DownloadError, match="1,000,000,000,000,000,000"):
        fetch(publisher.address, target, 10**18, "0" * 32, patience=QUICK)
    assert not target.parent.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a full disk is played by /dev/full, which is not here")
def test_a_disk_that_fills_up_is_an_error_and_installs_nothing(publisher, target):
    target.parent.mkdir()
    target.with_name("file.zip.part").symlink_to("/dev/full")
    with pytest.raises(DownloadError):
        fetch(publisher.address, target, *RIGHT, patience=QUICK)
    assert not target.exists()
    assert len(publisher.requests) == 1


def test_two_downloads_into_one_folder_do_not_meet(publisher, target):
    target.parent.mkdir()
    holder = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="Another process"):
            fetch(publisher.address, target, *RIGHT)
    finally:
        os.close(holder)
    fetch(publisher.address, target, *RIGHT)
    assert target.read_bytes() == CONTENT


def test_a_copy_at_hand_is_installed(tmp_path, target):
    (tmp_path / "copy.zip").write_bytes(CONTENT)
    install_copy(tmp_path / "copy.zip", target, *RIGHT)
    assert target.read_bytes() == CONTENT
    assert names_in(target.parent) == ["file.zip"]


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[::-1]])
def test_a_wrong_copy_is_refused_and_leaves_the_old_file(tmp_path, target, content):
    target.parent.mkdir()
    target.write_bytes(b"the old file")
    (tmp_path / "copy.zip").write_bytes(content)
    with pytest.raises(BadFile):
        install_copy(tmp_path / "copy.zip", target, *RIGHT)
    assert target.read_bytes() == b"the old file"
    assert names_in(target.parent) == ["file.zip"]


def test_a_copy_that_is_no_file_is_refused(tmp_path, target):
    with pytest.raises(BadFile):
        install_copy(tmp_path / "nothing.zip", target, *RIGHT)
    with pytest.raises(BadFile, match="is a folder"):
        install_copy(tmp_path, target, *RIGHT)
