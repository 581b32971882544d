"""recompressjob.py writes what `cdxmill recompress --manifest` writes. A corrupt archive does not affect others."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from cdxmill.outputs.proofs import proof_beside, read_proof
from cdxmill.storage.location import Location
from tests.commands.test_recompress import RECORDS, frame
from tests.conftest import RunCdxmill
from tests.jobs.conftest import RunJob


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> Path:
    """A manifest of two good archives, one that is truncated and one that is missing; a dictionary; what cdxmill writes."""
    directory = tmp_path_factory.mktemp("recompress")
    for name in ("example.arc.gz", "iana.warc.gz"):
        (directory / name).write_bytes((pywb_warcs / name).read_bytes())
    (directory / "cut.warc.gz").write_bytes((pywb_warcs / "example.warc.gz").read_bytes()[:-10])
    names = ("iana.warc.gz", "example.arc.gz", "cut.warc.gz", "absent.warc.gz")
    (directory / "warc.paths").write_text("".join(f"{name}\n" for name in names))
    samples: list[bytes | bytearray | memoryview] = [
        b"WARC/1.0\r\nWARC-Type: response\r\n%d" % number * 40 for number in range(900)
    ]
    (directory / "x.dict").write_bytes(zstandard.train_dictionary(4096, samples).as_bytes())
    options = ["-p", "1", "-o", "ours", "--manifest", "warc.paths", *OPTIONS]
    assert run_cdxmill("recompress", *options, cwd=directory).returncode == 1
    return directory


OPTIONS = ["--dictionary", "x.dict", "--index", "--offsets"]


def outputs(directory: Path) -> dict[str, bytes]:
    """All files but the record of outputs, which has times."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != ".outputs.tsv")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_job_writes_what_cdxmill_recompress_writes(runner: str, home: Path, run_job: RunJob) -> None:
    done = run_job("recompressjob", runner, "--output_bucket", runner, *OPTIONS, "warc.paths", cwd=home)
    assert done.returncode == 1, done.stderr
    assert sorted(line.split(b"\t")[0] for line in done.stdout.splitlines()) == [
        b"absent.warc.gz",
        b"cut.warc.gz",
    ]
    ours, written = outputs(home / "ours"), outputs(home / runner)
    assert sorted(ours.pop("failures.tsv").splitlines()) == sorted(written.pop("failures.tsv").splitlines())
    assert written == ours
    assert {"iana.warc.zst", "iana.warc.zst.proof.json", "iana.warc.zst.cdx.gz"} <= set(written)


def test_a_second_job_writes_what_is_missing_only(
    home: Path, run_job: RunJob, run_cdxmill: RunCdxmill
) -> None:
    (home / "good.paths").write_text("iana.warc.gz\nexample.arc.gz\n")
    first = run_job("recompressjob", "inline", "--output_bucket", "again", "good.paths", cwd=home)
    assert (first.returncode, first.stdout) == (0, b"")
    before = outputs(home / "again")
    kept = (home / "again/example.arc.zst").stat().st_ino
    (home / "again/iana.warc.zst").unlink()
    second = run_job("recompressjob", "inline", "--output_bucket", "again", "good.paths", cwd=home)
    assert (second.returncode, second.stdout) == (0, b"")
    assert outputs(home / "again") == before
    assert (home / "again/example.arc.zst").stat().st_ino == kept
    proof = read_proof(proof_beside(Location(str(home / "again/iana.warc.zst"))))
    assert proof is not None
    assert proof.records["response"] > 0
    checked = run_cdxmill("verify", "iana.warc.gz", "again/iana.warc.zst", cwd=home)
    assert checked.returncode == 0, checked.stderr


def test_another_output_is_not_replaced(home: Path, run_job: RunJob) -> None:
    (home / "taken").mkdir()
    (home / "taken/iana.warc.zst").write_bytes(b"mine")
    (home / "one.paths").write_text("iana.warc.gz\n")
    done = run_job(
        "recompressjob", "inline", "--output_bucket", "taken", "--level", "3", "one.paths", cwd=home
    )
    assert (home / "taken/iana.warc.zst").read_bytes() == b"mine"
    assert b"use --replace" in done.stderr


def test_the_other_jobs_read_archives_without_their_dictionary(
    home: Path, run_job: RunJob, run_cdxmill: RunCdxmill
) -> None:
    """The dictionary is taken out of the archive that `recompress` has written."""
    whole = (home / "ours/iana.warc.zst").read_bytes()
    (home / "bare").mkdir()
    (home / "bare/iana.warc.zst").write_bytes(whole[8 + int.from_bytes(whole[4:8], "little") :])
    (home / "bare.paths").write_text("bare/iana.warc.zst\n")
    failed = run_job("indexwarcsjob", "inline", "--cdx_bucket", "none", "bare.paths", cwd=home)
    assert (failed.returncode, failed.stdout.split(b"\t")[0]) == (1, b"bare/iana.warc.zst")
    given = ("--dictionary", "x.dict", "bare.paths")
    done = run_job("indexwarcsjob", "inline", "--cdx_bucket", "cdx", *given, cwd=home)
    assert done.returncode == 0, done.stderr
    ours = run_cdxmill(
        "index", "-q", "--dictionary", "x.dict", "-o", "-", "--manifest", "bare.paths", cwd=home
    )
    assert gzip.decompress(next((home / "cdx").rglob("*.cdx.gz")).read_bytes()) == ours.stdout != b""
    counts = run_job("servercountjob", "inline", *given, cwd=home)
    ours = run_cdxmill(
        "count", "-q", "-o", "-", "servers", "--dictionary", "x.dict", "bare/iana.warc.zst", cwd=home
    )
    assert (counts.returncode, counts.stdout) == (0, ours.stdout)


def test_failures_and_notes_of_a_kind_are_counted_after_the_first_ten(
    run_job: RunJob, tmp_path: Path, pywb_warcs: Path
) -> None:
    whole = (pywb_warcs / "example.warc.gz").read_bytes()
    (tmp_path / "bad.warc.gz").write_bytes((whole[:400] + whole) * 15)
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    names = [f"{number}.warc.zst" for number in range(12)]
    for name in names:
        (tmp_path / name).write_bytes(frame(RECORDS[0]) + skippable)
    (tmp_path / "list").write_text("".join(f"{name}\n" for name in (*names, "bad.warc.gz")))
    done = run_job("recompressjob", "inline", "--output_bucket", "out", "list", cwd=tmp_path)
    assert (done.returncode, done.stderr.count(b"not copied\n"), done.stderr.count(b"corrupt gzip")) == (
        1,
        11,
        11,
    )
    assert b"note: 2 more notes of this kind: N skippable zstd frame" in done.stderr
    assert b"bad.warc.gz: 5 more failures of this kind: corrupt gzip data" in done.stderr
