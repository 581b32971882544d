"""The steps of `get`: which line is taken, which record it leads to, and what of the record is given."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands import get as getting
from cdxmill.commands.get import (
    FoundCapture,
    RecordRange,
    _note,
    capture_and_payload,
    capture_with_payload,
    errors_reported,
    fetch_capture,
    find_capture,
    get_record,
    wanted_of,
)
from cdxmill.errors import AbsentError, InputError, UsageError
from cdxmill.formats.archives import zstd_dictionary
from cdxmill.formats.lines.capture_fields import record_location
from cdxmill.inputs.archive_store import ArchiveStore
from cdxmill.options.queries import Query
from cdxmill.options.records import Getting
from cdxmill.search import sources as sources_of
from cdxmill.search.sources import Source
from cdxmill.stages.records.decode_payload import PayloadError
from cdxmill.stages.records.fetch_record import NoRecord

from ..material.clusters import write_raw_cluster
from ..material.open_files import open_files
from ..material.trees import build

URL = "http://a.com/"


def line(timestamp: str, offset: int = 0, **fields: str) -> bytes:
    """A line of a capture of URL; the offset tells captures apart."""
    place = {"offset": str(offset), "length": "9", "filename": "a.warc.gz"}
    return f"com,a)/ {timestamp} {json.dumps({'url': URL, **place, **fields})}".encode()


@pytest.mark.parametrize(
    ("url", "offset", "wanted"),
    [
        (None, 0, RecordRange("C", 0, None)),
        (None, 7, RecordRange("C", 7, None)),
        (URL, None, None),
        ("", None, None),
        (None, None, UsageError),
        (URL, 0, UsageError),
    ],
)
def test_a_url_or_an_offset_is_asked_for(url: str | None, offset: int | None, wanted: Any) -> None:
    asked = Getting("C", url, offset=offset)
    if wanted is not UsageError:
        assert wanted_of(asked) == wanted
        return
    for call in (wanted_of, get_record):
        with pytest.raises(UsageError, match="give either a URL or an offset: a cluster and a URL, or an"):
            call(asked)


def test_a_range_is_named_by_its_archive_and_offset() -> None:
    assert str(RecordRange("w/a.warc.gz", 7, 9)) == "w/a.warc.gz@7"


NEWEST = Query(match_type="exact", sort="newest")


@pytest.mark.parametrize(
    ("timestamp", "lines", "found", "read"),
    [
        (None, [line("2021", 1), line("2020", 2)], 1, 1),
        (None, [line("-", 1), line("2021", 2), line("2020", 3)], 2, 2),
        (None, [line("x", 1), line("-", 2)], 1, 2),
        (None, [line("2021x", 1), line("2020", 2)], 2, 2),
        (None, [line("20210101000000123", 1), line("2020", 2)], 1, 1),
        (None, [], None, 0),
        ("2021", [line("2021", 1), line("2020", 2)], 1, 1),
        ("2021", [line("-", 1), line("2020", 2)], 1, 1),
        ("2021", [], None, 0),
        ("-", [line("2021", 1), line("-", 2), line("-", 3)], 2, 2),
        ("-", [line("2021", 1)], None, 1),
    ],
)
def test_the_line_of_a_capture_is_found(
    timestamp: str | None, lines: list[bytes], found: int | None, read: int
) -> None:
    asked: list[tuple[str, object]] = []
    taken: list[bytes] = []

    def search(url: str, query: Query) -> Iterator[bytes]:
        asked.append((url, vars(query)))
        for one in lines:
            taken.append(one)
            yield one

    if found is None:
        with pytest.raises(InputError) as raised:
            find_capture("C", URL, timestamp, search)
        assert str(raised.value) == f"C: has no capture of {URL}"
    else:
        assert find_capture("C", URL, timestamp, search).offset == found
    nearest = Query(match_type="exact", sort="closest", closest=timestamp, limit=1)
    assert asked == [(URL, vars(nearest if timestamp == "2021" else NEWEST))]
    assert len(taken) == read


def test_a_line_without_a_record_is_told_with_its_cluster() -> None:
    with pytest.raises(InputError) as raised:
        find_capture("C", URL, None, lambda url, query: iter([b'com,a)/ 2020 {"url": "http://a.com/"}']))
    assert raised.value.path == "C"


def member(kind: str, block: bytes, date: str = "2020", more: str = "") -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {URL}\r\nWARC-Date: {date}-01-01T00:00:00Z\r\n{more}"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
PAGE = member("response", HEAD + b"\r\n<p>page")
PACKED = member(
    "response", HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"<p>packed", mtime=0), "2021"
)
REVISIT = member("revisit", HEAD + b"\r\n", "2022", "WARC-Refers-To-Date: 2020-01-01T00:00:00Z\r\n")
LOST = member("revisit", HEAD + b"\r\n", "2023", "WARC-Refers-To-Target-URI: http://gone/\r\n")
CUT = member(
    "response", HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"<p>cut", mtime=0)[:-9], "2024"
)
MEMBERS = {"2020": PAGE, "2021": PACKED, "2022": REVISIT, "2023": LOST, "2024": CUT}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """C, the cluster of a.warc.gz with all MEMBERS, in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("a.warc.gz").write_bytes(b"".join(MEMBERS.values()))
    return write_raw_cluster(Path("C"), list(lines().values()))


def lines() -> dict[str, bytes]:
    found, offset = {}, 0
    for year, data in MEMBERS.items():
        mime = "warc/revisit" if b"revisit" in gzip.decompress(data) else "text/html"
        digest = "X" if year == "2023" else "D"
        place = {"offset": str(offset), "length": str(len(data)), "mime": mime, "digest": digest}
        fields = {"url": URL, "filename": "a.warc.gz", **place}
        found[year] = f"com,a)/ {year}0101000000 {json.dumps(fields)}".encode()
        offset += len(data)
    return found


def got(**options: Any) -> bytes:
    return b"".join(get_record(Getting("C", URL, **options)))


@pytest.mark.parametrize(
    ("timestamp", "form", "decode", "wanted"),
    [
        ("20200101", "record", False, gzip.decompress(PAGE)),
        ("20200101", "payload", False, b"<p>page"),
        ("20200101", "payload", True, b"<p>page"),
        ("20200101", "headers", False, gzip.decompress(PAGE).partition(b"<p>")[0]),
        ("20210101", "payload", False, gzip.compress(b"<p>packed", mtime=0)),
        ("20210101", "payload", True, b"<p>packed"),
        ("20220101", "record", False, gzip.decompress(REVISIT)),
        ("20220101", "headers", False, gzip.decompress(REVISIT)[:-4]),
        ("20220101", "payload", False, b"<p>page"),
        ("20230101", "record", False, gzip.decompress(LOST)),
        (None, "headers", False, gzip.decompress(CUT).partition(b"\x1f")[0]),
    ],
)
@pytest.mark.parametrize("sources", ["C", "C,C/cluster.idx"])
def test_a_capture_gives_the_part_that_is_asked_for(
    sources: str, timestamp: str | None, form: Any, decode: bool, wanted: bytes, cluster: str
) -> None:
    asked = Getting(sources, URL, timestamp, form=form, decode=decode)
    assert b"".join(get_record(asked)) == wanted
    assert open_files(Path.cwd()) == []


GONE = "is a revisit; its payload is in another record (http://gone/); {} does not contain that record"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"timestamp": "20230101", "form": "payload"}, GONE.format("C")),
        ({"source": "C,C/cluster.idx", "timestamp": "20230101", "form": "payload"}, GONE.format("C, C/cluster.idx")),
        ({"timestamp": "20240101", "form": "payload", "decode": True}, "the payload is truncated"),
        ({"url": "http://b.com/"}, "has no capture of http://b.com/"),
        ({"source": "C,C/cluster.idx", "url": "http://b.com/"}, "has no capture of http://b.com/"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told(asked: dict[str, Any], reason: str, cluster: str) -> None:
    with pytest.raises(InputError) as raised:
        b"".join(get_record(Getting(**{"source": "C", "url": URL, **asked})))
    assert raised.value.reason.startswith(reason)
    assert open_files(Path.cwd()) == []


def at(year: str) -> int:
    return record_location(lines()[year]).offset


@pytest.mark.parametrize("form", ["record", "headers", "payload"])
def test_a_revisit_at_an_offset_has_no_payload(form: Any, cluster: str) -> None:
    asked = Getting("a.warc.gz", offset=at("2022"), form=form)
    if form != "payload":
        assert b"".join(get_record(asked)).startswith(b"WARC/1.0\r\nWARC-Type: revisit")
        return
    with pytest.raises(InputError) as raised:
        b"".join(get_record(asked))
    why = "is a revisit; its payload is in another record (2020-01-01T00:00:00Z)"
    hint = "get it by its URL from a cluster that contains it"
    assert str(raised.value) == f"a.warc.gz@{at('2022')}: {why}; {hint}"
    assert open_files(Path.cwd()) == []


def test_a_revisit_that_names_no_original_says_no_more(cluster: str) -> None:
    Path("b.warc.gz").write_bytes(member("revisit", HEAD + b"\r\n"))
    with pytest.raises(InputError) as raised:
        b"".join(get_record(Getting("b.warc.gz", offset=0, form="payload")))
    assert raised.value.reason == "is a revisit; its payload is in another record"


def test_a_record_of_another_capture_is_told_with_a_way_out(cluster: str) -> None:
    changed = lines()["2020"].replace(b"20200101000000", b"20190101000000")
    with closing(ArchiveStore(None)) as archives:
        with pytest.raises(InputError) as raised:
            fetch_capture(record_location(changed), archives)
        found = fetch_capture(record_location(lines()["2020"]), archives)
    assert raised.value.path == "a.warc.gz@0"
    assert raised.value.hint == "index the archive again, or use --archives with the indexed archives"
    assert found.wanted == RecordRange("a.warc.gz", 0, len(PAGE))


@pytest.mark.parametrize(
    ("year", "url", "closest"),
    [("2020", None, ""), ("2022", URL, "20200101000000"), ("2023", "http://gone/", "20230101000000")],
)
def test_the_original_is_searched_at_its_url_and_date(
    year: str, url: str | None, closest: str, cluster: str
) -> None:
    """Or at those of the revisit, if it does not say them."""
    asked: list[tuple[str, object]] = []

    def search(url: str, query: Query) -> Iterator[bytes]:
        asked.append((url, vars(query)))
        return iter([lines()["2022"], lines()["2020"]])

    with closing(ArchiveStore(None)) as archives:
        found = fetch_capture(record_location(lines()[year]), archives)
        if year == "2023":
            with pytest.raises(InputError):
                capture_with_payload("C", found, archives, search)
        else:
            original: FoundCapture = capture_with_payload("C", found, archives, search)
            assert (original is found) == (url is None)
            assert original.location.offset == 0
    wanted = Query(match_type="exact", sort="closest", closest=closest)
    assert asked == ([] if url is None else [(url, vars(wanted))])


@pytest.mark.parametrize("with_payload", [True, False])
@pytest.mark.parametrize("source", ["C", "C,C/cluster.idx"])
def test_both_captures_can_be_read_until_files_are_closed(
    source: str, with_payload: bool, cluster: str
) -> None:
    said: list[str] = []
    with ExitStack() as files:
        asked = Getting(source, URL, "20220101")
        found, payload = capture_and_payload(asked, files, said.append, with_payload=with_payload)
        assert b"".join(found.fetched.content()) == gzip.decompress(REVISIT)
        assert open_files(Path.cwd())[0] == "a.warc.gz"
        if with_payload:
            assert payload is not None
            assert b"".join(payload.fetched.content()) == gzip.decompress(PAGE)
        else:
            assert payload is None
    assert open_files(Path.cwd()) == []
    assert said == []


@pytest.mark.parametrize("source", ["-", "C,-", "x.tree", "C,x.tree"])
def test_a_record_is_not_searched_in_a_pipe_or_a_prefix_tree(source: str, cluster: str) -> None:
    build(Path(), cluster)
    why = f"{source}: get needs clusters, crawls or CDX files; use copy for other index lines"
    with pytest.raises(UsageError) as raised:
        b"".join(get_record(Getting(source, URL)))
    assert str(raised.value) == why


def test_the_newest_of_some_crawls_needs_names_of_crawls(cluster: str) -> None:
    with pytest.raises(UsageError, match="--newest-crawls needs names of crawls"):
        b"".join(get_record(Getting("C", URL, newest_crawls=2)))


def test_a_crawl_without_an_index_is_noted_and_any_other_error_is_one() -> None:
    said: list[str] = []
    _note(said.append, AbsentError("CC-MAIN-X", "has no index"))
    assert said == ["note: CC-MAIN-X: has no index"]
    with pytest.raises(InputError, match="is corrupt"):
        _note(said.append, InputError("CC-MAIN-X", "is corrupt"))
    assert len(said) == 1


@pytest.mark.parametrize("error", [NoRecord("ends too early"), PayloadError("is truncated")])
def test_errors_of_a_record_are_told_with_its_place(error: Exception) -> None:
    with pytest.raises(InputError) as raised, errors_reported(RecordRange("a", 7, None)):
        raise error
    assert str(raised.value) == f"a@7: {error}"
    with pytest.raises(KeyError), errors_reported(RecordRange("a", 7, None)):
        raise KeyError


def test_a_record_may_need_the_dictionary_that_it_was_packed_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstd_dictionary, "_KNOWN", {})
    plain = gzip.decompress(PAGE)
    samples = [plain.replace(b"page", b"page %d" % number) for number in range(99)]
    trained = zstandard.train_dictionary(512, [*samples], k=64, d=8, dict_id=40000)
    (tmp_path / "d").write_bytes(trained.as_bytes())
    archive = tmp_path / "a.warc.zst"
    archive.write_bytes(zstandard.ZstdCompressor(dict_data=trained, write_checksum=True).compress(plain))
    with pytest.raises(InputError):
        b"".join(get_record(Getting(archive, offset=0)))
    assert b"".join(get_record(Getting(archive, offset=0, dictionary=tmp_path / "d"))) == plain


@pytest.mark.parametrize(("timestamp", "wanted"), [("20200101", b"<p>page"), ("20220101", b"<p>page")])
@pytest.mark.parametrize("source", ["E,C", "C,E"])
def test_archives_are_those_of_the_source_that_has_the_line(
    source: str, timestamp: str, wanted: bytes, cluster: str
) -> None:
    """E has other captures, and an archive of the same name."""
    write_raw_cluster(Path("E"), [line("20300101000000").replace(b"com,a)/", b"com,e)/")])
    Path("E/archives.tsv").write_text(f"a.warc.gz\t{Path('absent').absolute()}\n")
    asked = Getting(source, URL, timestamp, form="payload")
    assert b"".join(get_record(asked)) == wanted
    with ExitStack() as files, pytest.raises(InputError, match="absent"):
        capture_and_payload(Getting(source, "http://e.com/"), files, print)


def test_the_crawl_that_has_the_capture_is_said(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = "CC-MAIN-2024-10"
    monkeypatch.setattr(sources_of, "index_of_crawl", lambda name: cluster)
    found = [Source(crawl, ArchivePlaces(None), crawl)]
    monkeypatch.setattr(getting, "find_sources", lambda named, archives, newest: found)
    said: list[str] = []
    with ExitStack() as files:
        capture, _ = capture_and_payload(Getting(crawl, URL, "20200101"), files, said.append)
        assert b"".join(capture.fetched.content()) == gzip.decompress(PAGE)
    assert said == [f"{crawl}: {URL} 20200101000000"]
