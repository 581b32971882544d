"""The classes that pywb reads archives and shards with: when lists are read again, what is read, and how long a start may take."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.clusters import pywb_reads, serve
from cdxmill.commands.clusters.pywb_reads import RecordLoader, Resolver, ShardLoader, _stream, resolver
from cdxmill.errors import InputError, StoppedError
from cdxmill.storage.location import locate

from ..material.clock import Clock
from ..material.open_files import open_files
from ..storage.range_server import serving


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pywb_reads, "time", made)
    monkeypatch.setattr(serve, "time", made)
    return made


def test_archives_that_are_added_to_a_cluster_are_found_at_once(clock: Clock, tmp_path: Path) -> None:
    listed = tmp_path / "archives.tsv"
    listed.write_text("a.warc.gz\t/one/a.warc.gz\n")
    found = Resolver(ArchivePlaces(None, locate(tmp_path)), "cdxmill0")
    assert found("a.warc.gz", None) == ["cdxmill0://0/a.warc.gz"]
    listed.write_text("a.warc.gz\t/one/a.warc.gz\t/two/a.warc.gz\n")
    assert found("a.warc.gz", None) == ["cdxmill0://0/a.warc.gz", "cdxmill0://1/a.warc.gz"]
    assert found("b.warc.gz", None) == ["cdxmill0://0/b.warc.gz"], "reading it says what is wrong"


def test_a_path_index_is_read_again_after_ten_seconds(clock: Clock, tmp_path: Path) -> None:
    named = tmp_path / "paths.tsv"
    named.write_text("a.warc.gz\t/one/a.warc.gz\n")
    found = Resolver(ArchivePlaces(str(named)), "s")
    assert len(found("a.warc.gz", None)) == 1
    named.write_text("a.warc.gz\t/one/a.warc.gz\t/two/a.warc.gz\n")
    for seconds, places in ((5, 1), (5, 1), (1, 2)):
        clock.now += seconds
        assert len(found("a.warc.gz", None)) == places


def test_the_first_request_opens_the_archives_whatever_the_clock_says(clock: Clock, tmp_path: Path) -> None:
    """The clock of a machine that has just started is near 0."""
    clock.now = 3
    found = Resolver(ArchivePlaces(str(tmp_path)), "s")
    assert found("a.warc.gz", None) == ["s://0/a.warc.gz"]


def test_requests_share_what_is_known_and_no_open_file(clock: Clock, pywb_warcs: Path) -> None:
    found = Resolver(ArchivePlaces(str(pywb_warcs)), "s")
    with closing(found.open()) as one, closing(found.open()) as two:
        assert one is not two
        place = one.locations("example.warc.gz")[0]
        one.read(place, 0, None)
        assert open_files(pywb_warcs) == ["example.warc.gz"]
    assert open_files(pywb_warcs) == []


def test_each_request_closes_the_archives_that_it_opened(pywb_warcs: Path) -> None:
    loader = RecordLoader(Resolver(ArchivePlaces(str(pywb_warcs)), "s"))
    stream = loader.load("s://0/example.warc.gz", 0, -1)
    assert open_files(pywb_warcs) == ["example.warc.gz"]
    stream.close()
    assert open_files(pywb_warcs) == []
    with pytest.raises(InputError):
        loader.load("s://0/example.warc.gz", 1, -1)
    assert open_files(pywb_warcs) == []


def test_the_second_place_of_an_archive_is_read_by_its_number(pywb_warcs: Path, tmp_path: Path) -> None:
    listed = tmp_path / "archives.tsv"
    listed.write_text(f"a.warc.gz\t{tmp_path}/absent\t{pywb_warcs}/example.warc.gz\n")
    loader = RecordLoader(Resolver(ArchivePlaces(str(listed)), "s"))
    with loader.load("s://1/a.warc.gz", 0, -1) as found:
        assert found.readline() == b"WARC/1.0\r\n"
    with pytest.raises(InputError, match="absent"):
        loader.load("s://0/a.warc.gz", 0, -1)


class Loaders:
    """pywb's BlockLoader: its loaders by scheme."""

    def __init__(self) -> None:
        self.loaders: dict[str, Any] = {"file": "its own", "http": "its own", "pkg": Package}


class Package:
    """pywb's loader of files of packages."""

    def __init__(self, **profile: object) -> None:
        self.profile = profile

    def load(self, url: str, offset: int, length: int) -> tuple[object, ...]:
        return url, offset, length, self.profile


def test_all_loaders_of_pywb_but_that_of_local_files_are_replaced(tmp_path: Path) -> None:
    loaders: Any = Loaders()
    one, two = (resolver(loaders, str(tmp_path), named) for named in (None, str(tmp_path)))
    known = loaders.loaders
    assert (one.scheme, two.scheme) == ("cdxmill3", "cdxmill9")
    remote = ("http", "https", "s3", "s3a", "hdfs", "webhdfs")
    assert set(known) == {"file", "pkg", *remote, one.scheme, two.scheme}
    assert known["file"] == "its own"
    assert [known[scheme] for scheme in remote] == [ShardLoader] * 6
    package = known["pkg"](cookie="x")
    assert package.load("pkg://pywb/a", 1, 2) == ("pkg://pywb/a", 1, 2, {"cookie": "x"})
    assert package.load("pkg://pywb/a")[1:3] == (0, -1)
    with pytest.raises(InputError, match="pkg://other/a: is no file of pywb"):
        package.load("pkg://other/a", 1, 2)
    (tmp_path / "archives.tsv").write_text("a\t/one/a\t/two/a\n")
    for found, places in ((one, 2), (two, 1)):
        assert found("a", None) == [f"{found.scheme}://{number}/a" for number in range(places)]
        assert isinstance(known[found.scheme](profile=1), RecordLoader)


@pytest.mark.parametrize(
    "found", [[], [b""], [b"abcdef"], [b"", b"abc", b"", b"d", b"ef", b""], [b"a"] * 6, [b"abcdefgh" * 9000]]
)
@pytest.mark.parametrize("size", [1, 4, 100_000])
def test_pieces_are_read_as_a_file_that_closes_what_they_come_from(found: list[bytes], size: int) -> None:
    closed: list[int] = []
    files = ExitStack()
    files.callback(closed.append, 1)
    stream = _stream(iter(found), files)
    assert stream.readable()
    whole = b"".join(found)
    assert b"".join(iter(lambda: stream.read(size), b"")) == whole
    assert stream.read() == b""
    assert closed == []
    stream.close()
    assert (closed, stream.closed, stream.raw.closed) == ([1], True, True)


@pytest.mark.parametrize("length", [-1, 0, 99_999])
def test_a_record_is_read_whole_whatever_length_its_line_has(length: int, pywb_warcs: Path) -> None:
    """pywb gives -1 if a line has none. Some indexers write a wrong one."""
    loader = RecordLoader(Resolver(ArchivePlaces(str(pywb_warcs)), "s"), cookie_maker=None)
    with loader.load("s://0/example.warc.gz", 0, length) as found:
        first = found.read()
    assert first.startswith(b"WARC/1.0\r\n")
    assert first.count(b"WARC/1.0\r\n") == 1
    with pytest.raises(InputError, match=r"absent\.warc\.gz"):
        loader.load("s://0/absent.warc.gz", 0, length)


def test_as_many_bytes_of_a_shard_are_read_as_asked_for() -> None:
    with serving() as web:
        web.add("/cdx-00000.gz", bytes(range(200)))
        for length, wanted in ((0, b""), (1, b"\x0a"), (-1, bytes(range(10, 200)))):
            with ShardLoader().load(f"{web.url}/cdx-00000.gz", 10, length) as found:
                assert found.readable()
                assert found.read() == wanted


def test_a_server_has_a_minute_to_start(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again and again, with a pause."""
    asked: list[float] = []

    def refuse(address: tuple[str, int], seconds: float) -> None:
        asked.append(clock.now)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.create_connection", refuse)
    too_late = pytest.raises(StoppedError, match="wayback did not start; see its messages above")
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process, too_late:
        serve._wait_until_up(process, "127.0.0.1", 1)
    assert 1055 < asked[-1] < 1061
    assert 100 < len(asked) < 1000


class Looking:
    """What `serve --watch` does while pywb runs: it looks `times` times, then it ends the server."""

    pause = 0.001

    def __init__(self, process: subprocess.Popen[bytes], times: int) -> None:
        self._process, self.left = process, times

    def look(self) -> None:
        self.left -= 1
        if not self.left and self._process.stdin is not None:
            self._process.stdin.close()


def test_a_directory_is_looked_at_again_and_again_until_the_server_ends() -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(5)"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        looking = Looking(process, 3)
        assert serve._wait(process, looking) == 5
    assert looking.left <= 0
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(6)"]) as process:
        assert serve._wait(process, None) == 6


def test_ctrl_c_reaches_this_command_and_not_its_server() -> None:
    before = signal.getsignal(signal.SIGINT)
    code = "import signal; raise SystemExit(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    with serve._running([sys.executable, "-c", code]) as process:
        assert signal.getsignal(signal.SIGINT) is before
        assert process.wait() == 1
    with pytest.raises(StoppedError, match="absent: cannot be started"), serve._running(["/absent"]):
        pass
    assert signal.getsignal(signal.SIGINT) is before
