"""The records around a response that belong to it: they name it, or it names them, and nothing lies between."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest
import zstandard

from cdxmill.stages.records.fetch_record import AROUND, Archive, Placed, records_after, records_before

Store = Callable[[bytes], bytes]
STORES: dict[str, Store] = {"plain": bytes, "gz": gzip.compress, "zst": zstandard.compress}
in_all_containers = pytest.mark.parametrize("store", STORES.values(), ids=STORES)


def record(kind: bytes, own: bytes = b"", other: bytes = b"", block: bytes = b"x") -> bytes:
    """A record with an id that names another one."""
    head = b"WARC/1.0\r\nWARC-Type: %b\r\n" % kind
    head += b"WARC-Record-ID: %b\r\n" % own if own else b""
    head += b"WARC-Concurrent-To: %b\r\n" % other if other else b""
    return head + b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block)


RESPONSE = record(b"response", b"<r>", b"<named>")
REQUEST, NOTES = record(b"request", b"<q>", b"<r>"), record(b"metadata", b"<m>", b"<r>")
FAR = record(b"request", b"<f>", b"<else>")


class Found(NamedTuple):
    """How many records before and after the response were found, and the limits where they begin and end."""

    before: int
    after: int
    low: int
    high: int


def found(before: list[bytes], response: bytes, after: list[bytes], low: int = 0, high: int = 0) -> Found:
    """What is found of an archive. The search may begin `low` bytes later and end `high` bytes earlier."""
    data = b"".join([*before, response, *after])
    start = sum(map(len, before))

    def read_at(offset: int, size: int) -> bytes:
        return data[offset : offset + size]

    archive = Archive(read_at)
    one = Placed(start, archive.record(start, None))
    first = records_before(archive, read_at, one, low)
    last = records_after(archive, one, len(data) - high)
    places = [other.offset for other in first]
    assert places == sorted(places)
    if first:
        assert first[-1].next_start == start
    assert [other.offset for other in last][:1] in ([], [one.next_start])
    return Found(len(first), len(last), places[0] if places else start, one.next_start)


@in_all_containers
@pytest.mark.parametrize("number", [0, 1, 3, 8, 9])
def test_up_to_eight_neighbours_on_each_side_are_found(number: int, store: Store) -> None:
    before = [store(record(b"request", b"<%d>" % one, b"<r>")) for one in range(number)]
    after = [store(record(b"metadata", b"<%d>" % one, b"<r>")) for one in range(number)]
    assert found(before, store(RESPONSE), after)[:2] == (min(number, 8),) * 2


@in_all_containers
def test_the_limits_of_the_search_are_kept_to_the_byte(store: Store) -> None:
    before, after = [store(FAR), store(REQUEST), store(REQUEST)], [store(NOTES), store(NOTES)]
    first = len(before[0])
    for low, high, counts in (
        (first, 0, (2, 2)),
        (first + 1, 1, (1, 1)),
        (first + len(before[1]), len(after[1]), (1, 1)),
        (first + len(before[1]) + 1, len(after[1]) + 1, (0, 0)),
    ):
        assert found(before, store(RESPONSE), after, low, high)[:2] == counts


@pytest.mark.parametrize(("more", "counts"), [(0, (1, 1)), (1, (0, 0))])
def test_what_reaches_farther_than_32_kib_is_not_read(more: int, counts: tuple[int, int]) -> None:
    def filled(kind: bytes) -> bytes:
        digits = len(record(kind, b"<x>", b"<r>", b"x" * 10_000)) - 10_000
        return record(kind, b"<x>", b"<r>", b"x" * (AROUND - digits + more))

    assert len(filled(b"request")) == AROUND + more
    assert found([filled(b"request")], RESPONSE, [filled(b"metadata")])[:2] == counts


@in_all_containers
@pytest.mark.parametrize(
    ("neighbour", "is_related"),
    [
        (REQUEST, True),
        (NOTES, True),
        (record(b"request", b"<named>"), True),
        (record(b"metadata", b"<named>", b"<else>"), True),
        (record(b"response", b"<other>", b"<r>"), False),
        (record(b"resource", b"<named>"), False),
        (record(b"request", b"<q>", b"<else>"), False),
        (record(b"request", b"<q>"), False),
        (record(b"request"), False),
    ],
    ids=["request", "notes", "named", "named notes", "response", "resource", "else", "nothing", "no id"],
)
def test_it_is_a_request_or_metadata_and_one_names_the_other(
    neighbour: bytes, is_related: bool, store: Store
) -> None:
    """A record that is not related ends the search."""
    one = store(neighbour)
    far = [store(REQUEST), one]
    counts = found(far, store(RESPONSE), far[::-1])[:2]
    assert counts == ((2, 2) if is_related else (0, 0))


def test_records_without_ids_are_not_related() -> None:
    assert found([record(b"request")], record(b"response"), [record(b"metadata")])[:2] == (0, 0)


@in_all_containers
@pytest.mark.parametrize("gap", [b"x", b"some text\r\n", b"\0" * 9])
def test_nothing_may_lie_between(gap: bytes, store: Store) -> None:
    one, two = store(REQUEST), store(NOTES)
    assert found([one, gap], store(RESPONSE), [gap, two])[:2] == (0, 0)
    assert found([one, gap, one], store(RESPONSE), [two, gap, two])[:2] == (1, 1)


@in_all_containers
@pytest.mark.parametrize("start", [b"", b"see "])
def test_the_start_of_a_record_in_a_payload_is_none(start: bytes, store: Store) -> None:
    """Seen from behind, it is the first that looks like one."""
    inside = store(record(b"request", b"<q>", b"<r>", start + FAR))
    assert found([inside, store(REQUEST)], store(RESPONSE), [inside])[:2] == (2, 1)


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_record_whose_bytes_are_in_its_frame_as_they_are_is_a_compressed_one(has_checksum: bool) -> None:
    store = zstandard.ZstdCompressor(write_checksum=has_checksum).compress
    whole = record(b"request", b"<named>", block=Random(1).randbytes(900))
    one = store(whole)
    assert whole in one
    assert found([one, one], store(RESPONSE), [])[:2] == (2, 0)
