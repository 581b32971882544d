"""Chunks of sorted lines: from many mappers to reducers, whatever the lines are."""

from __future__ import annotations

import gzip
from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from io import BufferedWriter, BytesIO
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.stages import native
from cdxmill.stages.lines import sorted_input
from cdxmill.stages.lines.line_chunks import (
    ChunkSender,
    ChunkSizes,
    Record,
    format_line,
    format_marks,
    format_record,
    merge_texts,
    read_lines,
    read_records,
    sort_chunks,
)
from cdxmill.stages.lines.line_lists import is_capture_line, text_of

LINES = st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"\r")), max_size=60)
IN_ORDER = LINES.map(lambda lines: [sorted(filter(is_capture_line, lines))])
"""A file that is sorted."""
CHUNKS = Compressor(level=1)
FORM = partial(format_record, pack=CHUNKS.compress)
POINTS = st.lists(st.binary(min_size=1, max_size=3), unique=True, max_size=4).map(sorted)


def sent_by(
    files: list[list[list[bytes]]], corrupt: set[int], points: list[bytes], sizes: ChunkSizes
) -> bytes:
    """What a mapper sends of these files; those of `corrupt` are found so after their last line."""
    out, spool = BytesIO(), BytesIO()
    sender = ChunkSender(out, spool, FORM, points, sizes)
    for number, lists in enumerate(files):
        sender.begin()
        sender.add_text([text_of(lines) for lines in lists])
        if number in corrupt:
            sender.undo()
        else:
            sender.keep()
    sender.end()
    return out.getvalue()


def blocks_of(chunks: list[list[bytes]], held: int) -> list[tuple[int, bytes]]:
    return [(count, bytes(text)) for count, text in merge_texts(map(b"\n".join, chunks), held, 3)]


@given(
    st.lists(st.lists(st.lists(LINES, max_size=3) | IN_ORDER, max_size=4), max_size=4),
    st.sets(st.integers(0, 3)),
    POINTS,
    st.integers(1, 60),
    st.integers(1, 90),
)
def test_reducers_get_all_lines_of_whole_files_of_their_shard_in_order(
    mappers: list[list[list[list[bytes]]]], corrupt: set[int], points: list[bytes], chunk: int, held: int
) -> None:
    shards: list[list[list[bytes]]] = [[] for _ in range(len(points) + 1)]
    for files in mappers:
        data = sent_by(files, corrupt, points, ChunkSizes(chunk, held))
        for _, packed in read_records(BytesIO(data)):
            one = CHUNKS.decompress(packed).split(b"\n")
            shards[bisect_right(points, one[0])].append(one)
    whole = (lists for files in mappers for number, lists in enumerate(files) if number not in corrupt)
    wanted = sorted(line for lists in whole for lines in lists for line in lines if is_capture_line(line))
    assert sorted(line for shard in shards for one in shard for line in one) == wanted
    found = []
    for number, shard in enumerate(shards):
        in_order = sorted(shard, key=itemgetter(0))
        texts = blocks_of(in_order, held)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "Merger", None)
            assert blocks_of(in_order, held) == texts
        assert [count for count, _ in texts[:-1]] == [3] * (len(texts) - 1)
        assert all(count == text.count(b"\n") for count, text in texts)
        merged = b"".join(text for _, text in texts).split(b"\n")[:-1]
        assert all(bisect_right(points, line) == number for line in merged)
        found += merged
    assert found == sorted(set(wanted))


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_records_are_read_as_they_are_written(records: list[Record]) -> None:
    data = b"".join(FORM(key, lines) for key, lines in records)
    assert [(key, CHUNKS.decompress(packed)) for key, packed in read_records(BytesIO(data))] == records


def test_a_cut_is_noticed_wherever_it_is() -> None:
    data = FORM(b"a", b"a\nbc")
    for cut in range(1, len(data)):
        with pytest.raises(ValueError, match="is truncated"):
            list(read_records(BytesIO(data + data[:cut])))


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=9)), max_size=12), POINTS)
def test_sorted_lines_have_the_records_of_each_shard_in_the_order_of_their_keys(
    records: list[Record], points: list[bytes]
) -> None:
    lines = [format_line(key, text, points, CHUNKS.compress) for key, text in records]
    lines += 2 * format_marks(len(points) + 1).splitlines(keepends=True)
    found = {
        shard: [(key, CHUNKS.decompress(packed)) for key, packed in ours]
        for shard, ours in read_lines(sorted(lines))
    }
    assert list(found) == list(range(len(points) + 1))
    for shard, ours in found.items():
        expected = [
            record for record in records if (bisect_right(points, record[0]) if record[0] else 0) == shard
        ]
        assert sorted(ours) == sorted(expected)
        assert [key for key, _ in ours] == sorted(key for key, _ in expected)


def test_chunks_have_about_the_size_that_is_asked_for() -> None:
    lines = [b"%09d" % number for number in range(10_000)]
    sizes = [len(b"".join(chunk)) for chunk in sort_chunks(lines, (), 900)]
    assert set(sizes[:-1]) == {900}
    assert len(list(sort_chunks([b"x" * 5_000, b"y"], (), 900))) == 2


@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_mapper_holds_only_as_much_as_it_may(is_sorted: bool) -> None:
    """Of whole files, or in the spool for the file that is read."""
    form = partial(format_record, pack=bytes)
    out, spool = BytesIO(), BytesIO()
    sender = ChunkSender(out, spool, form, (), ChunkSizes(200, 1000))
    total = 0
    for number in range(30):
        sender.begin()
        lines = [b"%03d %05d" % (number, count) for count in range(number + 1)]
        text = text_of(lines if is_sorted else lines[::-1])
        sender.add_text([text])
        total += len(text)
        sender.keep()
        assert spool.tell() == 0
        assert total - out.tell() < 1000 + len(text)
    sender.begin()
    sender.add_text(
        text_of([b"9 %05d" % count]) for count in (range(900) if is_sorted else range(900, 0, -1))
    )
    assert spool.tell() > 5000
    sender.undo()
    sender.end()
    found = [line for _, lines in read_records(BytesIO(out.getvalue())) for line in lines.split(b"\n")]
    assert len(found) == sum(range(31))
    assert not any(line.startswith(b"9") for line in found)


@pytest.mark.parametrize("has_merger", [True, False])
def test_a_reducer_holds_few_chunks_where_they_do_not_overlap(
    has_merger: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_merger:
        monkeypatch.setattr(native, "Merger", None)
    read: list[int] = []

    def chunks() -> Iterator[bytes]:
        for number in range(40):
            read.append(number)
            yield b"\n".join(b"%03d %05d" % (number, count) for count in range(10))

    for number, _ in enumerate(merge_texts(chunks(), 300, 10)):
        assert len(read) <= number + 6
    assert number == 39


@pytest.mark.skipif(native.lines_in_order is None, reason="needs compiled code")
@pytest.mark.parametrize(("held", "number"), [(16, 5), (40, 5), (41, 1), (1000, 1)])
def test_a_sorted_text_is_sent_in_parts_as_soon_as_there_is_more_of_it_than_may_be_held(
    held: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it is short, it is held with the lines of other files, as one chunk."""
    monkeypatch.setattr(sorted_input, "BATCH", 8)
    pieces = [b"%07d\n" % line for line in range(5)]
    out, spool = BytesIO(), BytesIO()
    sender = ChunkSender(out, spool, FORM, [], ChunkSizes(held=held, chunk=1000))
    sender.begin()
    sender.add_text(pieces)
    assert bool(spool.getvalue()) is (number > 1)
    sender.keep()
    sender.end()
    out.seek(0)
    found = [gzip.decompress(data) for _, data in read_records(out)]
    assert b"\n".join(found) + b"\n" == b"".join(pieces)
    assert len(found) == number


def test_what_is_sent_at_the_end_does_not_wait_in_a_buffer() -> None:
    raw = BytesIO()
    out = BufferedWriter(raw)  # type: ignore[arg-type, unused-ignore]
    sender = ChunkSender(out, BytesIO(), FORM, [], ChunkSizes(held=9, chunk=9))
    sender.begin()
    sender.add([b"a line"])
    sender.keep()
    sender.end()
    assert raw.getvalue()
