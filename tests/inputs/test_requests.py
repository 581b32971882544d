"""An input is asked for once before it is read: behind a network each question is a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cdxmill.commands import sample as sample_command
from cdxmill.commands.clusters.verify import verify
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.inputs.cdx_files import take_inventory
from cdxmill.options.clusters import Sampling, Verifying
from cdxmill.running.failures import Failures
from cdxmill.storage import local
from cdxmill.tasks import sampling

from ..material.cdx_files import many_lines, write_gzip, write_plain
from ..storage.range_server import RangeServer, serving

FILES = 12


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with serving() as running:
        yield running


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files that are large enough for their lines to be guessed."""
    monkeypatch.setattr(sampling, "_SMALL", 1)
    lines = many_lines(6000)
    return [write_gzip(tmp_path / f"{number}.cdx.gz", lines[number::FILES], 3) for number in range(FILES)]


def served(server: RangeServer, paths: list[Path]) -> list[str]:
    for path in paths:
        server.add(f"/{path.name}", path.read_bytes())
    return [f"{server.url}/{path.name}" for path in paths]


def zipnum(paths: list[str], directory: Path) -> None:
    failures = Failures()
    build_cluster(paths, directory / "C", ZipnumOptions(shards=2, quiet=True), failures)
    assert failures.count == 0


def sample(paths: list[str], directory: Path) -> None:
    failures = Failures()
    assert len(sample_command.sample(Sampling(paths, shards=2, processes=1), failures)) == 1
    assert failures.count == 0


def largest(paths: list[Path]) -> list[Path]:
    """The files whose first lines are counted to guess the number of all lines."""
    return sorted(paths, key=lambda path: (path.stat().st_size, path.name))[-8:]


def test_zipnum_looks_at_a_file_behind_http_in_one_request_and_reads_it_in_two(
    server: RangeServer, paths: list[Path], tmp_path: Path
) -> None:
    zipnum(served(server, paths), tmp_path)
    assert Counter(path for _, path, _ in server.seen) == {f"/{path.name}": 3 for path in paths}
    for path in paths:
        assert server.ranges(f"/{path.name}")[0] == "bytes=0-65535"


def test_sample_asks_for_sizes_and_reads_the_starts_of_the_largest_files_only(
    server: RangeServer, paths: list[Path], tmp_path: Path
) -> None:
    sample(served(server, paths), tmp_path)
    for path in paths:
        size, *others = server.ranges(f"/{path.name}")
        assert size == "bytes=0-0"
        assert len(others) == (3 if path in largest(paths) else 2)
        assert others.count("bytes=0-65535") == (1 if path in largest(paths) else 0)


def test_sample_reads_no_starts_of_small_inputs(
    server: RangeServer, paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_SMALL", 8 << 20)
    sample(served(server, paths), tmp_path)
    assert Counter(path for _, path, _ in server.seen) == {f"/{path.name}": 3 for path in paths}
    assert not any(wanted == "bytes=0-65535" for _, _, wanted in server.seen)


def test_verify_asks_only_for_the_sizes_of_the_files_that_it_compares(
    server: RangeServer, paths: list[Path], tmp_path: Path
) -> None:
    urls = served(server, paths)
    zipnum(urls, tmp_path)
    server.seen.clear()
    failures = Failures()
    verify(Verifying(tmp_path / "C", against=urls), failures)
    assert failures.count == 0
    assert Counter(path for _, path, _ in server.seen) == {f"/{path.name}": 3 for path in paths}
    assert not any(wanted == "bytes=0-65535" for _, _, wanted in server.seen)


@pytest.mark.parametrize("command", [zipnum, sample])
def test_a_local_file_is_asked_for_once_and_opened_few_times(
    command: Callable[[list[str], Path], None],
    paths: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: Counter[str] = Counter()
    for name in ("status", "open_ranges"):
        monkeypatch.setattr(local, name, counting(getattr(local, name), asked, name))
    command(list(map(str, paths)), tmp_path)
    inputs = {str(path) for path in paths}
    opened = Counter({key: number for key, number in asked.items() if key.split(" ", 1)[1] in inputs})
    assert opened == {
        **{f"status {path}": 1 for path in inputs},
        **{f"open_ranges {path}": 1 if command is sample else 3 for path in inputs},
        **{f"open_ranges {path}": 2 for path in largest(paths) if command is sample},
    }


def counting(function: Callable[[str], Any], asked: Counter[str], name: str) -> Callable[[str], Any]:
    """The function; `asked` counts its calls for each path."""

    def counted(path: str) -> Any:
        asked[f"{name} {path}"] += 1
        return function(path)

    return counted


def test_a_file_without_a_capture_line_at_its_start_is_looked_at_further(
    server: RangeServer, tmp_path: Path
) -> None:
    path = write_plain(tmp_path / "a.cdx", [b""] * 500_000 + many_lines(50))
    other = write_plain(tmp_path / "b.cdx", [b"com,a)/ 2020 http://a.com/ 17 5 a.warc.gz"])
    with pytest.raises(Exception, match=r"a\.cdx is CDXJ, but .*b\.cdx is CDX with 6 fields"):
        zipnum(served(server, [path, other]), tmp_path)


def test_the_format_is_found_behind_a_server_that_answers_with_short_ranges(
    server: RangeServer, tmp_path: Path
) -> None:
    lines = [b" CDX N b a m s k r M S V g"] * 1000 + many_lines(50)
    path = write_plain(tmp_path / "a.cdx", lines)
    other = write_plain(tmp_path / "b.cdx", [b"com,a)/ 2020 http://a.com/ 17 5 a.warc.gz"])
    urls = served(server, [path, other])
    for file in server.files.values():
        file.most = 1000
    sources = take_inventory(urls, formats=True).sources
    assert [source.size for source in sources] == [path.stat().st_size, other.stat().st_size]
    assert [source.fields for source in sources] == [0, 6]
