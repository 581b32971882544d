"""`cdxmill train-dictionary`: the dictionary is one that zstd takes, and saves on files that it has not seen."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.commands.train_dictionary import Trained
from cdxmill.tasks.measuring import Promise, Savings
from cdxmill.tasks.record_sampling import Candidate, Candidates

from ..stages.records.test_read_zst import frames, members

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

PAGES = 120


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five archives of one crawl; the last one is for measuring."""
    directory = tmp_path_factory.mktemp("crawl")
    for number in range(4):
        path = directory / f"{number}.warc.gz"
        path.write_bytes(b"".join(make_records(WarcRecipe(number, PAGES, 4000), path.name)))
    return directory


@pytest.fixture(scope="module")
def trained(crawl: Path, run_cdxmill: RunCdxmill) -> Path:
    done = run_cdxmill("train-dictionary", "-o", crawl / "d", "--size", "64", *sorted(crawl.glob("[0-2].*")))
    assert done.returncode == 0, done.stderr
    first, second, third = done.stderr.decode().splitlines()
    assert first.startswith(f"{crawl}/d: 64.0 KiB, id ")
    assert "records of other files" in second
    assert third.startswith("recompress would make archives like these about ")
    return crawl / "d"


def test_its_id_may_be_used_by_anyone(trained: Path, crawl: Path, run_cdxmill: RunCdxmill) -> None:
    found = json.loads(Path(f"{trained}.json").read_bytes())
    data = trained.read_bytes()
    assert data[:8] == (0xEC30A437).to_bytes(4, "little") + found["id"].to_bytes(4, "little")
    assert 32768 <= found["id"] < 2**31
    assert len(data) == found["size"] <= 64 << 10
    assert zstandard.ZstdCompressionDict(data).dict_id() == found["id"]
    for number in ("32768", str(2**31 - 1)):
        again = run_cdxmill(
            "train-dictionary", "-o", crawl / "i", "--id", number, "--replace", crawl / "0.warc.gz"
        )
        assert again.returncode == 0
        assert zstandard.ZstdCompressionDict((crawl / "i").read_bytes()).dict_id() == int(number)
    for number in ("32767", str(2**31)):
        assert run_cdxmill("train-dictionary", "-o", crawl / "x", "--id", number, crawl).returncode == 2


def test_it_saves_on_a_file_that_it_has_not_seen(trained: Path, crawl: Path, tmp_path: Path) -> None:
    records = members(crawl / "3.warc.gz")
    plain, packed = len(frames(records)), len(frames(records, trained.read_bytes())) - (64 << 10)
    assert packed < 0.8 * plain


def test_nothing_is_promised_of_kinds_that_were_not_measured(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """Of one archive, some small records are measured, and half of its bytes are in five others."""
    given = ("-o", tmp_path / "d", pywb_warcs / "iana.warc.gz")
    done = run_cdxmill("train-dictionary", *given)
    *_, promised, unknown = done.stderr.decode().splitlines()
    assert re.search(r"(\d+)% of their bytes are of kinds of records that were not measured", unknown)
    options = ("-o", tmp_path / "z", "--dictionary", tmp_path / "d", pywb_warcs / "iana.warc.gz")
    made = run_cdxmill("recompress", *options).stderr.decode()
    saved = [float(re.search(r"([\d.]+) ?% smaller", text)[1]) for text in (promised, made)]  # type: ignore[index]
    assert saved[0] < saved[1]


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        (None, []),
        (Promise(0.97, 0.01), ["3.0% smaller"]),
        (Promise(1.02, 0), ["2.0% larger"]),
        (Promise(0.9, 0.02), ["10.0% smaller", "2% of their bytes are of kinds"]),
    ],
)
def test_the_summary_says_what_recompress_would_save(promise: Promise | None, told: list[str]) -> None:
    lines = str(Trained("d", 1, 2, 3, 4, 5, False, Savings(9, 8, 7, 6), promise, 10)).splitlines()[2:]
    assert len(lines) == len(told)
    assert all(text in line for text, line in zip(told, lines, strict=True))


def test_its_statistics_are_those_of_the_files(trained: Path) -> None:
    found = json.loads(Path(f"{trained}.json").read_bytes())
    training, held = found["training"], found["held_out"]
    assert len(held["archives"]) == 1
    assert training["records"] == 2 * (3 * PAGES + 1)
    assert held["records"] == 3 * PAGES + 1
    assert training["kinds"]["request application/http"]["records"] == 2 * PAGES
    assert sum(kind["records"] for kind in training["kinds"].values()) == training["records"]
    assert held["compressed"] < held["without"] < held["plain"]


def test_the_zstd_program_reads_it(trained: Path, crawl: Path, tmp_path: Path) -> None:
    zstd = shutil.which("zstd")
    if zstd is None:
        pytest.fail("install the zstd program")
    (record,) = members(crawl / "3.warc.gz")[2:3]
    (tmp_path / "r").write_bytes(record)
    subprocess.run([zstd, "-q", "-D", trained, tmp_path / "r"], check=True)
    whole = zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(trained.read_bytes()))
    assert whole.decompress((tmp_path / "r.zst").read_bytes()) == record
    (tmp_path / "f.zst").write_bytes(frames([record], trained.read_bytes())[8 + (64 << 10) :])
    done = subprocess.run([zstd, "-qdc", "-D", trained, tmp_path / "f.zst"], check=True, capture_output=True)
    assert done.stdout == record


def test_the_number_of_processes_changes_nothing(
    trained: Path, crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    archives = sorted(crawl.glob("[0-2].*"))
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", "--size", "64", "-p", "1", "-q", *archives)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "d").read_bytes() == trained.read_bytes()


@pytest.mark.parametrize("limit", [1, 5_000, 1 << 20])
def test_a_sample_is_the_records_of_lowest_priority_that_the_limit_allows(limit: int) -> None:
    rng = random.Random(limit)
    drawn = [Candidate(rng.random(), 0, n, 1, rng.randrange(1, 900), "") for n in range(2_000)]
    kept = Candidates(limit)
    for one in drawn:
        if kept.wants(one.priority):
            kept.add(one)
    sizes = accumulate(one.size for one in sorted(drawn))
    assert kept.sorted() == sorted(drawn)[: sum(size <= limit for size in sizes)]


def test_one_file_is_measured_with_other_records(
    crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", crawl / "0.warc.gz")
    assert done.returncode == 0
    assert b"other records of the file" in done.stderr


def test_too_small_records_are_too_few(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    record = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\n%02d\r\n\r\n"
    (tmp_path / "small.warc").write_bytes(b"".join(record % number for number in range(30)))
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", tmp_path / "small.warc")
    assert (done.returncode, b"too few records to train on (2" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_too_few_records_are_an_error(
    kept: int, crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "few.warc").write_bytes(b"".join(members(crawl / "0.warc.gz")[:kept]))
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", tmp_path / "few.warc")
    assert done.returncode == 2
    assert b"too few records to train on" in done.stderr
    assert not (tmp_path / "d").exists()
    assert not (tmp_path / "d.json").exists()


def test_damage_is_reported_and_the_rest_is_used(
    crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    data = (crawl / "0.warc.gz").read_bytes()
    (tmp_path / "cut.warc.gz").write_bytes(data[: len(data) // 2])
    done = run_cdxmill(
        "train-dictionary", "-o", tmp_path / "d", tmp_path / "cut.warc.gz", crawl / "1.warc.gz"
    )
    assert done.returncode == 1
    assert b"cut.warc.gz@" in done.stderr
    assert (tmp_path / "d").exists()


def test_what_exists_is_kept(trained: Path, crawl: Path, run_cdxmill: RunCdxmill) -> None:
    before = trained.read_bytes()
    done = run_cdxmill("train-dictionary", "-o", trained, crawl / "0.warc.gz")
    assert done.returncode == 2
    assert b"already exists; use --replace" in done.stderr
    assert trained.read_bytes() == before


def test_a_run_that_was_killed_is_completed_by_the_next_one(
    trained: Path, crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """The statistics get their name before the dictionary does."""
    command = ["train-dictionary", "-q", "-o", tmp_path / "d", "--size", "64", *sorted(crawl.glob("[0-2].*"))]
    (tmp_path / "d.json").write_text("[1]")
    assert run_cdxmill(*command).returncode == 2
    assert (tmp_path / "d.json").read_text() == "[1]"
    shutil.copy(f"{trained}.json", tmp_path / "d.json")
    assert run_cdxmill(*command).returncode == 0
    assert (tmp_path / "d").read_bytes() == trained.read_bytes()


def test_the_same_archive_given_twice_is_not_another_file(
    crawl: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    """Also under another name, and compressed in another way. Its records were both trained on and measured."""
    shutil.copyfile(crawl / "0.warc.gz", tmp_path / "copy.warc.gz")
    run_cdxmill("recompress", "-q", "-o", tmp_path / "zst", crawl / "0.warc.gz")
    again = [crawl / "0.warc.gz", tmp_path / "copy.warc.gz", tmp_path / "zst" / "0.warc.zst"]
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", "--size", "64", crawl / "0.warc.gz", *again)
    assert done.returncode == 0
    assert done.stderr.count(b"not used, because it has the same records as") == 2
    assert b"other records of the file" in done.stderr


def test_what_it_promises_is_what_recompress_does(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    """Held-out records were cut to 128 KiB: it promised to save 45 % of archives of which recompress saved 5 %."""
    for number in range(6):
        large = random.Random(number).randbytes(1 << 20)
        records = make_records(WarcRecipe(number, 60, 4000), f"{number}.warc.gz")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"
        fields = (
            b"WARC-Type: response\r\nWARC-Target-URI: http://a.b/%d\r\nWARC-Date: 2024-01-02T03:04:05Z"
            % number
        )
        video = b"WARC/1.0\r\n%b\r\nContent-Length: %d\r\n\r\n%b%b\r\n\r\n" % (
            fields,
            len(head) + len(large),
            head,
            large,
        )
        (tmp_path / f"{number}.warc.gz").write_bytes(b"".join([*records, gzip.compress(video)]))
    seen, others = (sorted(tmp_path.glob(names)) for names in ("[0-3].*", "[45].*"))
    done = run_cdxmill("train-dictionary", "-o", tmp_path / "d", "--size", "64", *seen)
    promised = float(re.findall(rb"about ([0-9.]+)% smaller", done.stderr)[0])
    assert (
        run_cdxmill("recompress", "-o", tmp_path / "z", "--dictionary", tmp_path / "d", *others).returncode
        == 0
    )
    new = sum(path.stat().st_size for path in (tmp_path / "z").glob("*.zst"))
    achieved = 100 * (1 - new / sum(path.stat().st_size for path in others))
    assert abs(promised - achieved) < 2
    assert achieved < 30
