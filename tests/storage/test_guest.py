"""cdxmill as a guest of other people's servers: who stops it, how long it waits, how fast it asks, and what it says."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import RefusedError, UntriedError, UsageError
from cdxmill.running.processes import run_tasks
from cdxmill.storage import hosts, patience
from cdxmill.storage.cache import open_known
from cdxmill.storage.location import locate
from cdxmill.version import __version__

from .range_server import RangeServer, Served
from .test_copy_far import record
from .web_file import BODY, STEP, A, read_all

ARCHIVES, PAGES = 12, 4


@pytest.fixture
def lines(tmp_path: Path, server: RangeServer) -> Path:
    """Index lines of pages in archives on a server: too far apart to be fetched together."""
    noise = random.Random(3)
    for number in range(ARCHIVES):
        pages = (record(f"http://h{number:02d}.com/{page}", noise.randbytes(20_000)) for page in range(PAGES))
        body = b"".join(pages)
        (tmp_path / f"{number:02d}.warc.gz").write_bytes(body)
        server.add(f"/{number:02d}.warc.gz", body)
    index = tmp_path / "all.cdxj"
    assert main(["index", "-q", "-o", str(index), *map(str, tmp_path.glob("*.warc.gz"))]) == 0
    found = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(found[::2]))
    return index


def copy(lines: Path, server: RangeServer, processes: int = 2) -> int:
    options = ["-q", "-p", str(processes), "-o", str(lines.parent / "out"), "--archives", server.url]
    return main(["copy", *options, str(lines)])


def copied(lines: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in (lines.parent / "out").glob("*.cdxj"))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_server_that_refuses_three_files_is_left_alone(
    processes: int, lines: Path, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of two processes, one may be refused three times while the other one still copies what it was given."""
    for file in list(server.files.values())[2:]:
        file.statuses = [403] * 99
    assert copy(lines, server, processes) == 3
    done, refused = copied(lines), Counter(path for _, path, _ in server.seen if server.files[path].statuses)
    assert 2 * PAGES // 2 - processes + 1 <= done <= 2 * PAGES // 2
    assert len(refused) <= hosts.TROUBLES * processes
    assert max(refused.values()) <= processes, "each process asks for a file once"
    host = server.url.removeprefix("http://")
    told = [line for line in capfd.readouterr().err.splitlines() if "not requested" in line]
    assert len(told) == 1, "one line for all"
    assert re.search(
        rf"^\d+ failures: not requested, because {host} refused 3 files in a row \(403\)", told[0]
    )
    listed = (lines.parent / "out/copy-failures.tsv").read_text().splitlines()
    assert len(listed) == ARCHIVES * PAGES // 2 - done
    for file in server.files.values():
        file.statuses = []
    assert copy(lines, server) == 0, "a later run continues"
    assert copied(lines) == ARCHIVES * PAGES // 2


def test_missing_files_and_refusals_with_answers_between_stop_nothing(
    lines: Path, server: RangeServer
) -> None:
    for number, file in enumerate(server.files.values()):
        file.statuses = [[403] * 99, [404] * 99, []][number % 3]
    assert copy(lines, server, 1) == 3
    assert copied(lines) == ARCHIVES // 3 * PAGES // 2
    assert {path for _, path, _ in server.seen} == set(server.files)


def test_index_leaves_it_alone_too(
    lines: Path, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for file in server.files.values():
        file.statuses = [403] * 99
    out = lines.parent / "cdx"
    assert (
        main(["index", "-q", "-p", "1", "-o", str(out), *(server.url + path for path in server.files)]) == 3
    )
    assert len({path for _, path, _ in server.seen}) == hosts.TROUBLES
    assert "9 failures: not requested" in capfd.readouterr().err
    assert len((out / "failures.tsv").read_text().splitlines()) >= ARCHIVES


def test_a_bucket_that_refuses_three_archives_is_left_alone(
    lines: Path, server: RangeServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    urls = [f"s3://away/{number}.warc.gz" for number in range(ARCHIVES)]
    for url in urls:
        server.add(url.removeprefix("s3:/"), b"").statuses = [403] * 99
        with pytest.raises(RefusedError):  # so S3 answers for a missing file, too
            locate(url).exists()
    server.seen.clear()
    assert main(["index", "-q", "-p", "1", "-o", str(lines.parent / "cdx"), *urls]) == 3
    assert len({path for _, path, _ in server.seen}) == hosts.TROUBLES
    told = f"{ARCHIVES - hosts.TROUBLES} failures: not requested, because s3://away refused 3 files in a row"
    assert told in capfd.readouterr().err


def test_a_server_of_ones_own_may_refuse(
    lines: Path, server: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_POLITE", "off")
    for file in list(server.files.values())[:5]:
        file.statuses = [403] * 99
    assert copy(lines, server) == 3
    assert copied(lines) == (ARCHIVES - 5) * PAGES // 2


@pytest.mark.usefixtures("hurry")
def test_a_dead_server_is_given_up_once(lines: Path, server: RangeServer) -> None:
    for file in server.files.values():
        file.statuses = [503] * 999
    assert copy(lines, server, 1) == 3
    assert len(server.seen) == patience.TRIES
    with pytest.raises(UntriedError, match=r"not requested, because .* did not answer \(503\); run it again"):
        read_all(server.url + "/00.warc.gz")


def test_one_broken_file_costs_no_other(lines: Path, server: RangeServer, slept: list[float]) -> None:
    server.files["/00.warc.gz"].statuses = [500] * 999
    assert copy(lines, server, 1) == 3
    assert copied(lines) == (ARCHIVES - 1) * PAGES // 2
    assert len(server.ranges("/00.warc.gz")) == patience.TRIES


def test_a_server_that_has_worked_is_asked_longer(
    server: RangeServer, file: Served, slept: list[float]
) -> None:
    assert read_all(server.url + A) == BODY
    file.statuses = [503] * (patience.MORE_TRIES - 1)
    assert read_all(server.url + A) == BODY
    assert 200 < sum(slept) < patience.PATIENCE


def test_all_wait_as_long_as_one_is_told(server: RangeServer, file: Served, slept: list[float]) -> None:
    file.statuses, file.retry_after = [503], "7"
    server.add("/b", BODY)
    assert read_all(server.url + A, STEP) == BODY
    slept.clear()
    assert read_all(server.url + "/b", len(BODY)) == BODY
    assert 6 < slept[0] <= 7.6


def test_the_hosts_of_others_get_so_many_requests_per_second(
    server: RangeServer, file: Served, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(number: int) -> None:
        with open_known(server.url + A) as read_at:
            for at in range(number):
                assert read_at(at, 1) == BODY[at : at + 1]

    ask(100)
    assert not slept, "loopback is the user's own"
    monkeypatch.setattr("cdxmill.storage.web.http_file.is_own", lambda url: False)
    ask(60)
    assert not slept, "a burst is free"
    ask(20)
    assert 1 < slept[-1] < 1.7, "16 requests too many at 10 per second, and none of the waits was a real one"
    monkeypatch.setenv("CDXMILL_POLITE", "off")
    slept.clear()
    ask(20)
    assert not slept


def test_an_archive_without_ranges_is_downloaded_once(
    lines: Path, server: RangeServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for file in server.files.values():
        file.knows_ranges = False
    assert copy(lines, server, 3) == 0
    assert copied(lines) == ARCHIVES * PAGES // 2
    assert len(server.seen) <= ARCHIVES * (3 + 1), "each process may ask once for a range"
    assert capfd.readouterr().err.count("does not support ranges, so whole archives are downloaded") == 1
    assert not list(lines.parent.rglob("whole-*"))


def test_polite_is_on_or_off(server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdxmill.storage.web.http_file.is_own", lambda url: False)
    monkeypatch.setenv("CDXMILL_POLITE", "no")
    with pytest.raises(UsageError, match="CDXMILL_POLITE=no: must be on or off"):
        read_all(server.url + A)


def test_requests_say_who_asks(server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    home = "https://github.com/cdxmill/cdxmill"
    locate(server.url + A).status()
    assert server.request_headers[-1]["user-agent"] == f"cdxmill/{__version__} (+{home})"
    monkeypatch.setenv("CDXMILL_CONTACT", "me@example.org")
    locate(server.url + A).status()
    assert server.request_headers[-1]["user-agent"] == f"cdxmill/{__version__} (+{home}; me@example.org)"
    monkeypatch.setenv("CDXMILL_CONTACT", "me\nX: y")
    with pytest.raises(UsageError, match="CDXMILL_CONTACT"):
        locate(server.url + A).status()


def test_a_log_says_once_that_a_server_is_asked_again(
    server: RangeServer,
    slept: list[float],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "_LONG", 1.0)
    server.add("/a.warc.gz", b"").statuses = [502] * 99
    assert main(["index", "-q", "-o", "-", f"{server.url}/a.warc.gz"]) == 3
    host = server.url.removeprefix("http://")
    told = [line for line in capfd.readouterr().err.splitlines() if "tried again" in line]
    assert [re.sub(r"for up to .*", "", line) for line in told] == [f"{host}: 502; tried again "]


def test_unsure_files_may_be_refused(server: RangeServer) -> None:
    for number in range(5):
        server.add(f"/{number}", b"").statuses = [403]
        assert not locate(f"{server.url}/{number}").exists()
    server.add(A, BODY)
    assert locate(server.url + A).read_bytes() == BODY


def test_locks_of_a_killed_process_end(server: RangeServer, file: Served) -> None:
    """The rules are kept in a file that all processes share; a process that dies leaves no lock."""
    hosts.share()
    child = os.fork()
    if not child:
        with hosts._table().changing("a"):
            os._exit(0)
    os.waitpid(child, 0)
    hosts.refused("a", "u", 403)
    child = os.fork()
    if not child:
        for number in range(2):
            hosts.refused("a", f"v{number}", 403)
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(hosts.GivenUp):
        hosts.wait_for_turn("a", None)


def test_what_one_process_of_a_run_learns_of_a_server_all_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_tables", [])  # nothing is known before the run

    def asking(number: int) -> None:
        hosts.refused("a", f"u{number}", 403)

    assert len(list(run_tasks(asking, range(hosts.TROUBLES), 2, lambda: None))) == hosts.TROUBLES
    with pytest.raises(hosts.GivenUp):
        hosts.wait_for_turn("a", None)
