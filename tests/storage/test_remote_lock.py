"""Two runs at one URL: one of them owns it, and the other one ends without a change, on S3 and HDFS."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.output import put_in_place
from cdxmill.commands.clusters import publish
from cdxmill.commands.copying.output import CopyOutput
from cdxmill.errors import StoppedError, UsageError
from cdxmill.running import lock
from cdxmill.running.lock import check_held, hold, renew_held
from cdxmill.running.progress import WITH_EACH_TICK, Progress
from cdxmill.storage import s3
from cdxmill.storage.local import temporary_name
from cdxmill.storage.location import Location, locate

from ..conftest import RunCdxmill
from ..material.clock import Clock

TAKEN = "another run has taken this directory"


def write(place: Location, data: bytes) -> None:
    with place.write_atomic() as file:
        file.write(data)


def lock_of(place: Location, **changed: object) -> None:
    """Write the lock of another run that lives."""
    other = {"run": "x", "process": 1, "host": "elsewhere", "since": "now", "renewed": time.time()}
    write(place / ".lock", json.dumps(other | changed).encode())


def content(place: Location) -> dict[str, bytes]:
    return {
        name: (place / name).read_bytes() for name, one in place.entries().items() if not one.is_directory
    }


def test_of_two_runs_in_one_moment_one_has_the_directory(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, over = threading.Barrier(2), threading.Barrier(2)
    swap, begun = Location.swap, set()

    def slow(place: Location, known: bytes | None, data: bytes) -> bool:
        if threading.get_ident() not in begun:
            begun.add(threading.get_ident())
            both.wait(10)  # both have found no lock
        return swap(place, known, data)

    def run(_: int) -> str:
        try:
            with hold(elsewhere):
                over.wait(10)
                check_held()
                return "held"
        except UsageError as error:
            over.wait(10)
            return str(error)

    monkeypatch.setattr(Location, "swap", slow)
    with ThreadPoolExecutor(2) as pool:
        refused, held = sorted(pool.map(run, range(2)), key=lambda text: text == "held")
    assert held == "held"
    assert "another run writes to this directory (process " in refused
    assert locate(elsewhere).entries() == {}


def test_a_lock_that_another_run_has_taken_stops_this_one(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = locate(elsewhere)
    with hold(elsewhere) as was_killed, hold(place) as again:
        assert (was_killed, again) == (False, False)
        before = json.loads((place / ".lock").read_bytes())
        monkeypatch.setattr(lock, "RENEWED", -1.0)
        renew_held()
        after = json.loads((place / ".lock").read_bytes())
        assert before["renewed"] < after.pop("renewed")
        assert before.items() >= after.items()
        lock_of(place)
        check_held(60)  # was checked
        with pytest.raises(StoppedError, match=TAKEN):
            check_held()
        with pytest.raises(StoppedError, match=TAKEN), Progress("working", 1, quiet=True) as progress:
            progress.tick()
    assert json.loads((place / ".lock").read_bytes())["run"] == "x"  # it is the other one's
    assert WITH_EACH_TICK == []


def test_a_lock_is_renewed_when_it_is_time_to(elsewhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, notes = Clock(), list[str]()
    names = {name: getattr(time, name) for name in ("time", "strftime", "gmtime")}
    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=clock.monotonic, **names))
    file = locate(elsewhere) / ".lock"
    with hold(elsewhere, notes.append):
        for call, passed, is_renewed in (
            (renew_held, lock.RENEWED - 1, False),
            (renew_held, 2, True),
            (check_held, lock.RENEWED - 1, False),
            (check_held, 2, True),
            (renew_held, lock.RENEWED + 1, True),
        ):
            before = file.read_bytes()
            clock.now += passed
            call()
            assert (file.read_bytes() != before) is is_renewed
    assert notes == []


def test_a_thread_checks_the_remote_locks_that_are_its_own(elsewhere: str, tmp_path: Path) -> None:
    other = hold(elsewhere)
    with hold(tmp_path), ThreadPoolExecutor(1) as pool:
        pool.submit(other.__enter__).result()
        lock_of(locate(elsewhere))
        check_held()
        with pytest.raises(StoppedError, match=TAKEN):
            pool.submit(check_held).result()
        pool.submit(other.__exit__, None, None, None).result()


def test_a_run_holds_a_directory_whose_lock_is_its_own(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch on HDFS moves the lock; or the answer to the request that wrote it was lost."""
    first, second = locate(elsewhere) / "a", locate(elsewhere) / "b"
    with hold(first):
        write(second / ".lock", (first / ".lock").read_bytes())
        with hold(second):
            check_held()
    swap = Location.swap

    def lost(place: Location, known: bytes | None, data: bytes) -> bool:
        swap(place, known, data)
        return False

    monkeypatch.setattr(Location, "swap", lost)
    with hold(first):
        check_held()
    assert content(first) == content(second) == {}


def test_the_lock_of_a_killed_run_is_taken_and_no_other_file(elsewhere: str) -> None:
    place = locate(elsewhere)
    killed = {"host": socket.gethostname(), "process": 2**22 + 1}
    for changed in (killed, {"renewed": time.time() - 7200}):
        lock_of(place, **changed)
        with hold(elsewhere) as was_killed:
            assert was_killed
            assert json.loads((place / ".lock").read_bytes())["process"] == os.getpid()
        assert place.entries() == {}
    for text in (b"mine", b'{"a": 1}', b'["run"]', b""):
        write(place / ".lock", text)
        with pytest.raises(UsageError, match="is not the lock of a run at a URL"), hold(elsewhere):
            pass
        assert content(place) == {".lock": text}


def test_temporary_files_of_killed_workers_are_deleted_on_hdfs(elsewhere: str) -> None:
    """A worker that is killed may have sent its file already, and a switch would move it with the cluster."""
    place, left = locate(elsewhere), [temporary_name("cdx-00000.gz"), temporary_name("a.cdx.gz")]
    stay = {".a.tmp", "x.7-01234567.tmp", temporary_name(".lock"), temporary_name(".cdxmill-7.probe"), "sub"}
    for name in (*left, *stay - {"sub"}, f"sub/{left[0]}"):
        write(place / name, b"x")
    with hold(place):
        there = place.entries().keys()
        write(place / left[1], b"x")
    assert there == stay | {".lock"} | (set() if place.properties.has_directories else set(left))
    with pytest.raises(KeyboardInterrupt), hold(place):
        write(place / left[0], b"x")
        raise KeyboardInterrupt
    assert place.entries().keys() == stay | (set() if place.properties.has_directories else set(left))


@pytest.mark.parametrize("elsewhere", ["s3"], indirect=True)
@pytest.mark.parametrize("answer", ["ignores", "refuses"])
def test_a_service_without_conditional_put_is_named(
    elsewhere: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    client = s3._client(os.getpid(), 1)

    def ignored(request: Any, **_: object) -> None:
        del request.headers["If-None-Match"]

    if answer == "ignores":
        client.meta.events.register("before-sign.s3.PutObject", ignored)
    else:  # as if 412 were 501: the service refuses the condition
        monkeypatch.setattr(s3, "_NOT_MET", -1)
        monkeypatch.setattr(s3, "_REFUSED", 412)
    with hold(elsewhere, notes.append):
        lock_of(locate(elsewhere))
        with pytest.raises(StoppedError, match=TAKEN):
            check_held()
    (note,) = notes
    assert "has no conditional PUT; make sure that no other run writes to this directory" in note


@pytest.fixture
def inputs(pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> dict[str, Path]:
    """An archive, an index of it and a cluster."""
    warc, cdx, cluster = pywb_warcs / "iana.warc.gz", tmp_path / "a.cdxj", tmp_path / "C"
    assert run_cdxmill("index", "-q", "-o", cdx, warc).returncode == 0
    assert run_cdxmill("zipnum", "-q", "-o", cluster, cdx).returncode == 0
    return {"warc": warc, "cdx": cdx, "cluster": cluster}


def test_every_command_that_writes_to_a_directory_holds_it(
    elsewhere: str, inputs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lock_of(locate(elsewhere))
    before = content(locate(elsewhere))
    warc, cluster = str(inputs["warc"]), str(inputs["cluster"])
    out = ["-q", "-o", elsewhere]
    for call in (
        ["index", *out, warc],
        ["recompress", "--to", "zst", *out, warc],
        ["scan", "--extract", "url", *out, warc],
        ["publish", "-q", cluster, elsewhere],
        ["copy", *out, cluster, "*.org"],
        ["zipnum", "--engine", "spark", *out, str(inputs["cdx"])],
        ["build", "--engine", "spark", *out, warc],
    ):
        assert main(call) == 2, call
        assert (
            f"{elsewhere}: another run writes to this directory (process 1 on elsewhere"
            in capsys.readouterr().err
        )
        assert content(locate(elsewhere)) == before
    (locate(elsewhere) / ".lock").remove()
    assert main(["publish", "-q", cluster, elsewhere]) == 0
    assert ".lock" not in locate(elsewhere).entries()


def test_a_run_that_has_lost_its_lock_does_not_switch(
    elsewhere: str, inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place = locate(f"{elsewhere}/C")
    other, old = tmp_path / "other", str(inputs["cluster"])
    (tmp_path / "b.cdxj").write_text('com,b)/ 2020 {"url": "http://b.com/"}\n')
    assert main(["zipnum", "-q", "-o", str(other), str(tmp_path / "b.cdxj")]) == 0
    assert main(["publish", "-q", old, str(place)]) == 0
    before = content(place)
    replace = ["publish", "-q", "--replace", str(other), str(place)]

    def taken(*words: Any) -> None:
        lock_of(place)
        put_in_place(*words)

    with monkeypatch.context() as patch:
        patch.setattr(publish, "put_in_place", taken)
        assert main(replace) == 3
    assert TAKEN in capsys.readouterr().err
    assert {**before, ".lock": b""} == {**content(place), ".lock": b""}
    (place / ".lock").remove()
    assert main(replace) == 0
    assert main(["lookup", str(place), "b.com"]) == 0
    assert ".lock" not in place.entries()
    assert {name for name in place.parent.entries() if name.startswith(".")} == set()


@pytest.mark.parametrize("command", ["publish", "copy"])
def test_a_run_that_has_lost_its_lock_finishes_no_file(
    command: str, elsewhere: str, inputs: dict[str, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Another run may have written a file of this name."""
    place, cluster = locate(f"{elsewhere}/{command}"), str(inputs["cluster"])
    archives = ["--archives", str(inputs["warc"].parent)]
    calls: dict[str, tuple[list[str], Any, str]] = {
        "publish": (["publish", cluster, str(place)], publish, "_finish"),
        "copy": (["copy", *archives, "-o", str(place), cluster, "*.org"], CopyOutput, "finish"),
    }
    call, owner, name = calls[command]
    finish = getattr(owner, name)

    def taken(*words: Any) -> None:
        lock_of(place)
        finish(*words)

    monkeypatch.setattr(owner, name, taken)
    assert main([*call, "-q", "-p", "1"]) == 3
    assert TAKEN in capsys.readouterr().err
    assert not [found for found in place.entries() if found.endswith((".warc.gz", "cluster.json"))]


@pytest.mark.parametrize("data", [b'{"run": "x"}', b'{"run": "x", "host": "h", "renewed": null}'])
def test_a_lock_that_does_not_say_who_holds_it_keeps_nobody_out(data: bytes, elsewhere: str) -> None:
    write(locate(elsewhere) / ".lock", data)
    with hold(elsewhere):
        check_held(60)
    assert content(locate(elsewhere)) == {}
