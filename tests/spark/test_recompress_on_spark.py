"""Archives that Spark has written again have the bytes and the proofs of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zstandard

from cdxmill.commands.per_archive.ask import recompress_asked
from cdxmill.options.packing import Recompressing
from cdxmill.running.failures import Failures
from cdxmill.running.processes import RunTasks
from cdxmill.spark.engine import Engine
from cdxmill.spark.jobs import RecompressRunner
from tests.conftest import RunCdxmill
from tests.spark.conftest import hashes


def written(
    warcs: Path, output: str | Path, run: RunTasks | None, **options: Any
) -> tuple[dict[str, str], list[str], str]:
    """The hashes of the outputs, what is reported, and the summary."""
    failures = Failures(printed=False)
    summary = recompress_asked(Recompressing(warcs, output=output, **options), failures, run)
    reported = [f"{one.path}@{one.offset}: {one.reason}" for one in sorted(failures.items)]
    return hashes(output), reported, str(summary)


def test_outputs_and_proofs_are_those_of_the_local_engine(
    engine: Engine, s3: str, warcs: Path, tmp_path: Path
) -> None:
    samples: list[Any] = [b"WARC/1.0\r\nWARC-Type: response\r\n%d" % number * 40 for number in range(900)]
    (tmp_path / "x.dict").write_bytes(zstandard.train_dictionary(4096, samples).as_bytes())
    options: dict[str, Any] = {"dictionary": tmp_path / "x.dict", "index": True, "offsets": True}
    run = RecompressRunner(engine, str(tmp_path))
    local = written(warcs, tmp_path / "local", None, **options)
    assert {name.partition(".")[2] for name in local[0]} >= {"warc.zst", "warc.zst.proof.json", "arc.zst"}
    assert "truncated" in local[1][0]
    assert written(warcs, tmp_path / "spark", run, **options) == local
    remote = written(warcs, f"{s3}/zst", run, **options)[0]
    del remote["_cut.warc.zst.failures"]  # on a disk, failures.tsv has them
    assert remote == local[0]


def test_the_dictionary_of_archives_that_lack_theirs_is_sent_to_the_nodes(
    pywb_warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    archive = pywb_warcs / "iana.warc.gz"
    dictionary = tmp_path / "x.dict"
    assert run_cdxmill("train-dictionary", "-q", "-o", dictionary, "--size", "64", archive).returncode == 0
    made = ("recompress", "-q", "-o", tmp_path / "zst", "--dictionary", dictionary, archive)
    assert run_cdxmill(*made).returncode == 0
    whole = (tmp_path / "zst/iana.warc.zst").read_bytes()
    bare = tmp_path / "bare.warc.zst"
    bare.write_bytes(whole[8 + int.from_bytes(whole[4:8], "little") :])
    call = ("index", "-q", "--dictionary", dictionary, bare, "-o")
    here, there = (
        run_cdxmill(*call, tmp_path / "here"),
        run_cdxmill(*call, tmp_path / "there", "--engine", "spark"),
    )
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    (one,), (other,) = ((tmp_path / name).glob("*.cdx.gz") for name in ("here", "there"))
    assert one.read_bytes() == other.read_bytes()


def test_a_second_run_writes_what_is_missing_only(engine: Engine, warcs: Path, tmp_path: Path) -> None:
    run = RecompressRunner(engine)
    (warcs / "cut.warc.gz").unlink()
    first = written(warcs, tmp_path / "out", run)[0]
    (tmp_path / "out/iana.warc.zst").unlink()
    again = written(warcs, tmp_path / "out", run)
    assert again[0] == first
    assert "of 1 archive, 1 up to date" in again[2]
    assert written(warcs, tmp_path / "out", None)[2].startswith("0 records of 0 archives, 2 up to date")


def test_an_estimate_needs_no_spark(warcs: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("recompress", "--estimate", "--engine", "spark", warcs)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"--estimate and --engine spark cannot be used together" in done.stderr
