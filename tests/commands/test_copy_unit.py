"""A unit of a copy: which of its records are fetched, checked and written, in what form, and what is reported of the others."""

from __future__ import annotations

import gzip
import hashlib
import io
from base64 import b32encode as base32
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cdxmill.cli.main import main
from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.commands.copying import unit
from cdxmill.commands.copying.output import Finished
from cdxmill.commands.copying.plan import Asked, Unit
from cdxmill.commands.copying.unit import PLAN, UnitCopier
from cdxmill.commands.copying.unit_files import UnitResult, unit_file
from cdxmill.options.queries import Query
from cdxmill.options.records import Copying
from cdxmill.running.resume import WorkDirectory
from cdxmill.search.sources import Source
from cdxmill.storage.location import locate

from ..material.crawls import capture

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"


def record(kind: str, url: str, block: bytes = PAGE, more: str = "", second: int = 3) -> bytes:
    """A record of a WARC file."""
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{kind}:{url}>\r\n"
        f"WARC-Date: 2024-05-17T01:02:{second:02d}Z\r\nWARC-Target-URI: {url}\r\n{more}"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


HTTP = "Content-Type: application/http; msgtype=response\r\n"
REFERS = "WARC-Refers-To-Target-URI: http://o.com/\r\nWARC-Refers-To-Date: 2023-01-01T00:00:00Z\r\n"
SHA = "WARC-Payload-Digest: sha1:" + "A" * 32 + "\r\n"
ARC = b"http://old.com/ 192.0.2.1 20010203040506 text/html %d\n%b\n" % (len(PAGE), PAGE)


def packed(*records: bytes) -> bytes:
    return b"".join(gzip.compress(one, mtime=0) for one in records)


class Copied(NamedTuple):
    """What came of a unit: its result as it was saved, what was returned, and the bytes of each kind."""

    result: UnitResult
    returned: UnitResult
    data: dict[str, bytes]

    @property
    def rows(self) -> list[list[str]]:
        return [row.split("\t") for part in self.result.parts.values() for row in part.rows]

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.result.failures]


class Here:
    """A directory with archives; `index` gives their lines, `copy` copies lines."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines, self.counted = path, list[bytes](), list[int]()
        self.finished: Finished | None = None
        self.places = [ArchivePlaces(str(path))]
        self.units = 0

    def add(self, name: str, data: bytes, *options: str) -> None:
        """Write an archive, and index it."""
        (self.path / name).write_bytes(data)
        lines = self.path / "lines.cdxj"
        call = ["index", "-q", "-p", "1", *options, "-o", str(lines), str(self.path / name)]
        assert main(call) == 0
        self.lines += lines.read_bytes().splitlines()
        lines.unlink()

    def copy(self, lines: Iterable[bytes] | None = None, source: int = 0, **options: Any) -> Copied:
        """Copy the records of lines as a unit whose number is the number of units before."""
        sources = [Source(f"{number}.cdxj", place) for number, place in enumerate(self.places)]
        asked = Asked(sources, ["*"], Query())
        wanted = self.lines if lines is None else lines
        rows = [asked.row_of(line, 0, source, lambda error: pytest.fail(str(error))) for line in wanted]
        work = WorkDirectory(self.path / ".work", "job")
        text = b"".join(row + b"\n" for row in sorted(filter(None, rows)))
        with work.scratch.create(PLAN) as file:
            file.write(b"before\n" + text + b"behind\n")
        finished = Finished(locate(str(self.path / "out"))) if self.finished is None else self.finished
        copier = UnitCopier(self.places, work, PLAN, finished, lambda: None, Copying("x", **options))
        returned = copier(Unit(self.units, 7, len(text)))
        result = UnitResult.from_json(work.load(f"unit-{self.units:06d}"))
        files = {kind: unit_file(work.scratch.directory, self.units, kind) for kind in result.parts}
        self.units += 1
        return Copied(result, returned, {kind: file.read_bytes() for kind, file in files.items()})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    found = Here(tmp_path)
    monkeypatch.setattr(unit, "count_bytes", found.counted.append)
    return found


def unplaced(line: bytes) -> str:
    """A line without its place, which whoever joins the units adds."""
    start, _, rest = line.decode().partition('", "offset": "')
    notes = rest.partition('", "filename": "')[2].partition('"')[2]
    return f'{start}", "offset": "0", "filename": ""{notes}'


RESPONSE = record("response", "http://a.com/", more=HTTP)
KINDS = {
    "response": RESPONSE,
    "claimed": record("response", "http://a.com/", more=HTTP + SHA),
    "revisit": record("revisit", "http://a.com/", PAGE[:-3], HTTP + SHA + REFERS),
    "resource": record("resource", "http://a.com/", b"text", "Content-Type: text/plain\r\n"),
}


@pytest.mark.parametrize("options", [{}, {"originals": True}, {"related": True}], ids=str)
@pytest.mark.parametrize("kind", ["response", "revisit", "resource"])
def test_a_member_is_written_as_it_is_with_its_row_and_its_line(
    kind: str, options: dict[str, Any], here: Here
) -> None:
    member = packed(KINDS[kind])
    here.add("a.warc.gz", packed(record("warcinfo", "", b"")) + member)
    done = here.copy(**options)
    start = len(packed(record("warcinfo", "", b"")))
    related = "yes" if "related" in options else "no"
    assert done.rows == [
        ["a.warc.gz", str(start), str(len(member)), "20240517010203", "http://a.com/", related]
    ]
    assert done.data == {"warc": member}
    (part,) = done.result.parts.values()
    (made,) = part.lines
    assert made == unplaced(here.lines[0])
    assert part.sizes == [len(member)]
    assert (done.result.captures, done.result.requests, done.reasons) == (1, 1, [])
    assert here.counted == [len(member)]
    assert done.returned == UnitResult(1, {}, [], [], 1, done.result.fetched)
    if kind == "revisit" and options:
        ((source, url, time, digest, name, offset, *refers),) = done.result.revisits
        assert (source, url, time, digest) == (0, "http://a.com/", "20240517010203", "A" * 32)
        assert (name, offset, refers) == ("a.warc.gz", start, ["http://o.com/", "2023-01-01T00:00:00Z"])
    else:  # without --originals, nothing is made of what revisits refer to
        assert done.result.revisits == []


@pytest.mark.parametrize(
    ("related", "around", "before", "behind"),
    [(False, 40, 0, 0), (True, 40, 40, 40), (True, 0, 0, 0), (True, 1 << 20, 2000, 2000)],
)
def test_only_the_range_of_the_records_is_fetched(
    related: bool, around: int, before: int, behind: int, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With related records, what is around it, as far as there is something."""
    monkeypatch.setattr(unit, "AROUND", around)
    noise = packed(record("resource", "http://n.com/", bytes(range(256)) * 9))
    here.add("a.warc.gz", noise + packed(RESPONSE) + noise)
    wanted = [line for line in here.lines if line.startswith(b"com,a)")]
    done = here.copy(wanted, related=related)
    assert done.result.fetched == len(packed(RESPONSE)) + sum(
        min(one, len(noise)) for one in (before, behind)
    )
    assert (done.result.requests, len(done.rows)) == (1, 1)


def test_an_arc_record_without_a_date_cannot_become_a_warc_record(here: Here) -> None:
    here.add("a.arc.gz", packed(ARC))
    data = packed(ARC.replace(b"20010203040506", b"yesterday"))
    (here.path / "a.arc.gz").write_bytes(data)
    line = f'com,old)/ - {{"length": "{len(data)}", "offset": "0", "filename": "a.arc.gz"}}'.encode()
    for keep in (False, True):
        done = here.copy([line], keep_arc=keep)
        assert done.reasons == (
            [] if keep else ["the ARC record has no valid date, which a WARC record must have ( -)"]
        )
        assert done.data == ({"arc": data} if keep else {})


@pytest.mark.parametrize("options", [{}, {"keep_arc": True}, {"source_headers": True}], ids=str)
def test_an_arc_record_becomes_a_warc_record_unless_it_is_to_stay(
    options: dict[str, Any], here: Here
) -> None:
    here.add("a.arc.gz", packed(b"filedesc://a.arc 0.0.0.0 20010203040506 text/plain 0\n\n") + packed(ARC))
    done = here.copy(**options)
    (kind,) = done.data
    text = gzip.decompress(done.data[kind])
    if "keep_arc" in options:
        assert (kind, done.data[kind]) == ("arc", packed(ARC))
    else:
        assert kind == "warc"
        assert b"WARC-Payload-Digest: sha1:%b\r\n" % base32(hashlib.sha1(b"<p>").digest()) in text
        assert b"WARC-Type: response\r\n" in text and text.endswith(PAGE + b"\r\n\r\n")
        assert (b"WARC-Source-URI: a.arc.gz\r\n" in text) == ("source_headers" in options)
    assert done.rows == [["a.arc.gz", *done.rows[0][1:3], "20010203040506", "http://old.com/", "no"]]
    assert done.result.parts[kind].lines[0].startswith("com,old)/ 20010203040506 ")


@pytest.mark.parametrize("keep", [False, True])
def test_records_of_several_kinds_have_their_own_lines(keep: bool, here: Here) -> None:
    """Also if the notes of another archive come behind an ARC record. They and requests have no line."""
    notes = capture("http://b.com/1", "2024-05-17")
    here.add("a.arc.gz", packed(ARC))
    here.add("b.warc.gz", notes[2] + notes[1] + notes[0], "--records", "all")
    done = here.copy(keep_arc=keep)
    lines = {
        kind: [line.partition(" ")[0] for line in part.lines] for kind, part in done.result.parts.items()
    }
    rest = ["", "com,b)/1", ""]
    assert lines == ({"arc": ["com,old)/"], "warc": rest} if keep else {"warc": ["com,old)/", *rest]})
    assert done.reasons == []


CAPTURES = [one for url in ("http://a.com/1", "http://b.com/2") for one in capture(url, "2024-05-17")]


@pytest.mark.parametrize("headers", [False, True])
@pytest.mark.parametrize("records", ["captures", "all"])
def test_related_records_are_written_once_beside_their_response(
    records: str, headers: bool, here: Here
) -> None:
    """Their line is that of the response, with what the notes say. Lines of theirs add nothing."""
    here.add("a.warc.gz", b"".join(CAPTURES))
    lines = list(here.lines)
    if records == "all":
        here.add("a.warc.gz", b"".join(CAPTURES), "--records", "all")
    done = here.copy(set(here.lines), related=True, source_headers=headers)
    starts = [sum(map(len, CAPTURES[:number])) for number in range(6)]
    assert sorted(int(row[1]) for row in done.rows) == starts
    assert {(row[0], row[3], row[5]) for row in done.rows} == {("a.warc.gz", "20240517010203", "yes")}
    assert {int(row[1]): int(row[2]) for row in done.rows} == dict(
        zip(starts, map(len, CAPTURES), strict=True)
    )
    assert [row[4] for row in done.rows] == ["http://a.com/1"] * 3 + ["http://b.com/2"] * 3
    if not headers:
        assert sorted(filter(None, done.result.parts["warc"].lines)) == sorted(map(unplaced, lines))
        assert all(b'"charset": "UTF-8", "languages": "eng"' in line for line in lines)
        assert sorted(done.data["warc"]) == sorted(b"".join(CAPTURES))
    assert done.reasons == []


def test_notes_that_are_copied_behind_a_response_add_to_its_line(here: Here) -> None:
    """Also if each has a line of its own that leads to it. Those of another capture do not."""
    here.add("a.warc.gz", b"".join(CAPTURES[1:]))
    lines = list(here.lines)
    here.add("a.warc.gz", b"".join(CAPTURES[1:]), "--records", "all")
    done = here.copy(set(here.lines))
    assert len(done.rows) == 5
    made = dict(zip([int(row[1]) for row in done.rows], done.result.parts["warc"].lines, strict=True))
    starts = [sum(map(len, CAPTURES[1:number])) for number in range(1, 6)]
    assert [made[start] for start in starts] == [unplaced(lines[0]), "", "", unplaced(lines[1]), ""]
    assert '"languages": "eng"' in made[0]


def test_only_captures_have_related_records(here: Here) -> None:
    """The note of a capture leads to no other record."""
    here.add("a.warc.gz", b"".join(CAPTURES[:3]), "--records", "all")
    notes = [line for line in here.lines if f'"length": "{len(CAPTURES[2])}"'.encode() in line]
    done = here.copy(notes[:1], related=True)
    assert [int(row[2]) for row in done.rows] == [len(CAPTURES[2])]
    assert len(here.copy(here.lines, related=False).rows) == 3
    here.add("b.warc.gz", b"".join(CAPTURES))
    captures = [line for line in here.lines if b"b.warc.gz" in line]
    assert len(here.copy(captures, source_headers=True).rows) == 2


def test_what_is_said_of_a_request_is_not_copied_with_it(here: Here) -> None:
    """Only captures have related records."""
    about = "Content-Type: text/plain\r\nWARC-Concurrent-To: <urn:request:http://a.com/>\r\n"
    request = record(
        "request", "http://a.com/", b"GET / HTTP/1.1\r\n\r\n", "Content-Type: application/http\r\n"
    )
    here.add(
        "a.warc.gz", packed(request, record("metadata", "http://a.com/", b"x", about)), "--records", "all"
    )
    asked = [line for line in here.lines if b'"offset": "0"' in line]
    assert len(asked) == 1
    assert [row[1] for row in here.copy(asked, related=True).rows] == ["0"]


def test_source_headers_name_the_place_and_the_range(here: Here) -> None:
    here.add("a b.warc.gz", packed(KINDS["resource"]) + packed(RESPONSE))
    first, second = packed(KINDS["resource"]), packed(RESPONSE)
    done = here.copy(source_headers=True)
    with gzip.open(io.BytesIO(done.data["warc"])) as file:
        text = file.read()
    assert text.count(b"WARC-Source-URI: a%20b.warc.gz\r\n") == 2
    assert b"WARC-Source-Range: bytes=0-%d\r\n" % (len(first) - 1) in text
    assert b"WARC-Source-Range: bytes=%d-%d\r\n" % (len(first), len(first) + len(second) - 1) in text


Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("change", "reason", "hint"),
    [
        (lambda line: line.replace(b"//a.com/", b"//a.com/x"), "the record is of ", unit._MISMATCH),
        (lambda line: line.replace(b" 2024", b" 2023"), "the record is from ", unit._MISMATCH),
        (lambda line: line.replace(b'"digest": "', b'"digest": "A')[:-2] + b'"}', "the record has the digest ", unit._OTHER_DIGEST),
        (lambda line: line.replace(b'"offset": "0"', b'"offset": "3"'), "", unit._MISMATCH),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["response", "resource"])
def test_a_record_that_is_not_that_of_its_line_is_not_written(
    kind: str, change: Change, reason: str, hint: str, here: Here
) -> None:
    here.add("a.warc.gz", packed(KINDS[kind]))
    here.add("b.warc.gz", packed(record("response", "http://b.com/", more=HTTP)))
    (line, other) = here.lines
    changed = change(line)
    if hint == unit._OTHER_DIGEST:
        start = changed.index(b'"digest": "') + 11
        changed = changed[: start + 32] + line[line.index(b'"digest": "') + 43 :]
    done = here.copy([changed, other])
    assert [row[0] for row in done.rows] == ["b.warc.gz"]
    (failure,) = done.result.failures
    assert failure.path == str(here.path / "a.warc.gz")
    assert failure.offset == (3 if b'"offset": "3"' in changed else 0)
    assert failure.reason.startswith(reason)
    assert failure.reason.endswith((" (http://a.com/ 20240517010203)", " (http://a.com/x 20240517010203)",
                                    " (http://a.com/ 20230517010203)"))  # fmt: skip
    assert failure.hint == hint
    assert done.result.captures == 2
    assert done.returned.failures == done.result.failures


def test_a_record_with_another_digest_is_written_as_it_is_if_asked_for(here: Here) -> None:
    here.add("a.warc.gz", packed(KINDS["claimed"], record("response", "http://b.com/", more=HTTP)))
    done = here.copy(any_digest=True)
    assert sorted((row[4], row[5]) for row in done.rows) == [
        ("http://a.com/", "no other-digest"),
        ("http://b.com/", "no"),
    ]
    (reason,) = done.reasons
    assert "the payload does not have the digest AAAA" in reason
    assert "of the index line, and was copied as it is (http://a.com/ 20240517010203)" in reason
    refused = here.copy()
    assert [row[4] for row in refused.rows] == ["http://b.com/"]


def test_a_record_with_two_lines_is_written_once(here: Here) -> None:
    here.add("a.warc.gz", packed(RESPONSE))
    line = here.lines[0]
    for options in ({}, {"source_headers": True}):
        done = here.copy([line, line.replace(b"com,a)/ ", b"com,a)/x ")], **options)
        assert (len(done.rows), done.result.captures, done.reasons) == (1, 2, [])


def test_what_an_earlier_run_has_copied_is_not_fetched_again(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that was copied with another digest is reported each time."""
    here.add("a.warc.gz", packed(RESPONSE, record("response", "http://b.com/", more=HTTP)))
    here.finished = Finished(locate(str(here.path / "out")))
    copied = ("a.warc.gz", 0, "20240517010203", "http://a.com/")
    here.finished.captures[copied[:2]] = [copied]
    done = here.copy()
    assert [row[4] for row in done.rows] == ["http://b.com/"]
    assert (done.result.captures, done.reasons) == (1, [])
    here.finished.other_digest.add(copied)
    (failure,) = here.copy().result.failures
    assert (failure.path, failure.offset) == ("a.warc.gz", 0)
    assert failure.reason == (
        "the record does not have the digest of the index line, and was copied as it is (http://a.com/ 20240517010203)"
    )


@pytest.mark.parametrize(
    ("place", "name", "uri"),
    [
        ("https://a.org/x%20y.warc.gz?key=1", "y.warc.gz", b"https://a.org/x%20y.warc.gz"),
        ("s3://a/é.warc.gz", "x", b"s3://a/%C3%A9.warc.gz"),
        ("/data/x.warc.gz", "d/x y.warc.gz", b"d/x%20y.warc.gz"),
        ("/data/x.warc.gz", "/data/x.warc.gz", b"x.warc.gz"),
        ("/data/x.warc.gz", "file:///data/x.warc.gz", b"x.warc.gz"),
    ],
)
def test_a_source_is_told_without_local_paths_and_secrets(place: str, name: str, uri: bytes) -> None:
    assert unit.source_uri(locate(place), name) == uri
