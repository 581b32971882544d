"""How often and how long a request is repeated, what is shown of it meanwhile, and when that ends."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from cdxmill import messages
from cdxmill.errors import (
    AbsentError,
    InputError,
    OutageError,
    RefusedError,
    StoppedError,
    UntriedError,
    UsageError,
)
from cdxmill.messages import human_seconds
from cdxmill.storage import hosts, patience
from cdxmill.storage.patience import PROGRESS, Tries, TryAgain, persistently, read_range

from ..material.clock import Clock

HOST = "archive.example"
URL = f"https://{HOST}/a.warc.gz"
FAR, NAMES = "hdfs://names/a.warc.gz", "hdfs://names"

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are as long as they may be: 0.5, 1, 2, 4 seconds and so on. Notes are printed, as by commands."""
    monkeypatch.setattr("random.uniform", lambda least, most: min(most, 1))
    monkeypatch.setitem(messages._notes, "are printed", True)


def tries(
    clock: Clock, attempts: list[float | None], url: str = URL, host: str = "", wait: float = 0.0
) -> None:
    """Repeat an attempt that takes so many seconds, and fails; with None it succeeds."""

    def attempt() -> None:
        seconds = attempts.pop(0)
        if seconds is not None:
            clock.sleep(seconds)
            raise TryAgain("503", wait, host)

    persistently(url, attempt)


def test_tries_are_counted_and_waits_grow(clock: Clock) -> None:
    tries(clock, [0.0, 0.0, None])
    assert 0.75 <= clock.now - 1000 <= 1.5
    failing: list[float | None] = [0.0] * 99
    with pytest.raises(OutageError, match=r"a.warc.gz: did not answer \(503\) after 8 tries; run it again"):
        tries(clock, failing)
    assert len(failing) == 91
    hosts.begin_run()
    clock.now += 100
    hosts.answered(HOST)
    with pytest.raises(OutageError, match=r"after 12 tries; run it again"):
        tries(clock, failing, host=HOST)
    assert len(failing) == 79


def test_a_failure_is_told_by_its_reason() -> None:
    assert str(TryAgain("503", 1.0, HOST)) == "503"


def test_a_server_may_ask_for_a_longer_wait_up_to_a_minute(clock: Clock) -> None:
    for asked, least in ((20.0, 20.0), (9999.0, patience.LONGEST_WAIT)):
        before = clock.now
        tries(clock, [0.0, None], wait=asked)
        assert least <= clock.now - before <= 1.1 * least


def test_patience_ends_after_its_time(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "100")
    attempts: list[float | None] = [60.0] * 99
    with pytest.raises(OutageError, match=r"did not answer \(503\) for 12\d s; run it again"):
        tries(clock, attempts)
    assert len(attempts) == 97
    attempts = [21.0] * 99
    with pytest.raises(OutageError, match=r"for 21 s"):
        tries(clock, attempts, url=f"{URL}2")
    assert len(attempts) == 98, "nothing has come from this server yet"


def test_a_server_that_was_given_up_has_one_try(clock: Clock) -> None:
    attempts: list[float | None] = [0.0] * 99
    with pytest.raises(OutageError, match="after 8 tries"):
        tries(clock, attempts, host=HOST)
    with pytest.raises(UntriedError, match="did not answer"):
        patience.wait_for_turn(URL, HOST)
    clock.now += 61
    left = len(attempts)
    with pytest.raises(OutageError, match=r"did not answer \(503\) again; run it again"):
        tries(clock, attempts, host=HOST)
    assert len(attempts) == left - 1
    clock.now += 61
    with pytest.raises(OutageError, match="after 8 tries"):
        tries(clock, attempts, url="https://other.example/a", host=HOST)


def test_bytes_that_arrive_start_the_count_again(clock: Clock) -> None:
    gained = [PROGRESS] * 20
    body = bytes(PROGRESS * 20)

    def read(first: int, data: bytearray) -> bool:
        data += body[first : first + gained.pop(0)]
        clock.now += 100
        raise TryAgain("connection lost")

    assert read_range(URL, 0, len(body), read) == body
    for some in (10, PROGRESS // 2):
        gained = [some, *[0] * 99]
        with pytest.raises(InputError, match="did not answer"):
            read_range(f"https://{some}.example/a", 0, len(body), read)
        assert 90 < len(gained) < 98
    assert read_range(URL, 5, 9, lambda first, data: False) == b""


@pytest.mark.parametrize("seconds", [0.0, 86401.0, "x", "nan", -1])
def test_patience_is_a_number_of_seconds(seconds: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", str(seconds))
    with pytest.raises(UsageError, match=f"CDXMILL_PATIENCE={seconds}: must be a number of seconds"):
        patience.patience()


@pytest.mark.parametrize(("text", "seconds"), [("", 300.0), ("86400", 86400.0), ("0.5", 0.5)])
def test_timeouts_fit_into_patience(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", text)
    assert patience.patience() == seconds
    assert patience.timeouts() == (min(20.0, seconds), min(60.0, seconds))
    assert patience.timeouts(10) == (min(20.0, seconds / 10), min(60.0, seconds / 10))


def test_an_answer_must_not_drip(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "10")
    pace = patience.Pace()
    for _ in range(3):
        clock.now += 9
        pace.arrived(PROGRESS - 1)
        clock.now += 2
        pace.arrived(1)
    clock.now += 10
    pace.arrived(1)
    clock.now += 0.5
    with pytest.raises(TryAgain, match="sends too slowly"):
        pace.arrived(1)


def test_progress_starts_the_count_again_at_64_kib(clock: Clock) -> None:
    counted = Tries(URL)
    for gained in (*[0] * 6, PROGRESS, *[0] * 6, PROGRESS - 1):
        if gained == PROGRESS - 1:
            with pytest.raises(OutageError, match="after 8 tries"):
                counted.failed(TryAgain("503"), gained)
        else:
            counted.failed(TryAgain("503"), gained)
            clock.now = 1000.0


def failures_of(url: str, hosts_of_failures: list[str], gained: int = 0) -> int:
    """The number of failures until a file is given up: of these hosts, and then all of the last one."""
    counted, number = Tries(url), 0
    try:
        while True:
            number += 1
            host = hosts_of_failures.pop(0) if len(hosts_of_failures) > 1 else hosts_of_failures[0]
            counted.failed(TryAgain("503", 0.0, host), gained if number == 2 else 0)
    except OutageError:
        return number


def test_a_server_that_worked_has_more_tries_if_all_failures_are_its_own(clock: Clock) -> None:
    for hosts_of_failures, gained, tries_made in (
        ([HOST], 0, 12),
        (["", HOST], 0, 8),
        ([HOST, ""], 0, 8),
        (["", HOST], PROGRESS, 13),
    ):
        hosts.begin_run()
        clock.now += 1000
        hosts.answered(HOST)
        assert failures_of(URL, hosts_of_failures, gained) == tries_made, (hosts_of_failures, gained)


def test_the_name_nodes_of_hdfs_are_a_server_too(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", "100")
    assert failures_of(f"{FAR}1", [""]) == 8
    assert not hosts.was_given_up(NAMES)
    hosts.failed(NAMES, FAR, "503", None)
    attempts: list[float | None] = [21.0] * 9
    with pytest.raises(OutageError, match="for 21 s"):
        tries(clock, attempts, url=FAR, host=NAMES)
    assert hosts.was_given_up(NAMES)


@pytest.mark.usefixtures("longest")
@pytest.mark.parametrize(
    ("url", "host", "named"), [(URL, "", HOST), (FAR, NAMES, NAMES), (FAR, "", FAR), (URL, NAMES, NAMES)]
)
def test_a_log_says_once_how_long_a_server_is_asked_again(
    url: str, host: str, named: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    tries(clock, [0.0, 0.0, 0.0, None], url, host)
    assert capsys.readouterr().err == "", "3.5 seconds"
    tries(clock, [0.0, 0.0, 0.0, 0.0, 0.0, None], url, host)
    assert (
        capsys.readouterr().err == f"{named}: 503; tried again for up to {human_seconds(4 + 8 + 16 + 32)}\n"
    )
    tries(clock, [0.0, 0.0, 0.0, 0.0, 0.0, None], url, host)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("longest")
@pytest.mark.parametrize(
    ("limit", "wait", "left"), [("30", 0.0, 26.5), ("300", 0.0, 60.0), ("300", 90.0, 90.0)]
)
def test_what_is_said_fits_into_patience(
    limit: str,
    wait: float,
    left: float,
    clock: Clock,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CDXMILL_PATIENCE", limit)
    tries(clock, [0.0, None] if wait else [0.0, 0.0, 0.0, 0.0, None], wait=wait)
    assert capsys.readouterr().err == f"{HOST}: 503; tried again for up to {human_seconds(left)}\n"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return not super().isatty()  # raises ValueError if it is closed


@pytest.mark.usefixtures("longest")
def test_a_terminal_shows_waits_of_a_second_and_those_after_long_tries(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    tries(clock, [4.9, 0.0, 0.0, None])
    tries(clock, [5.0, None])
    shown = [(3, 1), (4, 2), (2, 0)]
    text = "".join(f"\r\x1b[K{URL}: 503; try {number} of 8 in {wait} s\n" for number, wait in shown)
    assert terminal.getvalue() == text


@pytest.mark.usefixtures("longest")
@pytest.mark.parametrize("how", ["closed", "none", "no terminal"])
def test_without_a_terminal_nothing_is_shown(how: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = StringIO() if how == "no terminal" else Terminal()
    monkeypatch.setattr("sys.stderr", None if how == "none" else stderr)
    if how == "closed":
        stderr.close()
    if how == "closed":
        tries(clock, [0.0, 0.0, 0.0, 0.0, 0.0, None])
        sys.stderr.close()  # another one, to which the note went
        return
    tries(clock, [0.0, 0.0, None])
    assert stderr.getvalue() == ""


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, RefusedError),
        (403, RefusedError),
        (404, AbsentError),
        (410, AbsentError),
        (402, None),
        (411, None),
    ],
)
def test_a_status_has_its_kind_of_error(status: int, kind: type[InputError] | None) -> None:
    found = patience.refusal(URL, status, "reason", "hint")
    assert type(found) is (kind or InputError)
    hints: dict[object, str] = {RefusedError: "check the access rights", AbsentError: "hint", None: ""}
    assert found.hint == hints[kind]


@pytest.mark.parametrize(("hint", "told"), [("hint", "; hint"), ("", "")])
def test_a_run_stops_without_its_output(hint: str, told: str) -> None:
    with (
        pytest.raises(StoppedError, match=f"^out: cannot be written: reason{told}$"),
        patience.stops("out", "written"),
    ):
        raise InputError("other", "reason", hint)
