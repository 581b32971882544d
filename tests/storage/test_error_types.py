"""Every storage raises the same types of error, so that nobody has to read their texts."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.errors import (
    AbsentError,
    CdxmillError,
    InputError,
    OutageError,
    RefusedError,
    StoppedError,
    UsageError,
)
from cdxmill.storage import local
from cdxmill.storage.location import locate
from cdxmill.storage.patience import stops

from .name_node import name_node
from .range_server import RangeServer


class Store(NamedTuple):
    """A storage with one file, whose next requests can be refused."""

    url: str
    absent: str
    refuse: Callable[[int], None]
    """Answer the next request with this HTTP status."""


def local_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    path = tmp_path / "a.warc"
    path.write_bytes(b"content")

    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, "denied")

    # The superuser may open every file: rights taken from the file would prove nothing.
    return Store(str(path), f"{path}.absent", lambda status: monkeypatch.setattr(os, "open", denied))


def web_store(server: RangeServer) -> Store:
    file = server.add("/a.warc", b"content")
    return Store(f"{server.url}/a.warc", f"{server.url}/absent", file.statuses.append)


def s3_store(server: RangeServer, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    file = server.add("/archives/a.warc", b"content")
    file.headers["Last-Modified"] = "Wed, 01 Jan 2025 00:00:00 GMT"
    return Store("s3://archives/a.warc", "s3://archives/absent", file.statuses.append)


@pytest.fixture
def hdfs_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with name_node() as node:
        node.put("/a.warc", b"content")
        monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)

        def refuse(status: int) -> None:
            node.refusals.append((status, "AccessControlException"))

        yield Store("hdfs:///a.warc", "hdfs:///absent", refuse)


@pytest.fixture(params=["local", "http", "s3", "hdfs"])
def store(
    request: pytest.FixtureRequest, server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Store:
    makers: dict[str, Callable[[], Store]] = {
        "local": lambda: local_store(tmp_path, monkeypatch),
        "http": lambda: web_store(server),
        "s3": lambda: s3_store(server, monkeypatch),
        "hdfs": lambda: request.getfixturevalue("hdfs_store"),
    }
    return makers[request.param]()


def error_of(url: str) -> InputError:
    with pytest.raises(InputError) as caught, locate(url).open_ranges() as read_at:
        read_at(0, 1)
    assert caught.value.path == url
    return caught.value


def test_a_missing_file_is_an_absent_error(store: Store) -> None:
    assert type(error_of(store.absent)) is AbsentError
    assert not locate(store.absent).exists()
    assert locate(store.url).exists()


@pytest.mark.parametrize("status", [401, 403])
def test_missing_rights_are_a_refused_error(store: Store, status: int) -> None:
    store.refuse(status)
    assert type(error_of(store.url)) is RefusedError


def test_a_file_that_is_gone_for_good_is_an_absent_error(server: RangeServer) -> None:
    store = web_store(server)
    store.refuse(410)
    assert type(error_of(store.url)) is AbsentError


def test_other_refusals_are_plain_input_errors(server: RangeServer) -> None:
    store = web_store(server)
    store.refuse(400)
    assert type(error_of(store.url)) is InputError


def test_a_web_page_in_place_of_webhdfs_is_no_absent_file(monkeypatch: pytest.MonkeyPatch) -> None:
    with name_node() as node:
        node.page = b"<html>not found</html>"
        monkeypatch.setenv("CDXMILL_WEBHDFS", node.address)
        assert type(error_of("hdfs:///a.warc")) is OutageError


@pytest.mark.parametrize(
    "error",
    [
        UsageError("told"),
        StoppedError("told"),
        InputError("a", "is corrupt"),
        AbsentError("a", "cannot be read", "check the path"),
        RefusedError("a", "cannot be read", "check its rights"),
    ],
)
def test_a_pickled_error_keeps_its_type_text_and_fields(error: CdxmillError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def raise_absent(path: str) -> None:
    with locate(path).open_ranges():
        pass


def test_errors_keep_their_type_from_process_to_process(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1, get_context("fork")) as workers,
        pytest.raises(AbsentError, match="No such file"),
    ):
        workers.submit(raise_absent, str(tmp_path / "absent")).result()


@pytest.mark.parametrize("name", ["a\0b", "/\0", "a\ud800"])
def test_a_name_that_no_file_can_have_is_absent(name: str) -> None:
    error = error_of(name)
    assert (type(error), error.reason) == (AbsentError, "cannot be read (no file can have this name)")
    assert local.status(name) is None
    assert local.list_directory(name) == {}
    assert locate(name).size() == 0


@pytest.mark.parametrize(("hint", "rest"), [("", ""), ("check it", "; check it")])
def test_an_output_that_cannot_be_written_keeps_reason_and_hint(hint: str, rest: str) -> None:
    with pytest.raises(StoppedError) as caught, stops("hdfs:///a", "written"):
        raise InputError("hdfs:///b", "is full", hint)
    assert str(caught.value) == f"hdfs:///a: cannot be written: is full{rest}"
