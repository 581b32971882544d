"""Every public function returns the failures of damaged inputs, and prints none of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

import cdxmill
from cdxmill import Failure


class Result(Protocol):
    """What a function returns."""

    @property
    def failures(self) -> list[Failure]: ...


Call = Callable[[Path, Path], Result]
CALLS: dict[str, Call] = {
    "index": lambda at, out: cdxmill.index(at / "cut.warc.gz", output=out, processes=1),
    "build": lambda at, out: cdxmill.build(at / "cut.warc.gz", output=out, processes=1),
    "add": lambda at, out: cdxmill.add(shutil.copytree(at / "C", out), [at / "cut.warc.gz"], processes=1),
    "merge": lambda at, out: cdxmill.merge([at / "C", at / "D"], output=out),
    "scan": lambda at, out: cdxmill.scan(at / "cut.warc.gz", output=out, processes=1),
    "count": lambda at, _: cdxmill.count("tags", at / "cut.warc.gz", processes=1),
    "count to a file": lambda at, out: cdxmill.count("tags", at / "cut.warc.gz", output=out, processes=1),
    "cat": lambda at, out: cdxmill.cat(at / "cut.warc.gz", table=out),
    "recompress": lambda at, out: cdxmill.recompress(at / "cut.warc.gz", output=out, processes=1),
    "verify": lambda at, _: cdxmill.verify(at / "D", processes=1),
    "verify archives": lambda at, _: cdxmill.verify(at / "C", archives=at, processes=1),
    "report": lambda at, _: cdxmill.report(at / "D", processes=1),
    "copy": lambda at, out: cdxmill.copy(at / "C", "*.iana.org", output=out, archives=at),
    "export": lambda at, out: cdxmill.export(at / "D", format="parquet", output=out, processes=1),
}


def test_failures_of_a_wacz_go_to_the_function_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.wacz").write_bytes(b"PK")
    for read in (cdxmill.captures, cdxmill.records):
        failures: list[Failure] = []
        assert list(read(tmp_path / "a.wacz", on_failure=failures.append)) == []
        assert len(failures) == 1
    assert capfd.readouterr() == ("", "")


@pytest.fixture(scope="module")
def damaged(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A truncated archive; the cluster C of a whole one that is gone; the cluster D with a truncated shard."""
    place = tmp_path_factory.mktemp("damaged")
    whole = Path(shutil.copy(pywb_warcs / "iana.warc.gz", place / "gone.warc.gz"))
    data = whole.read_bytes()
    (place / "cut.warc.gz").write_bytes(data[: len(data) // 8])
    cdxmill.build(whole, output=place / "C", shards=2, numlines=20, processes=1)
    whole.unlink()
    shard = shutil.copytree(place / "C", place / "D") / "cdx-00001.gz"
    shard.write_bytes(shard.read_bytes()[:-9])
    return place


@pytest.mark.parametrize("name", CALLS)
def test_failures_are_returned_and_nothing_is_printed(
    name: str, damaged: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert CALLS[name](damaged, tmp_path / "out").failures
    assert capfd.readouterr() == ("", "")
