"""`copy --related` and `--originals`: the records that belong to a capture."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from ..material.crawls import capture
from .test_copy import check_files, copied
from .test_get import with_dictionary

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, RunCdxmill

URLS = [f"http://example.com/{number}" for number in range(5)]
MEMBERS = [one for url in URLS for one in capture(url, "2024-05-17")]
PLAIN = [gzip.decompress(one) for one in MEMBERS]
REQUEST_LAST = [PLAIN[start + place] for start in range(0, len(PLAIN), 3) for place in (1, 0, 2)]
FAR = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (
    4 << 20,
    Random(1).randbytes(4 << 20),
)
"""So large that the dictionary is not fetched with the records behind it."""
ARCHIVES = {
    "a.warc.gz": b"".join(MEMBERS),
    "last.warc.gz": b"".join(map(gzip.compress, REQUEST_LAST)),
    "plain.warc": b"".join(PLAIN),
    "packed.warc.zst": b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(one) for one in PLAIN),
    "dictionary.warc.zst": with_dictionary([*PLAIN[:3], FAR, *PLAIN[3:]], is_packed=True),
}


def kinds(directory: Path) -> list[tuple[str, str]]:
    return [(one.kind, one.url) for one in copied(directory)]


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_request_and_the_notes_of_a_response_are_copied_with_it(
    name: str, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / name).write_bytes(ARCHIVES[name])
    build_cluster(tmp_path / "C", [tmp_path / name], 1, "-q")
    done = run_cdxmill("copy", "-q", "--related", "-o", tmp_path / "out", tmp_path / "C", URLS[1], URLS[3])
    assert (done.returncode, done.stderr) == (0, b"")
    check_files(tmp_path / "out", run_cdxmill)
    order = (
        ("response", "request", "metadata") if name == "last.warc.gz" else ("request", "response", "metadata")
    )
    assert kinds(tmp_path / "out") == [(kind, url) for url in (URLS[1], URLS[3]) for kind in order]
    (listed,) = (tmp_path / "out").glob("*-00000.tsv")
    places = [tuple(row.split("\t")[:2]) for row in listed.read_text().splitlines()[1:]]
    assert len(set(places)) == len(places) == 6, "each row has the place of its own record"
    assert b'"charset": "UTF-8"' in next((tmp_path / "out").glob("*.cdxj")).read_bytes()
    again = run_cdxmill("copy", "--related", "-o", tmp_path / "out", tmp_path / "C", URLS[1], URLS[3])
    assert b"0 records (0 B) in 0 files, 2 captures already there" in again.stderr
    without = run_cdxmill("copy", "-q", "-o", tmp_path / "one", tmp_path / "C", URLS[1])
    assert without.returncode == 0
    assert kinds(tmp_path / "one") == [("response", URLS[1])]


def test_records_of_all_types_that_have_lines_are_copied_with_the_index_of_the_copy(
    tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"".join(MEMBERS))
    lines = run_cdxmill("index", "-q", "--records", "all", "-o", "-", tmp_path / "a.warc.gz").stdout
    (tmp_path / "a.cdxj").write_bytes(lines)
    done = run_cdxmill("copy", "-q", "-o", tmp_path / "out", "--archives", tmp_path, tmp_path / "a.cdxj")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(kinds(tmp_path / "out")) == len(MEMBERS) == lines.count(b"\n")
    check_files(tmp_path / "out", run_cdxmill)


def test_records_of_other_captures_are_not_related(
    tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"".join(MEMBERS[1:]))
    build_cluster(tmp_path / "C", [tmp_path / "a.warc.gz"], 1, "-q")
    run_cdxmill("copy", "-q", "--related", "-o", tmp_path / "out", tmp_path / "C", URLS[0])
    assert kinds(tmp_path / "out") == [("response", URLS[0]), ("metadata", URLS[0])]


def test_every_request_of_a_real_archive_is_found(
    pywb_warcs: Path, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    names = ["example-wget-1-14.warc.gz", "post-test.warc.gz", "iana.warc.gz"]
    build_cluster(tmp_path / "C", [pywb_warcs / name for name in names], 1, "-q")
    run_cdxmill("copy", "-q", "--related", "-o", tmp_path / "out", tmp_path / "C", "*.com", "*.org")
    check_files(tmp_path / "out", run_cdxmill)
    wanted = 0
    for name in names:
        records = list(ArchiveIterator(io.BytesIO((pywb_warcs / name).read_bytes())))
        ids = {
            one.rec_headers.get_header("WARC-Record-ID")
            for one in records
            if one.rec_type in ("response", "revisit")
        }
        asked = {
            one.rec_headers.get_header("WARC-Concurrent-To")
            for one in records
            if one.rec_type in ("response", "revisit")
        }
        wanted += sum(
            one.rec_headers.get_header("WARC-Concurrent-To") in ids
            or one.rec_headers.get_header("WARC-Record-ID") in asked
            for one in records
            if one.rec_type == "request"
        )
    assert sum(kind == "request" for kind, _ in kinds(tmp_path / "out")) == wanted > 10


def test_the_original_of_a_revisit_is_copied_once(
    pywb_warcs: Path, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    build_cluster(tmp_path / "C", [pywb_warcs / "dupes.warc.gz"], 1, "-q")
    call = ("copy", "-q", "-o", tmp_path / "out", tmp_path / "C", "*.iana.org", "*.example.com")
    only = ("--filter", "=mime:warc/revisit")
    assert run_cdxmill(*call, *only).returncode == 0
    revisits = kinds(tmp_path / "out")
    assert {kind for kind, _ in revisits} == {"revisit"}
    done = run_cdxmill(*call[:2], "-o", tmp_path / "both", *call[4:], *only, "--originals")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 8)
    assert b"no source has the record that this revisit refers to (http://www.iana.org/" in done.stderr
    check_files(tmp_path / "both", run_cdxmill)
    found = kinds(tmp_path / "both")
    assert [one for one in found if one[0] == "revisit"] == revisits
    originals = [url for kind, url in found if kind == "response"]
    assert 0 < len(originals) == len(set(originals))


def test_a_later_run_adds_the_originals_of_revisits_that_are_copied(
    pywb_warcs: Path, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    build_cluster(tmp_path / "C", [pywb_warcs / "dupes.warc.gz"], 1, "-q")
    rest = (tmp_path / "C", "*.iana.org", "*.example.com", "--filter", "=mime:warc/revisit")
    whole = run_cdxmill("copy", "-q", "--originals", "-o", tmp_path / "whole", *rest)
    assert whole.returncode == 1  # the archive has one original of nine
    listed = (tmp_path / "whole/copy-failures.tsv").read_text()
    assert [row.split("\t")[0] for row in listed.splitlines()] == 8 * ["dupes.warc.gz"]
    call = ("copy", "-o", tmp_path / "out", *rest)
    assert run_cdxmill(*call).returncode == 0
    missing = run_cdxmill(*call, "--originals", "--archives", tmp_path)  # the archive is not there
    assert missing.returncode == 1
    assert b"dupes.warc.gz" in (tmp_path / "out/copy-failures.tsv").read_bytes()
    later = run_cdxmill(*call, "--originals")
    assert (later.returncode, (tmp_path / "out/copy-failures.tsv").read_text()) == (1, listed)
    check_files(tmp_path / "out", run_cdxmill)
    assert sorted(copied(tmp_path / "out")) == sorted(copied(tmp_path / "whole"))
    again = run_cdxmill(*call, "--originals")
    assert (again.returncode, b"0 captures (0 B) in 0 files" in again.stderr) == (1, True)


def test_a_damaged_copy_is_not_asked_for_originals(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    lines = run_cdxmill("index", "-q", "-o", "-", pywb_warcs / "dupes.warc.gz").stdout
    (tmp_path / "dupes.cdxj").write_bytes(lines)
    only = ("--archives", pywb_warcs, "--filter", "=mime:warc/revisit")
    call = ("copy", "-q", "-o", tmp_path / "out", tmp_path / "dupes.cdxj", *only)
    assert run_cdxmill(*call).returncode == 0
    archive = tmp_path / "out/out-00000.warc.gz"
    data = archive.read_bytes()
    archive.write_bytes(data[:400] + bytes(len(data) - 400))
    done = run_cdxmill(*call, "--originals")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
    assert b"out-00000.warc.gz: " in done.stderr and b"; move this file and its index away" in done.stderr


def test_an_original_may_be_in_another_source_and_missing_ones_are_listed(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    for name in ("dupes", "iana"):
        lines = run_cdxmill("index", "-q", "-o", "-", pywb_warcs / f"{name}.warc.gz").stdout
        (tmp_path / f"{name}.cdxj").write_bytes(lines)
    call = ("copy", "-q", "--originals", "--archives", pywb_warcs, "--filter", "=timestamp:20140127171239")
    alone = run_cdxmill(*call, "-o", tmp_path / "alone", tmp_path / "dupes.cdxj")
    listed = (tmp_path / "alone/copy-failures.tsv").read_text().splitlines()
    assert (alone.returncode, len(listed)) == (1, 4)
    assert Counter(kind for kind, _ in kinds(tmp_path / "alone")) == {"revisit": 4, "response": 1}
    assert listed[0].split("\t")[2].startswith("no source has the record that this revisit refers to")
    both = run_cdxmill(*call, "-o", tmp_path / "both", f"{tmp_path}/dupes.cdxj,{tmp_path}/iana.cdxj")
    assert (both.returncode, both.stderr) == (0, b"")
    assert Counter(kind for kind, _ in kinds(tmp_path / "both")) == {"revisit": 4, "response": 1 + 4}


def test_related_records_are_not_added_to_a_copy_without_them(
    tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"".join(MEMBERS))
    build_cluster(tmp_path / "C", [tmp_path / "a.warc.gz"], 1, "-q")
    out = tmp_path / "out"
    assert run_cdxmill("copy", "-q", "-o", out, tmp_path / "C", URLS[0]).returncode == 0
    before = sorted(out.iterdir())
    refused = run_cdxmill("copy", "--related", "-o", out, tmp_path / "C", URLS[0], URLS[1])
    assert refused.returncode == 2
    assert b"has 1 capture of this query without related records" in refused.stderr
    assert sorted(out.iterdir()) == before
    assert run_cdxmill("copy", "-q", "--related", "-o", out, tmp_path / "C", URLS[1]).returncode == 0
    assert kinds(out)[1:] == [("request", URLS[1]), ("response", URLS[1]), ("metadata", URLS[1])]


def test_captures_are_copied_by_a_prefix_b_tree(
    pywb_warcs: Path, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    build_cluster(tmp_path / "C", [pywb_warcs / "iana.warc.gz"], 1, "-q")
    made = run_cdxmill("prefix-index", "build", "-q", "-o", tmp_path / "iana.tree", tmp_path / "C")
    assert made.returncode == 0, made.stderr
    query = ("www.iana.org/domains/*", "--filter", "=status:200")
    warcs = ("--archives", pywb_warcs)
    for name, source in (("a", tmp_path / "iana.tree"), ("b", tmp_path / "C")):
        done = run_cdxmill("copy", "-q", "-o", tmp_path / name, *warcs, source, *query)
        assert (done.returncode, done.stderr) == (0, b"")
    assert copied(tmp_path / "a") == copied(tmp_path / "b") != []
