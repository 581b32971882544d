"""What a run knows of each server: turns, pauses, and when a server is given up and asked again."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from cdxmill.errors import UsageError
from cdxmill.storage import hosts
from cdxmill.storage.optional import optional

from ..material.clock import Clock

HOST = "archive.example"

pytestmark = pytest.mark.usefixtures("clock")


def is_given_up(host: str = HOST) -> bool:
    try:
        hosts.wait_for_turn(host, None)
    except hosts.GivenUp:
        return True
    return False


def refuse(*names: str) -> None:
    for name in names:
        hosts.refused(HOST, name, 403)


def test_a_burst_is_free_and_further_requests_are_spread(clock: Clock) -> None:
    waits = [hosts.wait_for_turn(HOST, 10.0) for _ in range(67)]
    assert waits == pytest.approx([0.0] * 64 + [0.1] * 3, abs=1e-6)
    assert hosts.wait_for_turn("other.example", 10.0) == hosts.wait_for_turn(HOST, None) == 0
    clock.now += 2.0
    waits = [hosts.wait_for_turn(HOST, 10.0) for _ in range(21)]
    assert waits == pytest.approx([0.0] * 20 + [0.1], abs=1e-6)


def test_a_pause_is_as_long_as_the_longest_that_is_asked_for(clock: Clock) -> None:
    hosts.pause(HOST, 7.0)
    hosts.pause(HOST, 3.0)
    for rate, wait in ((10.0, 7.0), (None, 0.0)):
        assert hosts.wait_for_turn(HOST, rate) == pytest.approx(wait)
    hosts.pause(HOST, 5.0)
    assert hosts.wait_for_turn(HOST, None) == pytest.approx(5.0)


def test_who_waits_sees_what_other_workers_are_told(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        if clock.now == 1000:
            hosts.pause(HOST, 4.0)
        else:
            refuse("a", "b", "c")
        clock.now += seconds

    waiting = SimpleNamespace(monotonic=clock.monotonic, sleep=sleep)
    monkeypatch.setattr(hosts, "time", waiting)
    hosts.pause(HOST, 1.0)
    with pytest.raises(hosts.GivenUp, match=r"refused 3 files in a row \(403\)"):
        hosts.wait_for_turn(HOST, None)
    assert clock.now == pytest.approx(1004.0)


def test_three_files_that_are_refused_in_a_row_are_too_many(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse("a", "a", "a", "b", "b")
    assert not is_given_up()
    clock.now += 2
    hosts.answered(HOST)
    refuse("c", "d")
    with optional():
        refuse("e")
    monkeypatch.setenv("CDXMILL_POLITE", "off")
    refuse("f")
    monkeypatch.delenv("CDXMILL_POLITE")
    for name in "ghi":
        hosts.refused("", name, 403)
    assert not is_given_up()
    assert not is_given_up("")
    refuse("h")
    assert is_given_up()
    hosts.refused(HOST, "i", 401)
    with pytest.raises(hosts.GivenUp, match=r"\(403\)"):
        hosts.wait_for_turn(HOST, None)
    assert hosts.was_given_up(HOST)
    assert not is_given_up("other.example")
    clock.now += 899
    assert is_given_up()
    clock.now += 2
    assert not is_given_up()
    assert hosts.was_given_up(HOST)
    hosts.answered(HOST)
    assert not hosts.was_given_up(HOST)
    refuse("i", "j")
    hosts.answered(HOST)
    refuse("k")
    assert not is_given_up()
    refuse("l", "m")
    assert is_given_up()
    hosts.answered(HOST)
    assert not is_given_up()


def test_a_server_that_did_not_answer_is_dead_or_has_three_tries(clock: Clock) -> None:
    assert not hosts.is_silent(HOST)
    assert not hosts.has_answered(HOST)
    hosts.answered("other.example")
    assert hosts.has_answered("other.example")
    hosts.failed(HOST, "a", "503", None)
    hosts.failed(HOST, "b", "503", None)
    assert not is_given_up()
    assert hosts.is_silent(HOST)
    hosts.answered(HOST)
    assert not hosts.is_silent(HOST)
    assert hosts.has_answered(HOST)
    hosts.failed(HOST, "b", "503", None)
    assert not hosts.is_silent(HOST)
    began = clock.now
    clock.now += 10
    hosts.answered(HOST)
    clock.now += 10
    hosts.failed(HOST, "c", "503", began)
    assert not is_given_up(), "it has answered meanwhile"
    clock.now += 20
    hosts.failed(HOST, "d", "timed out", began + 30)
    with pytest.raises(hosts.GivenUp, match=r"^did not answer \(timed out\)$"):
        hosts.wait_for_turn(HOST, None)
    clock.now += 61
    assert not is_given_up()


def test_a_new_run_forgets_what_was_given_up_and_keeps_pauses(clock: Clock) -> None:
    refuse("a", "b", "c")
    hosts.pause(HOST, 5.0)
    assert hosts.is_first(HOST, hosts.WHOLE)
    hosts.begin_run()
    assert not hosts.was_given_up(HOST)
    assert hosts.is_first(HOST, hosts.WHOLE)
    assert hosts.wait_for_turn(HOST, None) == pytest.approx(5.0)


def test_each_note_is_printed_once(clock: Clock) -> None:
    for note in (hosts.SLOWED, hosts.TROUBLED, hosts.WHOLE):
        assert [hosts.is_first(HOST, note) for _ in range(2)] == [True, False]
    hosts.answered(HOST)
    found = [hosts.is_first(HOST, note) for note in (hosts.SLOWED, hosts.TROUBLED, hosts.WHOLE)]
    assert found == [False, True, False]
    hosts.answered(HOST)
    assert hosts.is_first(HOST, hosts.TROUBLED)


def test_servers_that_share_a_place_do_not_share_what_is_known() -> None:
    slots = 2 * hosts._SLOTS
    names = [name for name in (f"a{number}.example" for number in range(9999)) if hash(name) % slots < 2][:5]
    for number, name in enumerate(names):
        hosts.pause(name, number)
    assert [hosts.wait_for_turn(name, None) for name in names[::2]] == pytest.approx([0.0, 2.0, 2.0])
    hosts.failed(names[1], "a", "503", 0.0)
    assert [is_given_up(name) for name in names] == [False, True, False, False, False]


def test_more_servers_than_are_remembered_are_given_up_too(clock: Clock) -> None:
    """A server whose place another had taken was asked again: it had a new place, and was looked for at the old one."""
    names = [f"archive{number}.example" for number in range(2 * hosts._SLOTS)]
    for name in 2 * names:
        hosts.failed(name, f"https://{name}/a.warc.gz", "503", clock.now - 60)
        with pytest.raises(hosts.GivenUp, match="did not answer"):
            hosts.wait_for_turn(name, None)


def test_processes_change_what_is_known_one_after_the_other() -> None:
    hosts.share()
    table, (asked, ask), (answer, say) = hosts._table(), os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        with table.changing(HOST):
            os.write(say, b"1")
            os.read(asked, 1)
        os.write(say, b"2")
        os.read(asked, 1)
        os._exit(0)
    os.read(answer, 1)
    with pytest.raises(BlockingIOError):
        fcntl.lockf(table._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(ask, b"1")
    os.read(answer, 1)
    fcntl.lockf(table._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(ask, b"2")
    assert os.waitpid(child, 0)[1] == 0


def test_forked_processes_know_the_same() -> None:
    hosts.share()
    child = os.fork()
    if not child:
        try:
            refuse("a", "b", "c")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert is_given_up()


def test_an_error_while_something_is_noted_leaves_no_lock() -> None:
    for _ in range(2):
        with pytest.raises(KeyError), hosts._table().changing(HOST) as found:
            found.pause = time.monotonic() + 1e9
            raise KeyError
    assert hosts.wait_for_turn(HOST, None) == 0


@pytest.mark.parametrize(("setting", "is_polite"), [("", True), ("on", True), ("off", False), ("no", None)])
def test_polite_is_on_or_off(setting: str, is_polite: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_POLITE", setting)
    with pytest.raises(UsageError, match="must be on or off") if is_polite is None else nullcontext():
        assert hosts.is_polite() == is_polite


@pytest.mark.parametrize(
    ("contact", "is_valid"), [("me ~", True), *((letter, False) for letter in "()\\\x1f\x7fé")]
)
def test_a_contact_is_what_a_header_may_have(
    contact: str, is_valid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_CONTACT", contact)
    with nullcontext() if is_valid else pytest.raises(UsageError, match="use printable ASCII"):
        assert hosts.user_agent().endswith(f"; {contact})")
