"""Locks at URLs, with a storage in memory: who has a directory, when a lock is renewed, and what is left behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.errors import (
    AbsentError,
    HeldError,
    InputError,
    OutageError,
    RefusedError,
    StoppedError,
    UsageError,
)
from cdxmill.running import lock
from cdxmill.running.lock import check_held, hold, renew_held
from cdxmill.running.progress import WITH_EACH_TICK
from cdxmill.storage.local import temporary_name
from cdxmill.storage.location import Location

from ..material.clock import Clock

S3, HDFS = "s3://bucket/out", "hdfs://host/out"
LEFT = temporary_name("a.cdx.gz")


class Store:
    """Small files at URLs. It notes what is asked of it; `before` is called then, and may raise."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.before: Callable[[str, str], None] = lambda what, url: None
        self.is_conditional = True

    def _ask(self, what: str, place: Location) -> str:
        self.asked.append(what)
        self.before(what, place.text)
        return place.text

    def read(self, place: Location) -> bytes:
        url = self._ask("read", place)
        if url not in self.files:
            raise AbsentError(url, "cannot be read (no such file)")
        return self.files[url]

    def swap(self, place: Location, known: bytes | None, data: bytes) -> bool:
        url = self._ask("swap", place)
        if self.is_conditional and self.files.get(url) != known:
            return False
        self.files[url] = data
        return True

    def remove(self, place: Location) -> None:
        self.files.pop(self._ask("remove", place), None)

    def entries(self, place: Location) -> dict[str, None]:
        start = self._ask("list", place) + "/"
        return {url.removeprefix(start): None for url in self.files if url.startswith(start)}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    for name, method in (
        ("read_bytes", made.read), ("swap", made.swap), ("remove", made.remove), ("entries", made.entries),
    ):  # fmt: skip
        monkeypatch.setattr(Location, name, lambda *asked, method=method: method(*asked))
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    names = {name: getattr(time, name) for name in ("time", "strftime", "gmtime")}
    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=made.monotonic, **names))
    return made


def text_of(**changed: object) -> bytes:
    """The lock of another run that lives."""
    other = {"run": "x", "process": 1, "host": "elsewhere", "since": "now", "renewed": time.time()}
    return json.dumps(other | changed).encode()


@pytest.mark.parametrize("url", [S3, HDFS])
def test_a_lock_is_there_while_a_directory_is_held(url: str, store: Store) -> None:
    notes: list[str] = []
    with hold(url, notes.append) as was_killed:
        assert not was_killed
        assert [renew_held] == WITH_EACH_TICK
        found = json.loads(store.files[f"{url}/.lock"])
        assert (found["process"], found["host"]) == (os.getpid(), os.uname().nodename)
        with hold(f"{url}/"), hold(url) as again:
            assert not again
        assert list(store.files) == [f"{url}/.lock"]
    assert (store.files, WITH_EACH_TICK, notes) == ({}, [], [])
    assert store.asked.count("swap") == (2 if url == S3 else 1), "HDFS has no conditional PUT to try"


@pytest.mark.parametrize(
    ("found", "was_killed"),
    [
        (text_of(run=lock.run_id()), True),  # a switch on HDFS has moved it
        (text_of(renewed=0.0), True),
        (text_of(host=os.uname().nodename, process=2**22 + 1), True),
        (text_of(), HeldError),
        (b"mine", UsageError),
        (b"[1]", UsageError),
        (b'"run"', UsageError),
        (b"{}", UsageError),
        (b'{"a": 1}', UsageError),
        (b"[" * 100_000, UsageError),
    ],
    ids=map(str, range(10)),
)
def test_a_lock_that_is_found_is_taken_or_keeps_others_out(
    found: bytes, was_killed: object, store: Store
) -> None:
    store.files[f"{S3}/.lock"] = found
    if isinstance(was_killed, bool):
        with hold(S3) as was:
            assert was is was_killed
        assert store.files == {}
        return
    told = "another run writes to this directory" if was_killed is HeldError else "is not the lock of a run"
    with pytest.raises(UsageError, match=told) as error:
        hold(S3).__enter__()
    assert isinstance(error.value, HeldError) is (was_killed is HeldError)
    assert store.files == {f"{S3}/.lock": found}
    assert WITH_EACH_TICK == []


def test_a_service_that_refuses_to_read_what_is_absent_has_no_lock(store: Store) -> None:
    def refuse(what: str, url: str) -> None:
        if what == "read" and url not in store.files:
            raise RefusedError(url, "cannot be read (403)")

    store.before = refuse
    with hold(S3) as was_killed:
        assert not was_killed


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_lock_that_could_not_be_written_is_that_of_another_run_or_its_answer_was_lost(
    is_lost: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap(place: Location, known: bytes | None, data: bytes) -> bool:
        store.files[place.text] = data if is_lost else text_of()
        return False

    monkeypatch.setattr(Location, "swap", swap)
    if is_lost:
        with hold(HDFS):
            pass
        assert store.files == {}
    else:
        with pytest.raises(
            HeldError, match=r"process 1 on elsewhere since now\); wait until it ends, or delete"
        ):
            hold(HDFS).__enter__()
        assert len(store.files) == 1


def test_a_service_without_conditions_is_named(store: Store) -> None:
    store.is_conditional = False
    for url in (S3, HDFS):
        notes: list[str] = []
        with hold(url, notes.append):
            pass
        assert [note.partition(":")[2][:40] for note in notes] == (
            ["//bucket/out: note: the service has no c"] if url == S3 else []
        )


def test_a_lock_is_asked_for_and_renewed_when_it_is_time_to(store: Store, clock: Clock) -> None:
    with hold(HDFS):
        for call, passed, asked in (
            (check_held, 0.0, []),
            (check_held, 1.0, ["read"]),
            (renew_held, 299.0, []),
            (renew_held, 1.0, []),  # 300 s since it was checked
            (renew_held, 0.5, ["read", "swap"]),
            (check_held, 299.0, ["read"]),
            (check_held, 1.0, ["read"]),
            (check_held, 0.5, ["read", "swap"]),
            (check_held, 0.5, ["read"]),
        ):
            clock.now += passed
            store.asked.clear()
            call()
            assert store.asked == asked, clock.now


@pytest.mark.parametrize("is_due", [False, True])
@pytest.mark.parametrize("other", [text_of(), None, b"mine"], ids=["taken", "gone", "odd"])
def test_a_run_stops_if_its_lock_is_taken_or_gone(
    is_due: bool, other: bytes | None, store: Store, clock: Clock
) -> None:
    with pytest.raises(StoppedError, match="another run has taken this directory"), hold(S3):
        clock.now += 301 if is_due else 1
        left = {} if other is None else {f"{S3}/.lock": other}
        store.files.clear()
        store.files.update(left)
        check_held()
    assert store.files == left


def test_a_run_stops_if_its_lock_is_taken_while_it_is_renewed_or_cannot_be_renewed(
    store: Store, clock: Clock
) -> None:
    def taken(what: str, url: str) -> None:
        if what == "swap":
            store.files[url] = text_of()

    def fails(what: str, url: str) -> None:
        raise OutageError(url, "does not answer", "try again")

    for before, told in (
        (taken, "another run has taken this directory"),
        (fails, "cannot be renewed: does not"),
    ):
        with pytest.raises(StoppedError, match=told), hold(S3):
            clock.now += 301
            store.before = before
            check_held()
        store.files.clear()
        store.before = lambda what, url: None


def test_only_the_locks_of_this_thread_and_at_urls_are_asked_for(
    store: Store, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold(tmp_path), hold(S3):
        clock.now += 1
        store.files[f"{S3}/.lock"] = text_of()
        with monkeypatch.context() as patch:
            patch.setattr(lock, "get_ident", lambda: -1)
            check_held()
        with pytest.raises(StoppedError):
            check_held()
    check_held()


@pytest.mark.parametrize("url", [S3, HDFS])
def test_what_workers_left_is_deleted_on_hdfs_at_the_start_and_after_an_error(url: str, store: Store) -> None:
    stay = [f"{url}/{name}" for name in ("a.cdx.gz", temporary_name(".lock"))]
    for place in (*stay, f"{url}/{LEFT}"):
        store.files[place] = b"x"
    with hold(url):
        assert (f"{url}/{LEFT}" in store.files) is (url == S3)
        store.files[f"{url}/{LEFT}"] = b"x"
    assert list(store.files) == [*stay, f"{url}/{LEFT}"], "a run that ends well has none"
    with pytest.raises(KeyError), hold(url):
        store.files[f"{url}/{LEFT}"] = b"x"
        raise KeyError
    assert list(store.files) == ([*stay, f"{url}/{LEFT}"] if url == S3 else stay)
    assert ("list" in store.asked) is (url == HDFS)


def test_an_error_is_not_hidden_by_a_storage_that_fails_then(store: Store) -> None:
    def fails(what: str, url: str) -> None:
        raise (StoppedError if what == "remove" else InputError)(url, "fails")

    with pytest.raises(KeyError), hold(HDFS):
        store.files[f"{HDFS}/{LEFT}"] = b"x"
        store.before = fails
        raise KeyError
    assert WITH_EACH_TICK == []
    store.before = lambda what, url: None
    store.files.clear()
    with hold(HDFS):
        store.before = fails
