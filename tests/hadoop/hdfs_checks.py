"""Checks of HDFS that run inside the test cluster's network: test_storage_hdfs.py names this file to pytest there."""

from __future__ import annotations

import random
from functools import cache

import pytest

from cdxmill.errors import InputError
from cdxmill.storage.location import join, locate, pieces

from ..storage.contract import BODY, check_storage, check_writing, write

ROOT = "hdfs://127.0.0.1:9000"
DIRECTORY = f"{ROOT}/storage"


@cache
def large() -> bytes:
    """More than one block of HDFS."""
    return random.Random(3).randbytes(20 << 20)


def test_the_contract_is_kept() -> None:
    def put(name: str, body: bytes) -> str:
        write(join(DIRECTORY, "read", name), body)
        return join(DIRECTORY, "read", name)

    check_storage(put)
    check_writing(join(DIRECTORY, "written"))


def test_names_are_taken_as_they_are() -> None:
    name = "a b+c=ü%41#d?e&f;g,h'i\"j.warc"
    write(join(DIRECTORY, "names", name), b"content")
    assert list(locate(join(DIRECTORY, "names")).entries()) == [name]
    assert locate(join(DIRECTORY, "names", name)).read_bytes() == b"content"
    locate(join(DIRECTORY, "names", name)).remove()
    assert locate(join(DIRECTORY, "names")).entries() == {}


def test_files_are_read_in_pieces_and_two_that_write_one_do_not_meet() -> None:
    place = join(DIRECTORY, "large")
    with locate(place).write_atomic() as one, locate(place).write_atomic() as other:
        other.write(b"other")
        one.write(large())
    with locate(place).open_ranges() as read_at:
        assert b"".join(pieces(read_at)) == large()
        assert read_at(10 << 20, 77) == large()[10 << 20 :][:77]
    assert not [name for name in locate(DIRECTORY).entries() if name.endswith(".tmp")]


def test_a_file_that_changes_while_it_is_read_is_refused() -> None:
    place = join(DIRECTORY, "changing")
    write(place, BODY)
    with (
        pytest.raises(InputError, match="has changed while it was read"),
        locate(place).open_ranges() as read_at,
    ):
        assert read_at(0, 10) == BODY[:10]
        write(place, BODY)


def test_the_default_file_system_is_known() -> None:
    assert locate("hdfs:///a/b").is_same(locate(f"{ROOT}/a/b/"))
    assert locate("hdfs:///storage/put by hadoop").read_bytes() == BODY


def test_what_hdfs_refuses_is_one_line() -> None:
    with pytest.raises(InputError) as caught, locate(DIRECTORY).open_ranges():
        pass
    assert str(caught.value) == f"{DIRECTORY}: is a directory; name a file, or a directory with archives"
    with pytest.raises(Exception, match="cannot be written: refused") as refused:
        write(join(DIRECTORY, "large", "below a file"), b"1")
    assert "\n" not in str(refused.value)
