"""`cdxmill copy`: the captures of queries, in new archives with an index, each once."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
import zstandard
from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from ..material.payloads import ENCODED
from ..material.processes import stopped_at
from .test_get import url_of, warc_record

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, RunCdxmill

SAMPLES = ("iana.warc.gz", "example.warc.gz", "example.arc.gz", "example.arc", "post-test.warc.gz",
           "httpbin-resource.warc.gz", "example-wget-1-14.warc.gz", "dupes.warc.gz")  # fmt: skip
ALL = ("*.iana.org", "*.example.com", "*.httpbin.org", "*.net", "*.com", "*.org")
RECORDS = [warc_record(url_of(name), *encoded) for name, encoded in ENCODED.items()]


class Copied(NamedTuple):
    """A record of a copy: what readers see of it."""

    kind: str
    url: str
    date: str
    content: bytes


@pytest.fixture(scope="module")
def source(build_cluster: BuildCluster, pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """warcs/ with archives of all kinds, and the cluster C of them."""
    directory = tmp_path_factory.mktemp("source")
    (directory / "warcs").mkdir()
    for name in SAMPLES:
        (directory / "warcs" / name).write_bytes((pywb_warcs / name).read_bytes())
    (directory / "warcs/made.warc").write_bytes(b"".join(RECORDS))
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    (directory / "warcs/made.warc.zst").write_bytes(b"".join(map(pack, RECORDS)))
    built = build_cluster(directory / "C", [directory / "warcs"], 2, "-q")
    assert (built.status, built.stderr) == (0, "")
    return directory


def lines_of(run_cdxmill: RunCdxmill, cluster: Path, *queries: str) -> list[bytes]:
    found = [run_cdxmill("lookup", cluster, query).stdout.splitlines() for query in queries]
    return sorted({line for lines in found for line in lines})


def copied(directory: Path) -> list[Copied]:
    """All records of the archives of a copy, read by warcio, without the first record of each."""
    found = []
    for path in sorted(directory.glob("*arc.gz")):
        with path.open("rb") as file:
            first, *rest = (
                Copied(
                    record.rec_type,
                    record.rec_headers.get_header("WARC-Target-URI") or "",
                    record.rec_headers.get_header("WARC-Date") or "",
                    record.raw_stream.read(),
                )
                for record in ArchiveIterator(file, no_record_parse=True, arc2warc=True)
            )
        assert first.kind in ("warcinfo", "arc_header")
        found += rest
    return found


def check_files(directory: Path, run_cdxmill: RunCdxmill) -> None:
    """Each archive has one valid record per member, and its index is that of `cdxmill index`."""
    archives = sorted(directory.glob("*arc.gz"))
    for path in archives:
        data, records = path.read_bytes(), 0
        while data:
            inflater = zlib.decompressobj(31)
            (record,) = ArchiveIterator(io.BytesIO(inflater.decompress(data)), no_record_parse=True)
            record.raw_stream.read()
            assert inflater.eof
            data, records = inflater.unused_data, records + 1
        if path.name.endswith(".warc.gz"):
            assert sum(1 for _ in FastIterator(io.BytesIO(path.read_bytes()), parse_http=False)) == records
        stem = path.name.rsplit(".", 2)[0]
        rows = (directory / f"{stem}.tsv").read_bytes().splitlines()
        assert len(rows) == records  # the names of the columns, and no warcinfo
        index = run_cdxmill("index", "-q", "-o", "-", path)
        assert (index.returncode, index.stdout) == (0, (directory / f"{stem}.cdxj").read_bytes())
    names = {path.name for path in directory.iterdir()} - {"copy-failures.tsv"}
    stems = {path.name.rsplit(".", 2)[0] for path in archives}
    assert names == {path.name for path in archives} | {
        f"{stem}.{end}" for stem in stems for end in ("tsv", "cdxj")
    }


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


@pytest.fixture(scope="module")
def whole(source: Path, run_cdxmill: RunCdxmill) -> Path:
    """A copy of everything."""
    done = run_cdxmill("copy", "-o", source / "whole", source / "C", *ALL)
    assert done.returncode == 0, done.stderr
    return source / "whole"


def test_a_copy_has_every_capture_once_and_unchanged(
    source: Path, whole: Path, run_cdxmill: RunCdxmill
) -> None:
    lines = lines_of(run_cdxmill, source / "C", *ALL)
    assert len(lines) > 200
    check_files(whole, run_cdxmill)
    found = Counter((one.kind, one.url, one.content) for one in copied(whole))
    wanted: Counter[tuple[str, str, bytes]] = Counter()
    for line in lines:
        row = json.loads(line.split(b" ", 2)[2])
        got = run_at(source / "warcs" / row["filename"], int(row["offset"]), int(row["length"]))
        wanted[got] += 1
    assert found == wanted


def run_at(archive: Path, offset: int, length: int) -> tuple[str, str, bytes]:
    """What warcio reads at a range of an archive."""
    data = archive.read_bytes()[offset : offset + length]
    if archive.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    record = next(iter(ArchiveIterator(io.BytesIO(data), no_record_parse=True, arc2warc=True)))
    return record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), record.raw_stream.read()


def test_gzip_members_are_copied_as_they_are(source: Path, whole: Path) -> None:
    data = (whole / "whole-00000.warc.gz").read_bytes()
    rows = [row.split("\t") for row in (whole / "whole-00000.tsv").read_text().splitlines()[1:]]
    members = [row for row in rows if row[0].endswith(".warc.gz")]
    assert len(members) > 150
    for name, offset, length, _, _, _, at, size in members:
        original = (source / "warcs" / name).read_bytes()[int(offset) : int(offset) + int(length)]
        assert data[int(at) : int(at) + int(size)] == original


def test_the_same_command_again_copies_nothing_and_changes_nothing(
    source: Path, whole: Path, run_cdxmill: RunCdxmill
) -> None:
    before = tree(whole)
    done = run_cdxmill("copy", "-o", whole, source / "C", *ALL)
    assert done.returncode == 0
    there = f"0 captures (0 B) in 0 files, {len(copied(whole))} captures already there; 0 requests"
    assert there.encode() in done.stderr
    assert tree(whole) == before


def test_the_number_of_processes_does_not_matter(
    source: Path, tmp_path: Path, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    found = []
    for number in ("1", "3"):
        directory = tmp_path / number / "copy"
        run_cdxmill("copy", "-q", "-p", number, "--size", "100K", "-o", directory, source / "C", *ALL)
        found.append({path.name: path.read_bytes() for path in directory.iterdir()})
        check_files(directory, run_cdxmill)
    assert found[0] == found[1]
    sizes = [len(data) for name, data in found[0].items() if name.endswith(".gz")]
    assert len(sizes) > 5
    assert max(sizes) < 120 << 10


@pytest.mark.parametrize(
    "options",
    [
        ("--filter", "=status:200"),
        ("--filter", "mime:image/", "--limit", "3"),
        ("--from", "2014", "--to", "20140126200900"),
        ("--collapse", "digest"),
    ],
)
def test_options_choose_the_captures_that_lookup_prints(
    options: tuple[str, ...], source: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    lines = run_cdxmill("lookup", source / "C", "*.iana.org", *options).stdout.splitlines()
    done = run_cdxmill("copy", "-q", "-o", tmp_path / "out", source / "C", "*.iana.org", *options)
    assert (done.returncode, done.stderr) == (0, b"")
    urls = sorted(json.loads(line.split(b" ", 2)[2])["url"] for line in lines)
    assert urls
    assert sorted(one.url for one in copied(tmp_path / "out")) == urls


def test_lines_come_from_a_file_or_standard_input(
    source: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    lines = run_cdxmill("lookup", source / "C", "*.iana.org", "--filter", "=status:200").stdout
    (tmp_path / "lines.cdxj").write_bytes(lines)
    warcs = ("--archives", source / "warcs")
    first = run_cdxmill("copy", "-q", "-o", tmp_path / "a", *warcs, tmp_path / "lines.cdxj")
    assert (first.returncode, first.stderr) == (0, b"")
    assert len(copied(tmp_path / "a")) == lines.count(b"\n")
    few = ("*.iana.org/domains/*", "--limit", "2")
    second = run_cdxmill("copy", "-q", "-o", tmp_path / "b", *warcs, tmp_path / "lines.cdxj", *few)
    assert (second.returncode, len(copied(tmp_path / "b"))) == (0, 2)
    import subprocess

    from ..material.processes import COMMAND

    third = subprocess.run(
        [COMMAND, "copy", "-q", "-o", tmp_path / "c", *warcs, "-"], input=lines, check=False
    )
    assert third.returncode == 0
    assert copied(tmp_path / "c") == copied(tmp_path / "a")


def test_several_clusters_are_copied_at_once_and_a_record_of_both_once(
    source: Path, whole: Path, tmp_path: Path, build_cluster: BuildCluster, run_cdxmill: RunCdxmill
) -> None:
    for name in ("iana.warc.gz", "dupes.warc.gz"):
        build_cluster(tmp_path / name[:4], [source / "warcs" / name], 1, "-q")
    both = f"{tmp_path}/iana,{tmp_path}/dupe,{source}/C"
    done = run_cdxmill("copy", "-o", tmp_path / "out", both, "*.iana.org", "*.example.com")
    assert done.returncode == 0
    assert Counter(copied(tmp_path / "out")) == Counter(
        one for one in copied(whole) if "iana.org" in one.url or "example.com" in one.url
    )


def test_arc_records_stay_arc_if_asked_for(source: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("copy", "-q", "--keep-arc", "-o", tmp_path / "out", source / "C", "*.example.com")
    assert (done.returncode, done.stderr) == (0, b"")
    check_files(tmp_path / "out", run_cdxmill)
    (arc,) = (tmp_path / "out").glob("*.arc.gz")
    assert gzip.decompress(arc.read_bytes()).startswith(b"filedesc://" + arc.name.encode() + b" 0.0.0.0 ")
    assert len(list(ArchiveIterator(io.BytesIO(arc.read_bytes())))) == 3
    same = [one for one in copied(tmp_path / "out") if one.url == "http://example.com/"]
    assert len(same) == 3


def test_dry_run_prints_sizes_and_reads_no_archive(
    source: Path, tmp_path: Path, run_cdxmill: RunCdxmill, build_cluster: BuildCluster
) -> None:
    call = ("copy", source / "C", "*.iana.org", "*.org", "--dry-run", "--archives", tmp_path)
    table = run_cdxmill(*call)
    assert (table.returncode, table.stderr) == (0, b"")
    head, *rows = [line.split() for line in table.stdout.decode().splitlines()]
    assert head == ["query", "captures", "archives", "bytes", "requests"]
    sizes = json.loads(run_cdxmill(*call, "--json").stdout)
    lines = lines_of(run_cdxmill, source / "C", "*.iana.org")
    parsed = [json.loads(line.split(b" ", 2)[2]) for line in lines]
    (iana, org), total = sizes["queries"], sizes["total"]
    assert iana["captures"] == len(lines)
    assert iana["archives"] == len({row["filename"] for row in parsed})
    assert iana["bytes"] == sum(int(row["length"]) for row in parsed)
    assert {key: value for key, value in org.items() if key != "query"} == total
    assert [row[1:] for row in rows] == [[str(one[key]) for key in head[1:]] for one in (iana, org, total)]


def test_dry_run_says_that_the_index_lacks_lengths(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    line = "com,example)/ 20200101000000 http://example.com/ text/html 200 A - 5 a.warc.gz\n"
    (tmp_path / "nine.cdx").write_text(f" CDX N b a m s k r V g\n{line}")
    done = run_cdxmill("copy", tmp_path / "nine.cdx", "--dry-run", "--json")
    assert (done.returncode, json.loads(done.stdout)["total"]["unknown"]) == (0, 1)
    assert done.stderr == b"note: 1 capture has no length in the index; bytes is less than will be copied\n"


def test_what_cannot_be_copied_is_listed_and_copied_by_a_later_run(
    source: Path, whole: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    warcs = tmp_path / "warcs"
    warcs.mkdir()
    for path in (source / "warcs").iterdir():
        (warcs / path.name).write_bytes(path.read_bytes())
    (warcs / "example.arc").unlink()
    data = (warcs / "iana.warc.gz").read_bytes()
    (warcs / "iana.warc.gz").write_bytes(data[:300_000] + b"damage" + data[300_006:600_000])
    call = ("copy", "-o", tmp_path / "out", "--archives", warcs, source / "C", *ALL)
    first = run_cdxmill(*call)
    assert first.returncode == 1
    failed = (tmp_path / "out/copy-failures.tsv").read_text().splitlines()
    assert len(failed) == len(copied(whole)) - len(copied(tmp_path / "out")) > 2
    assert first.stderr.count(b" cannot be read (No such file or directory)") == 1
    assert any("iana.warc.gz\t" in row and "http://www.iana.org/" in row for row in failed)
    check_files(tmp_path / "out", run_cdxmill)
    before = tree(tmp_path / "out")
    for name in ("example.arc", "iana.warc.gz"):
        (warcs / name).write_bytes((source / "warcs" / name).read_bytes())
    second = run_cdxmill(*call)
    assert second.returncode == 0
    after = tree(tmp_path / "out")
    assert {name: after[name] for name in before if name != "copy-failures.tsv"} == {
        name: data for name, data in before.items() if name != "copy-failures.tsv"
    }
    assert "copy-failures.tsv" not in after
    assert Counter(copied(tmp_path / "out")) == Counter(copied(whole))


def test_a_record_that_is_not_that_of_its_line_is_refused(
    source: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    lines = lines_of(run_cdxmill, source / "C", "*.iana.org/domains*")[:4]
    other = [
        lines[0].replace(b"iana.org/", b"iana.org/x/"),
        lines[1].replace(b" 2014", b" 2015", 1),
        lines[2].replace(b'"digest": "', b'"digest": "A')[:-1] + b"}",
        lines[3],
    ]
    row = json.loads(other[2].split(b" ", 2)[2])
    other[2] = other[2].replace(row["digest"].encode(), row["digest"][:32].encode())
    (tmp_path / "wrong.cdxj").write_bytes(b"\n".join(other) + b"\n")
    done = run_cdxmill(
        "copy", "-o", tmp_path / "out", "--archives", source / "warcs", tmp_path / "wrong.cdxj"
    )
    assert done.returncode == 1
    assert len(copied(tmp_path / "out")) == 1
    for reason in (b"the record is of ", b"the record is from ", b"the record has the digest "):
        assert done.stderr.count(reason) == 1
    assert b"1 capture (" in done.stderr


def test_a_payload_without_the_digest_of_its_header_is_refused(
    tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    record = warc_record("http://example.com/", b"", b"payload")
    claimed = record.replace(b"WARC-Date", b"WARC-Payload-Digest: sha1:" + b"A" * 32 + b"\r\nWARC-Date")
    (tmp_path / "a.warc.gz").write_bytes(
        gzip.compress(claimed) + gzip.compress(record.replace(b"22Z", b"23Z"))
    )
    lines = run_cdxmill("index", "-q", "-o", "-", tmp_path / "a.warc.gz").stdout
    (tmp_path / "a.cdxj").write_bytes(lines)
    done = run_cdxmill("copy", "-o", tmp_path / "out", "--archives", tmp_path, tmp_path / "a.cdxj")
    assert done.returncode == 1
    assert b"the payload does not have the digest AAAAAAAA" in done.stderr
    assert len(copied(tmp_path / "out")) == 1


def test_other_files_of_the_directory_stay(source: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    out = tmp_path / "out"
    out.mkdir()
    others = {"out-00000.warc.gz": b"mine", "out-00001.cdxj": b"mine", "notes.txt": b"mine"}
    others["out-00000.tsv"] = b"column\tother\n1\t2\n"
    for name, data in others.items():
        (out / name).write_bytes(data)
    done = run_cdxmill("copy", "-q", "-o", out, source / "C", "*.example.com")
    assert done.returncode == 0
    assert {name: (out / name).read_bytes() for name in others} == others
    assert (out / "out-00002.warc.gz").exists()


@pytest.fixture
def epoch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    yield


@pytest.mark.parametrize("pattern", [".work", ".work/unit-000003.json", ".out-*.tmp", "out-00000.tsv",
                                     "out-00002.warc.gz", "out-00004.cdxj"])  # fmt: skip
def test_a_killed_copy_is_completed_by_the_same_command(
    pattern: str, source: Path, tmp_path: Path, run_cdxmill: RunCdxmill, epoch: None
) -> None:
    def call(directory: Path) -> list[str | Path]:
        return ["copy", "-q", "-p", "2", "--size", "100K", "-o", directory, source / "C", *ALL]

    run_cdxmill(*call(tmp_path / "alone/out"))
    stopped_at(tmp_path / "killed/out", pattern, call(tmp_path / "killed/out"))
    done = run_cdxmill(*call(tmp_path / "killed/out"))
    assert (done.returncode, done.stderr) == (0, b"")
    check_files(tmp_path / "killed/out", run_cdxmill)
    assert {name: data for name, (data, _) in tree(tmp_path / "killed/out").items()} == {
        name: data for name, (data, _) in tree(tmp_path / "alone/out").items()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["C", "*.org"], b"give -o OUTPUT, or --dry-run"),
        (["C", "-o", "out"], b"no QUERY given"),
        (["C", "**", "-o", "out"], b"not a URL that can be looked up"),
        (["warcs", "*.org", "-o", "out"], b"not a ZipNum cluster"),
        (["C", "*.org", "-o", "out", "--size", "1"], b"--size 1: expected a size"),
        (["C", "*.org", "-o", "out", "--rate", "0"], b"--rate 0"),
        (["C", "-o", "out", "--input", "/dev/null"], b"/dev/null: has no queries"),
        (["-", "-o", "out", "--originals"], b"a pipe is read once"),
        (["C", "*.org", "-o", "out", "--archives", "absent"], b"absent: neither a directory of archives"),
        (["C", "*.org", "-o", "http://127.0.0.1/out"], b"cannot be written or listed"),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_written(
    arguments: list[str], message: bytes, source: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("copy", *arguments, cwd=source)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr
    assert not (source / "out").exists()
