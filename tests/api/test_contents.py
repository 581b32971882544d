"""The functions that read what is in archives give what their commands give; and the progress of all functions."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import cdxmill
from cdxmill import InputError, Step, UsageError

from ..conftest import RunCdxmill


@pytest.fixture
def iana(pywb_warcs: Path) -> Path:
    return pywb_warcs / "iana.warc.gz"


def files(directory: Path) -> dict[str, bytes]:
    """The outputs below a directory, without the records of the run."""
    found = (path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def test_outputs_are_those_of_the_commands(iana: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    api, command = tmp_path / "api", tmp_path / "command"
    cdx = tmp_path / "iana.cdxj"
    run_cdxmill("index", "-q", "-o", cdx, iana)
    scanned = cdxmill.scan(iana, output=api / "scan", where=["status=200"], extract="url,title", processes=1)
    run_cdxmill("scan", "-q", "-o", command / "scan", "--where", "status=200", "--extract", "url,title", iana)
    assert (scanned.archives, scanned.matches, scanned.records) == (1, 167, 343)
    counted = cdxmill.count("tags", iana, output=api / "tags.tsv")
    run_cdxmill("count", "tags", "-q", "-o", command / "tags.tsv", iana)
    assert (counted.counts, counted.counted) == (None, 20)
    packed = cdxmill.recompress(iana, output=api / "zst", offsets=True, level=3)
    run_cdxmill("recompress", "-q", "-o", command / "zst", "--offsets", "--level", "3", iana)
    assert packed.records == 343
    assert packed.after < packed.before
    moved = cdxmill.reindex(cdx, output=api / "cdx", offsets=api / "zst")
    run_cdxmill("reindex", "-q", "-o", command / "cdx", "--offsets", command / "zst", cdx)
    assert (moved.moved, moved.skipped) == (171, 0)
    table = cdxmill.cat(iana, table=api / "records.tsv")
    run_cdxmill("cat", iana, "--table", command / "records.tsv")
    assert table.records == 343
    assert len(files(api)) == 7
    assert files(api) == files(command)
    assert cdxmill.cat(iana, offset=334, length=2258).content.startswith(b"WARC/1.0\r\n")


def test_counts_without_an_output_are_those_of_the_file(iana: Path, tmp_path: Path) -> None:
    cdxmill.count("links", iana, output=tmp_path / "links.tsv")
    counts = cdxmill.count("links", iana).counts
    assert counts is not None
    lines = [b"%b\t%d" % pair for pair in counts.items()]
    assert lines == (tmp_path / "links.tsv").read_bytes().splitlines()


def test_a_dictionary_is_that_of_the_command(iana: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    done = cdxmill.train_dictionary(iana, output=tmp_path / "api.dict", size=64)
    run_cdxmill("train-dictionary", "-q", "-o", tmp_path / "command.dict", "--size", "64", iana)
    assert (tmp_path / "api.dict").read_bytes() == (tmp_path / "command.dict").read_bytes()
    assert done.size == (tmp_path / "api.dict").stat().st_size
    assert done.compressed < done.gzip < done.plain


def test_a_scan_counts_all_records(iana: Path, tmp_path: Path) -> None:
    """Also those that their header or their content refuses."""
    kinds = [record.kind for record in cdxmill.records(iana)]
    for number, (where, matches) in enumerate(
        {"type=request": b"request", "type=response": b"response"}.items()
    ):
        done = cdxmill.scan(iana, output=tmp_path / str(number), where=where, processes=1)
        assert (done.records, done.matches) == (len(kinds), kinds.count(matches))


@pytest.mark.parametrize("processes", [1, 2])
def test_the_progress_of_each_step_is_told(pywb_warcs: Path, tmp_path: Path, processes: int) -> None:
    warcs = [pywb_warcs / "iana.warc.gz", pywb_warcs / "example.warc.gz"]
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(warcs[0].read_bytes()[:99_999])
    steps: list[Step] = []
    cdxmill.build([*warcs, cut], output=tmp_path / "C", shards=2, processes=processes, progress=steps.append)
    last = {step.name: step for step in steps}
    assert list(last) == ["indexing", "sorting", "writing shards"]
    assert all(step.done == step.total > 0 for step in last.values())
    assert last["indexing"].bytes == last["indexing"].total_bytes > 0
    assert last["indexing"].failures == 1


@pytest.mark.parametrize("processes", [1, 2])
def test_what_the_progress_function_raises_ends_the_run(
    iana: Path, tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdxmill.running.processes.TICK", 0.0)

    def stop(step: Step) -> None:
        raise KeyError(step.name)

    with pytest.raises(KeyError, match="scanning"):
        cdxmill.scan(iana, output=tmp_path / "out", processes=processes, progress=stop)
    with pytest.raises(KeyError, match="indexing"):
        cdxmill.index(iana, output=tmp_path / "cdx", processes=processes, progress=stop)
    assert not list((tmp_path / "cdx").glob("*.gz"))
    assert cdxmill.index(iana, output=tmp_path / "cdx").captures == 171


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cdxmill.scan([], output="x"), "no input"),
        (lambda: cdxmill.scan("-", output="x"), "give a file"),
        (lambda: cdxmill.scan("a.warc", output="x", where="status"), "status"),
        (lambda: cdxmill.scan("a.warc", output="x", to="csv"), "invalid to 'csv'"),
        (lambda: cdxmill.count("pages", "a.warc"), "invalid WHAT 'pages'"),
        (lambda: cdxmill.count("tags"), "no input"),
        (lambda: cdxmill.count(inputs="a.warc", call=7), "invalid --call 7"),  # type: ignore[arg-type]
        (lambda: cdxmill.count(inputs="a.warc", call="steps"), "expected MODULE:FUNCTION"),
        (lambda: cdxmill.cat("a.warc"), "either"),
        (lambda: cdxmill.cat("a.warc", offset=1, table="t"), "either"),
        (lambda: cdxmill.recompress("a.warc", output="x", to="gz", level=13), "levels 1 to 12"),
        (lambda: cdxmill.reindex("a.cdxj", output="x", offsets=[]), "no input"),
        (lambda: cdxmill.train_dictionary("a.warc", output="x", size=0), "at least 1"),
    ],
)
def test_invalid_arguments_are_a_usage_error_in_one_line(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_an_offset_without_a_record_is_an_input_error(iana: Path) -> None:
    with pytest.raises(InputError, match="@335: no record"):
        cdxmill.cat(iana, offset=335)


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstandard.compress)])
def test_members_with_line_ends_alone_are_no_records(
    ending: str, pack: Callable[[bytes], bytes], iana: Path, tmp_path: Path
) -> None:
    record = cdxmill.cat(iana, offset=334, length=2258).content
    archive = tmp_path / f"a.warc.{ending}"
    archive.write_bytes(b"".join(map(pack, (b"\n", record, b"\r\n\r\n", record, record, b"\n"))))
    assert cdxmill.recompress(archive, output=tmp_path / "out", processes=1).records == 3
    assert cdxmill.scan(archive, output=tmp_path / "scan", processes=1).records == 3
