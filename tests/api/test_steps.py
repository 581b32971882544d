"""What a progress function is told at the end of each step: all items are done, and the failures of the step are counted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from cdxmill import Step
from cdxmill.running import progress


@pytest.fixture(scope="module")
def material(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A truncated archive and a whole one in `warcs`, a truncated CDX file and a whole one in `cdx`, and two clusters: `C`, and `D`
    with a corrupt block. `new` has another state of an archive, `tables` where its records are after a recompression.
    """
    place = tmp_path_factory.mktemp("material")
    iana = pywb_warcs / "iana.warc.gz"
    (place / "warcs").mkdir()
    (place / "warcs/cut.warc.gz").write_bytes(iana.read_bytes()[:99_999])
    shutil.copy(pywb_warcs / "example.warc.gz", place / "warcs")
    (place / "iana.warc.gz").symlink_to(iana)
    cdxmill.build(iana, output=place / "C", shards=2, numlines=20, processes=1)
    shutil.copytree(place / "C", place / "D")
    shard = bytearray((place / "D/cdx-00000.gz").read_bytes())
    second = (place / "D/part-00000").read_bytes().splitlines()[1].split(b"\t")
    shard[int(second[2]) + 40] ^= 255
    (place / "D/cdx-00000.gz").write_bytes(shard)
    cdxmill.index(iana, output=place / "cdx", processes=1)
    (lines,) = (place / "cdx").rglob("*.gz")
    (place / "cdx/cut.cdx.gz").write_bytes(lines.read_bytes()[:-300])
    example = place / "warcs/example.warc.gz"
    cdxmill.recompress(example, output=place / "tables", to="gz", offsets=True, processes=1)
    (place / "new").mkdir()
    (place / "new/example.warc.gz").write_bytes(example.read_bytes()[:-500])
    return place


CALLS: dict[str, tuple[Callable[[Path, dict[str, Any]], Any], dict[str, int]]] = {
    "index": (lambda at, how: cdxmill.index(at / "warcs", output="o", **how), {"indexing": 1}),
    "recompress": (
        lambda at, how: cdxmill.recompress(at / "warcs", output="o", to="gz", **how),
        {"recompressing": 1},
    ),
    "estimate": (
        lambda at, how: cdxmill.recompress_estimate(at / "warcs", to="gz", **how),
        {"estimating": 1},
    ),
    "scan": (lambda at, how: cdxmill.scan(at / "warcs", output="o", **how), {"scanning": 1}),
    "count": (lambda at, how: cdxmill.count("tags", at / "warcs", **how), {"counting tags": 1}),
    "train_dictionary": (
        lambda at, how: cdxmill.train_dictionary(
            [at / "warcs", at / "iana.warc.gz"], output="o", size=1, **how
        ),
        {"sampling": 1},
    ),
    "sample": (lambda at, how: cdxmill.sample(at / "cdx", output="o", shards=2, **how), {"sampling": 1}),
    "zipnum": (
        lambda at, how: cdxmill.zipnum(at / "cdx", output="o", shards=2, **how),
        {"sorting": 1, "writing shards": 0},
    ),
    "verify": (lambda at, how: cdxmill.verify(at / "D", **how), {"reading shards": 1}),
    "verify archives": (
        lambda at, how: cdxmill.verify(at / "C", archives=at / "warcs", **how),
        {"reading shards": 0, "reading records": 42},
    ),
    "report": (lambda at, how: cdxmill.report(at / "D", **how), {"reading lines": 1}),
    "export": (
        lambda at, how: cdxmill.export(at / "D", format="parquet", output="o", **how),
        {"exporting": 1},
    ),
    "copy": (
        lambda at, how: cdxmill.copy(at / "C", "*.iana.org", output="o", archives=at / "warcs", **how),
        {"copying": 171},
    ),
    "add": (
        lambda at, how: cdxmill.add(shutil.copytree(at / "C", "C"), [at / "warcs"], **how),
        {"indexing": 1, "sorting": 0, "changing shards": 0},
    ),
    "merge": (
        lambda at, how: cdxmill.merge([at / "C", at / "D"], output="o", numlines=20, **how),
        {"checking shards": 1, "merging shards": 0},
    ),
    "remove": (
        lambda at, how: cdxmill.remove(shutil.copytree(at / "C", "C"), "*.iana.org", keep_old=0, **how),
        {"changing shards": 0, "waiting for readers": 0},
    ),
    "build_prefix_index": (
        lambda at, how: cdxmill.build_prefix_index(at / "C", output="o", progress=how["progress"]),
        {"prefix-index": 0},
    ),
    "verify_archives": (
        lambda at, how: cdxmill.verify_archives(at / "warcs/example.warc.gz", at / "new", **how),
        {"comparing archives": 2},
    ),
    "reindex": (
        lambda at, how: cdxmill.reindex(at / "cdx", output="o", offsets=[at / "tables"], **how),
        {"reindexing": 1},
    ),
    "publish": (lambda at, how: cdxmill.publish(at / "C", "o", **how), {"copying shards": 0}),
}


OF_ITEMS = {"exporting", "checking shards", "merging shards", "waiting for readers", "prefix-index"}
"""Steps whose bar shows items: how many bytes they read is not known."""


@pytest.mark.parametrize("name", CALLS)
def test_at_its_end_a_step_has_done_all_and_counted_its_failures(
    name: str,
    material: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    steps: list[Step] = []
    call, failures = CALLS[name]
    call(material, {"processes": 1, "progress": steps.append})
    assert capfd.readouterr() == ("", ""), "only the function gets the progress"
    last = {step.name: step for step in steps if step.total}
    assert {step.name: step.failures for step in last.values()} == failures
    assert [step.done for step in last.values()] == [step.total for step in last.values()]
    assert {step.name for step in last.values() if not step.total_bytes} == OF_ITEMS & last.keys()
    first = next(iter(last.values()))
    if first.total_bytes:
        assert 0.97 * first.total_bytes <= first.bytes <= first.total_bytes, "the bar ends at its end"


def test_a_text_has_no_total(
    material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LOG_SECONDS", 0)
    steps: list[Step] = []
    result = cdxmill.export(material / "D", format="csv", output=tmp_path / "o.csv", progress=steps.append)
    assert (steps[-1].done, steps[-1].total, steps[-1].failures) == (result.captures, 0, 1)
    assert capfd.readouterr() == ("", "")
