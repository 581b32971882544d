"""A table at a URL has the bytes of a local one, replaces only its own files, and is whole after a run that was killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cdxmill import export
from cdxmill.cli.main import main
from cdxmill.cluster.own_run import start_run
from cdxmill.commands.exporting import staging_at_url
from cdxmill.errors import HeldError, StoppedError, UsageError
from cdxmill.running.lock import hold
from cdxmill.storage.location import Location, locate
from cdxmill.storage.walk import files_below

from ..material.cdx_files import write_plain

ROW = 'com,a)/%04d 20200101000000 {"url": "http://a.com/%04d", "filename": "%s"}'
ARCHIVES = ("crawl-data/A/segments/1/warc/a", "crawl-data/A/segments/1/robotstxt/a")
LIST = "_cdxmill/export.json"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of 3000 lines in blocks of 500, in the working directory."""
    monkeypatch.chdir(tmp_path)
    lines = [(ROW % (number, number, ARCHIVES[number % 2])).encode() for number in range(3000)]
    write_plain(tmp_path / "c.cdxj", lines)
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "--numlines", "500", "-o", "c", "c.cdxj"]) == 0
    return tmp_path / "c"


def contents(place: str) -> dict[str, bytes]:
    found = sorted(files_below(place).files)
    return {path.removeprefix(f"{place}/"): locate(path).read_bytes() for path in found}


def table(cluster: Path, output: str, query: str | None = None, **options: Any) -> dict[str, bytes]:
    assert export(cluster, query, format="parquet", output=output, **options).captures
    return contents(output)


CUT: Any = {"partition": True, "file_lines": 1000}


def test_bytes_are_those_of_a_local_table(cluster: Path, elsewhere: str) -> None:
    expected = table(cluster, "t", processes=1, **CUT)
    assert len(expected) == 7
    left = start_run(locate(f"{elsewhere}/t"), "0123abcd")  # by a run that was killed
    with (left / "part-00000.parquet").write_atomic() as file:
        file.write(b"PAR1")
    assert table(cluster, f"{elsewhere}/t", processes=2, **CUT) == expected
    with pytest.raises(UsageError, match="already exists; use --replace"):
        table(cluster, f"{elsewhere}/t")
    with (locate(elsewhere) / "t/mine").write_atomic() as file:
        file.write(b"precious")
    with pytest.raises(UsageError, match=r"has files that no export wrote \(mine\)"):
        table(cluster, f"{elsewhere}/t", replace=True)
    with hold(f"{elsewhere}/t"), ThreadPoolExecutor() as pool:
        assert isinstance(pool.submit(table, cluster, f"{elsewhere}/t").exception(), HeldError)
    assert contents(f"{elsewhere}/t") == {**expected, "mine": b"precious"}


def ends_before(step: int, count: list[int], change: Callable[..., Any]) -> Callable[..., Any]:
    def changed(*args: Any) -> Any:
        count[0] += 1
        if count[0] > step:
            raise StoppedError("killed")
        return change(*args)

    return changed


def test_a_run_that_was_killed_is_run_again(
    cluster: Path, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step of the switch: the list is the last file, and what is there without it is replaced."""
    place, real, count = f"{elsewhere}/t", staging_at_url._switch, [0]
    expected = table(cluster, "t", "a.com/1*")
    table(cluster, place, partition=True)

    def killed_before(step: int) -> Callable[..., None]:
        def switch(*args: Any) -> None:
            count[0] = 0
            for name in ("move", "remove", "remove_tree", "write_atomic"):
                patch.setattr(Location, name, ends_before(step, count, getattr(Location, name)))
            real(*args)
            patch.undo()

        return switch

    for step in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(staging_at_url, "_switch", killed_before(step))
            with suppress(StoppedError):
                table(cluster, place, "a.com/1*", replace=True)
                break
        found = contents(place)
        if LIST in found:
            assert set(json.loads(found[LIST])["files"]) <= set(found)
        else:
            assert table(cluster, place, "a.com/1*") == expected
    assert contents(place) == expected
    assert step == count[0] > 5
