"""Single lines with the places of records in new archives: every form of a line, and what cannot be moved."""

from __future__ import annotations

import pytest

from cdxmill.formats.lines.capture_fields import RecordPlace
from cdxmill.formats.offset_table import HEADER, OffsetTable, names_of, row_format
from cdxmill.stages.lines.move_lines import LineMover, Moved, Names, Skip, TableNames, move_line

START = b"com,a)/ 2020 "
PLACE = b'"offset": "3", "filename": "a.gz"'


def moved(place: RecordPlace) -> RecordPlace:
    """Records of b.gz stay; all others are a hundred bytes later, one byte longer."""
    if place.filename == b"b.gz":
        return place
    return RecordPlace(b"new.zst", place.offset + 100, None if place.length is None else place.length + 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"length": "9", %b}' % PLACE, b'{"length": "10", "offset": "103", "filename": "new.zst"}'),
        (b'{"length": 9, %b}' % PLACE, b'{"length": 10, "offset": "103", "filename": "new.zst"}'),
        (b'{"s": "9", "o": 3, "f": "a.gz"}', b'{"s": "10", "o": 103, "f": "new.zst"}'),
        (b"{%b}" % PLACE, b'{"offset": "103", "filename": "new.zst"}'),
        (b'{"length": "-", %b}' % PLACE, b'{"length": "-", "offset": "103", "filename": "new.zst"}'),
        (
            b'{"more": {"offset": "3", "filename": "a.gz", "x": [{"length": 1}]}, %b}' % PLACE,
            b'{"more": {"offset": "3", "filename": "a.gz", "x": [{"length": 1}]},'
            b' "offset": "103", "filename": "new.zst"}',
        ),
        (
            b'{%b, "orig.length": "5", "orig.offset": "6", "orig.filename": "c.gz"}' % PLACE,
            b'{"offset": "103", "filename": "new.zst",'
            b' "orig.length": "6", "orig.offset": "106", "orig.filename": "new.zst"}',
        ),
        (
            b'{%b, "orig.length": "5", "orig.offset": "6", "orig.filename": "b.gz"}' % PLACE,
            b'{"offset": "103", "filename": "new.zst",'
            b' "orig.length": "5", "orig.offset": "6", "orig.filename": "b.gz"}',
        ),
        (
            b'{%b, "orig.length": "-", "orig.offset": "-", "orig.filename": "-"}' % PLACE,
            b'{"offset": "103", "filename": "new.zst",'
            b' "orig.length": "-", "orig.offset": "-", "orig.filename": "-"}',
        ),
        (
            b'{"offset": "3", "filename": "b.gz", "orig.length": "5", "orig.offset": "6", "orig.filename": "c.gz"}',
            b'{"offset": "3", "filename": "b.gz", "orig.length": "6", "orig.offset": "106", "orig.filename": "new.zst"}',
        ),
        (b"http://a.com/ - 200 X - - 9 3 a.gz", b"http://a.com/ - 200 X - - 10 103 new.zst"),
        (b"http://a.com/ - 200 X - - 9 3 b.gz", b"http://a.com/ - 200 X - - 9 3 b.gz"),
        (b"http://a.com/ - 200 X - 3 a.gz", b"http://a.com/ - 200 X - 103 new.zst"),
        (
            b"http://a.com/ - 200 X - - 9 3 a.gz 5 6 c.gz",
            b"http://a.com/ - 200 X - - 10 103 new.zst 6 106 new.zst",
        ),
        (
            b"http://a.com/ - 200 X - - 9 3 a.gz - - -",
            b"http://a.com/ - 200 X - - 10 103 new.zst - - -",
        ),
    ],
)  # fmt: skip
def test_only_the_places_of_a_line_change(old: bytes, new: bytes) -> None:
    for end in (b"", b"\n", b"\r\n"):
        assert move_line(START + old + end, moved) == START + new + end


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{%b, "offset": "4"}' % PLACE, "two fields offset"),
        (b'{%b, "filename": "b.gz"}' % PLACE, "two fields filename"),
        (b'{"length": "1", %b, "length": "1"}' % PLACE, "two fields length"),
        (b'{"x": 1, %b, "x": 2}' % PLACE, "two fields x"),
        (b'{"offset": "x", "filename": "a.gz"}', "no valid filename and offset"),
        (b'{"offset": "-1", "filename": "a.gz"}', "no valid filename and offset"),
        (b'{"offset": "%s", "filename": "a.gz"}' % (b"1" * 19), "no valid filename and offset"),
        (b'{"offset": "3"}', "no valid filename and offset"),
        (b'{"filename": "a.gz"}', "no valid filename and offset"),
        (b'{"more": {"offset": "3", "filename": "a.gz"}}', "no valid filename and offset"),
        (b'{%b, "orig.filename": "c.gz"}' % PLACE, "no valid filename and offset"),
        (b'{"offset": {"x": "3"}, "filename": "a.gz"}', "no valid filename and offset"),
        (b'{%b, "more": {"x": 1}' % PLACE, "no valid JSON"),
        (b'{%b}}' % PLACE, "no valid JSON"),
        (b"http://a.com/ - 200", "no valid filename and offset"),
        (b"http://a.com/ - 200 X - - 9 - a.gz", "no valid filename and offset"),
    ],
)  # fmt: skip
def test_a_line_without_one_certain_place_is_not_moved(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        move_line(START + line, moved)


def test_a_line_gets_the_directory_that_its_own_name_has() -> None:
    names = TableNames({"t": Names(b"warcs/a.gz", b"new/a.zst"), "u": Names(b"c.gz", b"c.zst")})
    assert names.find(b"warcs/a.gz") == Moved("t", b"new/a.zst")
    assert names.find(b"a.gz") == Moved("t", b"a.zst")
    assert names.find(b"s3://b/a.gz") == Moved("t", b"s3://b/a.zst")
    assert names.find(b"x/c.gz") == Moved("u", b"x/c.zst")
    assert names.find(b"d.gz") is None


def table(*rows: tuple[int, int, int, int]) -> OffsetTable:
    """The table of a.gz: old offset and length, new offset and length of each record."""
    form = row_format("a.gz", "a.zst")
    return OffsetTable([[HEADER[:-1], *((form % row)[:-1] for row in rows)]])


def test_lines_are_counted_by_what_became_of_them() -> None:
    loaded = []

    def load(path: str) -> OffsetTable:
        loaded.append(path)
        return table((0, 9, 0, 5), (9, 8, 5, 4))

    mover = LineMover(TableNames({"t": Names(b"a.gz", b"a.zst"), "u": Names(b"b.gz", b"b.zst")}), load)
    line = b'com,a)/ 2020 {"length": "%d", "offset": "%d", "filename": "%b"}'
    old = [line % place for place in ((9, 0, b"a.gz"), (8, 9, b"a.gz"), (9, 0, b"other.gz"))]
    new = [line % place for place in ((5, 0, b"a.zst"), (4, 5, b"a.zst"), (9, 0, b"other.gz"))]
    lost = [line % place for place in ((8, 0, b"a.gz"), (9, 1, b"a.gz"), (9, 99, b"a.gz"))]
    assert mover.move(old + lost + old[:1]) == new + new[:1]
    assert mover.move([b"com,a)/ 2020 {}"]) == []
    assert (mover.moved, mover.copied, loaded) == (3, 1, ["t"])
    reason = Skip("no record of a.gz has this offset and length", "t")
    assert mover.skipped == {reason: 3, Skip("the line has no valid filename and offset"): 1}
    assert mover.examples[reason] == lost[0][:80]
    assert list(mover.examples.values())[1:] == [b"com,a)/ 2020 {}"]


def test_a_table_gives_the_new_place_of_each_record() -> None:
    found = table((0, 9, 0, 5), (9, 8, 5, 4))
    assert [found.find(offset, None) for offset in (0, 1, 9, 17)] == [(0, 5), None, (5, 4), None]
    assert [found.find(9, length) for length in (7, 8, 9)] == [None, (5, 4), None]
    with pytest.raises(ValueError, match="they do not ascend"):
        table((0, 9, 0, 5), (0, 8, 5, 4))
    wrong: tuple[list[list[bytes]], ...] = ([], [[]], [[b"x"]])
    for lists in wrong:
        with pytest.raises(ValueError, match="is not a table of offsets"):
            OffsetTable(lists)
    assert OffsetTable([[HEADER[:-1]], []]).find(0, None) is None


def test_the_names_of_a_table_are_in_each_row() -> None:
    row = row_format("a%\xff.gz", "b c.zst") % (0, 9, 0, 5)
    assert names_of(row) == ("a%\xff.gz".encode(), b"b c.zst")
    with pytest.raises(ValueError, match="is not a table of offsets"):
        names_of(row.rpartition(b"\t")[0] + b"\n")


@pytest.mark.parametrize("more", [b"", b', "mime": "a/b", "status": "200"'])
@pytest.mark.parametrize("behind", [b"", b', "charset": "UTF-8", "languages": "eng"'])
def test_a_usual_line_is_moved_in_one_step(more: bytes, behind: bytes) -> None:
    start = b'com,a)/ 20200101000000 {"url": "http://a.com/"' + more
    line = start + b', "length": "%d", "offset": "%d", "filename": "%b"' + behind + b"}"
    assert move_line(line % (9, 3, b"a.gz"), moved) == line % (10, 103, b"new.zst")
    stays = line % (9, 3, b"b.gz")
    assert move_line(stays, moved) is stays
    quoted = move_line(line % (9, 3, b"a.gz"), lambda place: RecordPlace(b'a"b', 0, 1))
    assert quoted == line % (1, 0, b'a\\"b')


def test_two_tables_of_one_archive_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^t and u are tables of the same archive$"):
        TableNames({"t": Names(b"a.gz", b"a.zst"), "u": Names(b"a.gz", b"b.zst")})


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_base_name_that_several_archives_have_is_that_of_none(number: int) -> None:
    names = TableNames({f"t{one}": Names(b"%d/a.gz" % one, b"%d/a.zst" % one) for one in range(number)})
    assert names.find(b"0/a.gz") == Moved("t0", b"0/a.zst")
    if number == 1:
        assert names.find(b"a.gz") == Moved("t0", b"a.zst")
        return
    tables = " and ".join(f"t{one}" for one in range(number))
    with pytest.raises(ValueError, match=rf"^a\.gz is the base name of several archives, those of {tables}$"):
        names.find(b"a.gz")
