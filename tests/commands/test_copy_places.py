"""Where a unit of a copy finds its records: several places of an archive, several ranges, and lines that say little."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from cdxmill.cluster.archive_index import ArchivePlaces
from cdxmill.inputs.joined_ranges import OpenRanges
from cdxmill.storage.location import Location

from .test_copy_unit import HTTP, RESPONSE, Here, here, packed, record

__all__ = ["here"]


def test_what_one_place_lacks_is_copied_from_the_next(here: Here) -> None:
    """Only the records that the first place lacks are read in the second one; the first reason is reported."""
    one, two, three = (record("response", f"http://{name}.com/", more=HTTP) for name in "abc")
    here.add("x.warc.gz", packed(one, two, three))
    whole = (here.path / "x.warc.gz").read_bytes()
    sizes = [len(packed(one)), len(packed(two))]
    for name, spoilt in (("1", (1, 2)), ("2", (0, 2))):
        data = bytearray(whole)
        for number in spoilt:
            start = sum(sizes[:number])
            data[start : start + 2] = b"%b!" % name.encode()
        (here.path / name).mkdir()
        (here.path / name / "x.warc.gz").write_bytes(data)
    Path("places").write_text(f"x.warc.gz\t{here.path}/1/x.warc.gz\t{here.path}/2/x.warc.gz\n")
    here.places = [ArchivePlaces("places")]
    done = here.copy()
    assert [row[4] for row in done.rows] == ["http://a.com/", "http://b.com/"]
    assert done.data == {"warc": packed(one, two)}
    (failure,) = done.result.failures
    assert (failure.path, failure.offset) == (f"{here.path}/1/x.warc.gz", sum(sizes))
    assert (done.result.captures, done.result.requests) == (3, 2)
    assert done.result.fetched == len(whole) + len(packed(two, three))


def twins(here: Here, first: bytes, second: bytes) -> tuple[str, str]:
    """Two archives of one name, and the list of their places."""
    here.add("x.warc.gz", packed(RESPONSE))
    for name, data in (("1", first), ("2", second)):
        (here.path / name).mkdir()
        (here.path / name / "x.warc.gz").write_bytes(data)
    one, two = (f"{here.path}/{name}/x.warc.gz" for name in "12")
    Path("places").write_text(f"x.warc.gz\t{one}\t{two}\n")
    here.places = [ArchivePlaces("places")]
    return one, two


OTHER = packed(RESPONSE.replace(b"<p>", b"<q>"))
JUNK = bytes(len(OTHER))


def test_the_second_place_is_not_read_if_the_first_has_all(here: Here) -> None:
    twins(here, packed(RESPONSE), packed(RESPONSE))
    for any_digest in (False, True):
        done = here.copy(any_digest=any_digest)
        assert (len(done.rows), done.result.requests, done.reasons) == (1, 1, [])


@pytest.mark.parametrize("any_digest", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "told", "requests"),
    [
        (JUNK, OTHER, 1, 2),
        (OTHER, JUNK, 0, 2),
        (OTHER, OTHER, 1, 2),
        (JUNK, JUNK, None, 2),
    ],
    ids=["2", "1", "both", "none"],
)
def test_another_digest_says_most_of_a_record_that_no_place_has(
    first: bytes, second: bytes, told: int | None, requests: int, any_digest: bool, here: Here
) -> None:
    """With --any-digest, the record is read once more and written, where it is the right one but for its digest."""
    places = twins(here, first, second)
    done = here.copy(any_digest=any_digest)
    (failure,) = done.result.failures
    assert failure.path == places[told or 0]
    assert ("has the digest" in failure.reason) == (told is not None)
    is_copied = any_digest and told is not None
    assert ("was copied as it is" in failure.reason) == is_copied
    assert done.data == ({"warc": OTHER} if is_copied else {})
    assert done.result.requests == requests + is_copied
    assert done.result.fetched == (requests + is_copied) * len(OTHER)


def test_a_request_for_each_range_is_counted(here: Here) -> None:
    """Also if an archive is read more than once."""
    noise = record("resource", "http://n.com/", Random(1).randbytes(99_000))
    here.add(
        "a.warc.gz", packed(RESPONSE, noise, record("response", "http://b.com/", more=HTTP), noise, RESPONSE)
    )
    lines = [line for line in here.lines if not line.startswith(b"com,n)")]
    done = here.copy(lines)
    sizes = [int(row[2]) for row in done.rows]
    assert (len(sizes), done.result.requests, done.result.fetched) == (3, 3, sum(sizes))
    assert here.counted == sizes
    assert here.copy(lines).result.requests == 3


def test_the_next_range_is_begun_while_the_records_of_the_last_are_checked(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not if the range itself could not be fetched, and not if the next archive is missing, which is reported in its turn."""
    noise = record("resource", "http://n.com/", Random(1).randbytes(99_000))
    names = {name: record("response", f"http://{name}.com/", more=HTTP) for name in "bcd"}
    here.add("a.warc.gz", packed(RESPONSE, noise, names["b"], noise, names["c"]))
    here.add("d.warc.gz", packed(names["d"]))
    lines = [line for line in here.lines if not line.startswith(b"com,n)")]
    begun: list[tuple[str, int, int]] = []

    def begin(self: OpenRanges, place: Location, start: int, size: int) -> None:
        begun.append((place.name, start, size))

    monkeypatch.setattr(OpenRanges, "begin", begin)
    assert here.copy(lines).reasons == []
    starts = [0, len(packed(RESPONSE, noise)), len(packed(RESPONSE, noise, names["b"], noise))]
    assert begun == [
        ("a.warc.gz", starts[1], len(packed(names["b"]))),
        ("a.warc.gz", starts[2], len(packed(names["c"]))),
        ("d.warc.gz", 0, len(packed(names["d"]))),
    ]
    begun.clear()
    (here.path / "d.warc.gz").rename(here.path / "e.warc.gz")
    outside = lines[-1].replace(b'"d.warc.gz', b'"../d.warc.gz')
    assert len(here.copy([outside, lines[0]]).reasons) == 1
    assert [name for name, *_ in begun] == []
    assert len(here.copy([lines[0], lines[-1].replace(b'"d.warc.gz', b'"~/../../d.warc.gz')]).reasons) == 1


def test_a_record_of_unknown_length_is_copied_whole(here: Here) -> None:
    here.add("a.warc.gz", packed(RESPONSE, record("response", "http://b.com/", more=HTTP)))
    fields = b"com,a)/ 20240517010203 http://a.com/ text/html 200 - - - - 0 a.warc.gz"
    done = here.copy([fields])
    assert (done.data, here.counted, done.reasons) == ({"warc": packed(RESPONSE)}, [0], [])
    assert done.rows[0][1:4] == ["0", "-", "20240517010203"]


@pytest.mark.parametrize(
    ("data", "key", "reason"),
    [
        (b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n", "com,a)/", "the record has no URL"),
        (RESPONSE, "com,a)/x", "the record has the key b'com,a)/', the index line has b'com,a)/x'"),
        (RESPONSE, "com,a)/", ""),
    ],
)  # fmt: skip
def test_a_line_without_a_url_leads_to_the_record_of_its_key(
    data: bytes, key: str, reason: str, here: Here
) -> None:
    (here.path / "a.warc.gz").write_bytes(packed(data))
    place = f'{{"length": "{len(packed(data))}", "offset": "0", "filename": "a.warc.gz"}}'
    done = here.copy([f"{key} - {place}".encode()])
    assert [one.partition(" ( ")[0] for one in done.reasons] == [f"{reason} ( -)".partition(" ( ")[0]] * bool(
        reason
    )
    if not reason:  # the row has what the line lacks
        assert done.rows[0][3:5] == ["20240517010203", "http://a.com/"]


def test_a_line_that_leads_to_no_archive_costs_no_other(here: Here) -> None:
    here.add("a.warc.gz", packed(RESPONSE))
    line = here.lines[0]
    lines = [
        line,
        line.replace(b"a.warc.gz", b"absent.warc.gz"),
        line.replace(b'"a.warc.gz', b'"../a.warc.gz'),
    ]
    done = here.copy(lines)
    assert len(done.rows) == 1
    told = sorted((one.path, one.reason.partition(" (")[0]) for one in done.result.failures)
    assert [path for path, _ in told] == ["../a.warc.gz", str(here.path / "absent.warc.gz")]
    assert "an index line leads there, outside of --archives" in told[0][1]
    assert done.result.captures == 3


def test_each_source_has_its_own_archives(here: Here) -> None:
    for name in ("1", "2"):
        (here.path / name).mkdir()
    here.add("a.warc.gz", packed(RESPONSE))
    (here.path / "a.warc.gz").rename(here.path / "2/a.warc.gz")
    here.places = [ArchivePlaces(str(here.path / "1")), ArchivePlaces(str(here.path / "2"))]
    assert here.copy(source=1).reasons == []
    assert here.copy(source=0).rows == []


def test_the_row_has_the_url_of_the_line(here: Here) -> None:
    here.add("a.warc.gz", packed(RESPONSE))
    line = here.lines[0].replace(b"http://a.com/", b"http://a.com:80/")
    done = here.copy([line])
    assert (done.rows[0][4], done.reasons) == ("http://a.com:80/", [])
