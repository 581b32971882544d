"""`cdxmill get`: a record, its headers or its payload, by a URL in a cluster or an offset in an archive."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from warcio.archiveiterator import ArchiveIterator

from cdxmill.commands.get import get_record
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.options.records import Getting
from cdxmill.search.originals import first_original
from tests.storage.range_server import serving

from ..material.clusters import shards_of
from ..material.payloads import ENCODED, PAYLOADS

if TYPE_CHECKING:
    from tests.conftest import BuildCluster, RunCdxmill


def url_of(name: str) -> str:
    return f"http://example.com/{name.replace(' ', '-')}"


def warc_record(url: str, fields: bytes, payload: bytes, date: str = "2024-05-17T23:41:22Z") -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%b\r\n%b" % (fields, payload)
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{zlib.crc32((url + date).encode())}>\r\n"
        f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


RECORDS = {name: warc_record(url_of(name), *encoded) for name, encoded in ENCODED.items()}


def with_dictionary(records: list[bytes], is_packed: bool) -> bytes:
    """A zst archive whose first frame is a dictionary, as it is or compressed."""
    raw = b"".join(records)[:4096]
    dictionary = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packer = zstandard.ZstdCompressor(dict_data=dictionary, write_checksum=True, write_content_size=True)
    held = zstandard.compress(raw) if is_packed else raw
    frame = b"\x5d\x2a\x4d\x18" + len(held).to_bytes(4, "little") + held
    return frame + b"".join(map(packer.compress, records))


WRITERS: dict[str, Callable[[list[bytes]], bytes]] = {
    "a.warc.gz": lambda records: b"".join(map(gzip.compress, records)),
    "a.warc": b"".join,
    "a.warc.zst": lambda records: b"".join(
        map(zstandard.ZstdCompressor(write_checksum=True).compress, records)
    ),
    "b.warc.zst": lambda records: with_dictionary(records, False),
    "c.warc.zst": lambda records: with_dictionary(records, True),
}


@pytest.fixture(scope="module", params=WRITERS)
def made(
    request: pytest.FixtureRequest, build_cluster: BuildCluster, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """warcs/ with one archive of RECORDS, and the cluster C of it."""
    directory = tmp_path_factory.mktemp("get")
    (directory / "warcs").mkdir()
    (directory / "warcs" / request.param).write_bytes(WRITERS[request.param](list(RECORDS.values())))
    built = build_cluster(directory / "C", [directory / "warcs"], 2, "-q")
    assert (built.status, built.stderr) == (0, "")
    return directory


def rows(cluster: Path) -> list[dict[str, str]]:
    lines = b"".join(shards_of(cluster)).split(b"\n")[:-1]
    return [
        {"timestamp": line.split(b" ")[1].decode(), **json.loads(line.split(b" ", 2)[2])} for line in lines
    ]


def got(directory: Path, url: str, **options: object) -> bytes:
    """The capture of a URL in the folder's cluster."""
    asked = Getting(directory / "C", url, archives=directory / "warcs", **options)  # type: ignore[arg-type]
    return b"".join(get_record(asked))


@pytest.mark.parametrize("name", RECORDS)
def test_a_capture_gives_its_record_headers_and_payload(name: str, made: Path) -> None:
    record = RECORDS[name]
    head = record[: record.index(b"\r\n\r\n", record.index(b"HTTP/1.1")) + 4]
    assert got(made, url_of(name)) == record
    assert got(made, url_of(name), form="headers") == head
    assert got(made, url_of(name), form="payload") == ENCODED[name][1]
    assert got(made, url_of(name), form="payload", decode=True) == PAYLOADS[name]


def test_an_offset_in_an_archive_gives_its_record(made: Path, run_cdxmill: RunCdxmill) -> None:
    (archive,) = (made / "warcs").iterdir()
    by_url = {url_of(name): record for name, record in RECORDS.items()}
    for row in rows(made / "C"):
        for length in (int(row["length"]), None):
            place: dict[str, Any] = {"offset": int(row["offset"]), "length": length}
            assert b"".join(get_record(Getting(archive, **place))) == by_url[row["url"]]
            assert b"".join(get_record(Getting(archive.name, archives=made / "warcs", **place)))
    done = run_cdxmill("get", archive, "--offset", row["offset"], "--length", row["length"], "--payload")
    assert (done.returncode, done.stderr) == (0, b"")
    assert by_url[row["url"]].endswith(done.stdout + b"\r\n\r\n")


def test_ranges_that_are_not_one_record_are_reported(made: Path) -> None:
    (archive,) = (made / "warcs").iterdir()
    places = sorted((int(row["offset"]), int(row["length"])) for row in rows(made / "C"))
    (offset, length), (following, _) = places[2:4]
    for wrong, size in (
        (offset + 1, length - 1),
        (offset, length - 9),
        (offset, following - offset + 30),
        (10**9, 7),
    ):
        with pytest.raises(InputError, match="no record of"):
            b"".join(get_record(Getting(archive, offset=wrong, length=size)))


def test_a_corrupt_record_is_reported_before_anything_is_printed(
    made: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (archive,) = (made / "warcs").iterdir()
    if archive.suffix == ".warc":
        return
    row = rows(made / "C")[0]
    data = bytearray(archive.read_bytes())
    data[int(row["offset"]) + int(row["length"]) // 2] ^= 1
    (tmp_path / archive.name).write_bytes(data)
    done = run_cdxmill("get", made / "C", row["url"], "--archives", tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"{archive.name}@{row['offset']}: no record of {row['length']} bytes: ".encode() in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_every_sample_s_records_are_those_that_warcio_reads(
    build_cluster: BuildCluster, pywb_warcs: Path, tmp_path: Path
) -> None:
    names = ["iana.warc.gz", "example.warc.gz", "example.arc.gz", "example.arc", "post-test.warc.gz",
             "httpbin-resource.warc.gz", "example-wget-1-14.warc.gz"]  # fmt: skip
    build_cluster(tmp_path / "C", [pywb_warcs / name for name in names], 2, "-q", "--records", "all")
    lines = [row for row in rows(tmp_path / "C") if row.get("mime") != "warc/revisit"]
    assert len(lines) > 200
    for row in lines:
        place: dict[str, Any] = {"offset": int(row["offset"]), "length": int(row["length"])}
        with (pywb_warcs / row["filename"]).open("rb") as file:
            file.seek(place["offset"])
            record = next(iter(ArchiveIterator(file, no_record_parse=False)))
            decoded = record.content_stream().read()
        asked = Getting(row["filename"], archives=pywb_warcs, form="payload", decode=True, **place)
        assert b"".join(get_record(asked)) == decoded, row
        whole = b"".join(get_record(Getting(row["filename"], archives=pywb_warcs, **place)))
        again = next(iter(ArchiveIterator(io.BytesIO(whole), arc2warc=False)))
        assert again.rec_headers.get_header("WARC-Target-URI") == record.rec_headers.get_header(
            "WARC-Target-URI"
        )


@pytest.fixture(scope="module")
def dated(build_cluster: BuildCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three captures of one page and a revisit of the second."""
    directory = tmp_path_factory.mktemp("dated")
    (directory / "warcs").mkdir()
    url, digest = url_of("page"), b"WARC-Payload-Digest: sha1:%b\r\n"
    records = []
    for year, text in (("2020", b"first"), ("2021", b"second"), ("2023", b"fourth")):
        record = warc_record(url, b"", text, f"{year}-01-01T00:00:00Z")
        records.append(
            record.replace(
                b"Content-Type: application",
                digest % (b"ABCDEFGH" * 4 if year == "2021" else b"234567AB" * 4)
                + b"Content-Type: application",
                1,
            )
        )
    revisit = (
        records[1]
        .replace(b"response\r\nWARC-Rec", b"revisit\r\nWARC-Rec")
        .replace(b"2021-01-01", b"2022-01-01")
    )
    revisit = revisit.replace(
        b"Content-Type: application",
        b"WARC-Refers-To-Date: 2021-01-01T00:00:00Z\r\nContent-Type: application",
        1,
    )
    (directory / "warcs/d.warc.gz").write_bytes(b"".join(map(gzip.compress, [*records, revisit])))
    assert build_cluster(directory / "C", [directory / "warcs"], 1, "-q").stderr == ""
    return directory


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (None, b"fourth"),
        ("202003", b"first"),
        ("20210101000000", b"second"),
        ("2019", b"first"),
        ("20250607", b"fourth"),
    ],
)
def test_the_nearest_capture_is_taken_and_without_a_timestamp_the_newest(
    timestamp: str | None, text: bytes, dated: Path, run_cdxmill: RunCdxmill
) -> None:
    time = [timestamp] if timestamp else []
    done = run_cdxmill("get", dated / "C", url_of("page"), *time, "--archives", dated / "warcs", "--payload")
    assert (done.returncode, done.stdout, done.stderr) == (0, text, b"")


def test_a_revisit_gives_the_payload_of_what_it_repeats(dated: Path) -> None:
    warcs = dated / "warcs"
    revisit = dated / "C", url_of("page"), "20220101000000"
    assert b"".join(get_record(Getting(*revisit, archives=warcs, form="payload"))) == b"second"
    head = b"".join(get_record(Getting(*revisit, archives=warcs, form="headers")))
    assert b"Type: revisit" in head
    (row,) = [row for row in rows(dated / "C") if row["mime"] == "warc/revisit"]
    with pytest.raises(InputError, match="is a revisit; its payload is in another record"):
        b"".join(
            get_record(Getting(row["filename"], offset=int(row["offset"]), archives=warcs, form="payload"))
        )


def test_the_original_of_a_revisit_may_be_in_another_source(
    dated: Path, tmp_path: Path, build_cluster: BuildCluster
) -> None:
    (row,) = [row for row in rows(dated / "C") if row["mime"] == "warc/revisit"]
    data, start = (dated / "warcs/d.warc.gz").read_bytes(), int(row["offset"])
    for name, part in (("one", data[:start]), ("two", data[start:])):
        (tmp_path / f"{name}.warc.gz").write_bytes(part)
        assert build_cluster(tmp_path / name, [tmp_path / f"{name}.warc.gz"], 1, "-q").stderr == ""
    asked = Getting(f"{tmp_path}/two,{tmp_path}/one", url_of("page"), "20220101000000", form="payload")
    assert b"".join(get_record(asked)) == b"second"
    asked.source = f"{tmp_path}/two,{tmp_path}/two/cluster.idx"
    with pytest.raises(InputError, match=r"two, .*cluster\.idx does not contain that record"):
        b"".join(get_record(asked))


def test_archives_are_found_by_a_path_index_as_pywb_has_it(dated: Path, tmp_path: Path) -> None:
    place = dated / "warcs/d.warc.gz"
    for text in (
        f"d.warc.gz\t{place}\n",
        f"c.warc.gz\tx\nd.warc.gz\t{tmp_path}/absent\t{place}\ne.warc.gz\tx",
    ):
        (tmp_path / "paths.txt").write_text(text)
        found = b"".join(
            get_record(Getting(dated / "C", url_of("page"), archives=tmp_path / "paths.txt", form="payload"))
        )
        assert found == b"fourth"
    (tmp_path / "paths.txt").write_text("xd.warc.gz\tx\n")
    with pytest.raises(InputError, match=r"d\.warc\.gz: is not in the path index"):
        got_by_index = get_record(Getting(dated / "C", url_of("page"), archives=tmp_path / "paths.txt"))
        b"".join(got_by_index)


def test_a_path_index_that_does_not_exist_is_wrong_usage(dated: Path) -> None:
    with serving() as server, pytest.raises(UsageError, match=r"paths\.txt: .*404"):
        b"".join(get_record(Getting(dated / "C", url_of("page"), archives=f"{server.url}/paths.txt")))


def test_a_line_without_a_record_is_no_original() -> None:
    place = b'"digest": "A", "offset": "7", "length": "9", "filename": "a.warc.gz"}'
    lines = [
        b'com,a)/ 2019 {"digest": "A"}',
        b'com,a)/ 2020 {"mime": "warc/revisit", %b' % place,
        b"com,a)/ 2021 {%b" % place,
    ]
    assert first_original(lines, "A") == (lines[2], record_location(lines[2]))
    assert first_original(lines[:2], "A") is None


@pytest.mark.parametrize(
    "changed", [{"url": "http://example.com/other"}, {"timestamp": "20240101000000"}, {"digest": "A" * 32}]
)
def test_a_record_that_does_not_match_its_line_is_reported(
    changed: dict[str, str], dated: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    fields = rows(dated / "C")[0] | changed
    key = f"com,example){fields['url'].removeprefix('http://example.com')} {fields.pop('timestamp')}"
    (tmp_path / "a.cdxj").write_text(f"{key} {json.dumps(fields)}\n")
    assert run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "C", tmp_path / "a.cdxj").returncode == 0
    done = run_cdxmill("get", tmp_path / "C", fields["url"], "--archives", dated / "warcs")
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.splitlines()
    assert b"d.warc.gz@0: the record " in line


def test_only_the_record_is_requested_from_an_archive_over_http(made: Path) -> None:
    (archive,) = (made / "warcs").iterdir()
    data = archive.read_bytes()
    row = rows(made / "C")[3]
    offset, length = int(row["offset"]), int(row["length"])
    with serving() as server:
        server.add(f"/w/{archive.name}", data)
        record = get_record(Getting(made / "C", row["url"], archives=f"{server.url}/w/"))
        assert row["url"].encode() in b"".join(record)
        asked = [wanted for wanted in server.ranges(f"/w/{archive.name}") if wanted != "bytes=0-0"]
    assert asked[0] == f"bytes={offset}-{offset + length - 1}"
    assert len(asked) == (2 if archive.name.endswith(".zst") else 1)  # whether a dictionary comes first


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["C"], "a cluster and a URL, or an archive and --offset"),
        (["C", "http://a.com/", "--offset", "0"], "a cluster and a URL, or an archive and --offset"),
        (["C", "http://a.com/", "--length", "7"], "--length needs --offset"),
        (["C", "http://a.com/", "--decode"], "--decode needs --payload"),
        (["C", "http://a.com/", "--payload", "--headers"], "cannot be used together"),
        (["C", "http://a.com/", "soon"], "timestamp"),
        (["C", ""], "URL"),
        (["absent", "http://a.com/"], "absent"),
        (
            ["C", "http://example.com/page", "--archives", "absent"],
            "neither a directory of archives, nor a WACZ, nor a path index",
        ),
        (["d.warc.gz", "--offset", "-1"], "--offset"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    arguments: list[str], reason: str, dated: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("get", *arguments, cwd=dated)
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert reason in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["C", "http://example.com/none"], "C: has no capture of http://example.com/none"),
        (["C", "http://example.com/page", "--archives", "."], "./d.warc.gz: cannot be read"),
        (["absent.warc.gz", "--offset", "0"], "absent.warc.gz: cannot be read"),
        (
            ["warcs/d.warc.gz", "--offset", "999999"],
            "warcs/d.warc.gz@999999: no record: the file ends before this offset",
        ),
        (["warcs/d.warc.gz", "--offset", "3"], "warcs/d.warc.gz@3: no record: "),
    ],
)
def test_missing_things_are_reported_in_one_line(
    arguments: list[str], reason: str, dated: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("get", *arguments, cwd=dated)
    assert (done.returncode, done.stdout) == (1, b"")
    assert reason in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
