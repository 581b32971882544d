"""Lines that compiled code takes apart, or that are taken apart in columns, give the items that they give one by one."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.errors import InputError
from cdxmill.formats.lines.capture_fields import stored_fields
from cdxmill.formats.tree.pointer_layout import CAPTURE, CLASSIC, Layout, Pointer
from cdxmill.stages import native
from cdxmill.tasks import tree_items
from cdxmill.tasks.tree_items import (
    Archives,
    CaptureItems,
    Items,
    NoItemError,
    open_source,
    pointer_items,
    whole_lines,
)
from tests.material.sanitizers import run_sanitized

TRICKY = st.sampled_from(
    ["a.warc.gz", 'a"b', '", "length": "7', "\\", '"status": "500"', "{", "x}y", "é", "", "status", "length"]
)
NUMBERS = st.sampled_from(["0", "17", "00017", "99999999999", "-", "", "x", "1e3"])
FIELDS = st.fixed_dictionaries(
    {"length": NUMBERS, "offset": NUMBERS, "filename": TRICKY},
    optional={
        "status": st.sampled_from(["200", "-", "404", "70000", "abc", ""]),
        "url": TRICKY,
        "more": TRICKY,
    },
)


def line_of(fields: dict[str, str], order: list[str]) -> bytes:
    chosen = {name: fields[name] for name in sorted(fields, key=order.index)}
    return b"com,a)/ 20200101000000 " + json.dumps(chosen).encode()


def items_of(lines: list[bytes]) -> tuple[Items, bytes, int] | str:
    """Items, names of archives and odd statuses, or the error."""
    archives = Archives()
    captures = CaptureItems(archives)
    try:
        (found,) = captures.of_lines([lines])
    except (NoItemError, ValueError) as error:
        return str(error)
    keys, tails = found
    return (list(keys), list(tails)), b"\n".join(archives), captures.odd_statuses


def in_python(lines: list[bytes]) -> tuple[Items, bytes, int] | str:
    with mock.patch.object(tree_items, "capture_items", None):
        return items_of(lines)


ORDER = st.permutations(["url", "status", "length", "offset", "filename", "more"])
USUAL = st.just(["url", "status", "length", "offset", "filename", "more"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(FIELDS, st.one_of(USUAL, ORDER)), min_size=1, max_size=4))
def test_cdxj_lines_give_the_items_of_python(parts: list[tuple[dict[str, str], list[str]]]) -> None:
    lines = [line_of(fields, order) for fields, order in parts]
    assert isinstance(items_of(lines), str) == isinstance(in_python(lines), str)
    assert items_of(lines) == in_python(lines) or isinstance(items_of(lines), str)


PIECES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b" ",
    b"",
    b"-",
    b"0",
    b"9" * 19,
    b"9" * 20,
    b"\xe9",
    b"\0",
    b"\r",
    b"1e5",
    b"null",
    b'"s": "7", ',
]
PIECES += [b"[1]", b"," , b'"statuscode": 404, ', b'"\\u006cength": "3", ', b'"status": 301, ', b"7" * 301, b"\\ud800", b"65536"]  # fmt: skip
LINES = [
    b'com,a)/ 20200101000000 {"url": "http://a.com/\\u00e9", "status": "200", "length": "9", "offset": "80", "filename": "a.gz"}',
    b'com,a)/ - {"filename":"a.gz","offset":0,"length":17,"status":404,"more":1.5e3,"none":null,"url":"\xc3\xa9"} \r',
    b"com,a)/ 20200101000000 http://a.com/ text/html 200 SHA - - 12 7 a.arc.gz",
    b"com,a)/ 2020 http://a.com/ text/html - SHA - - 12 7 a.arc.gz\r",
]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(LINES),
    st.lists(st.tuples(st.integers(0, 130), st.integers(0, 9), st.sampled_from(PIECES)), max_size=2),
)
def test_a_changed_line_gives_the_item_or_the_error_of_python(
    line: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    for place, size, piece in changes:
        line = line[:place] + piece + line[place + size :]
    assert items_of([line]) == in_python([line])


def test_usual_lines_need_no_python() -> None:
    """Otherwise a build takes five times as long."""
    with mock.patch.object(tree_items, "_any_columns", side_effect=AssertionError):
        for line in LINES:
            assert not isinstance(items_of([line]), str)


def test_lines_behind_an_unusual_one_are_not_lost() -> None:
    odd = line_of({"filename": "\\", "length": "1", "offset": "2"}, ["filename", "length", "offset"])
    for place in (0, 3, 16, 39):
        lines = [LINES[0].replace(b'"80"', b'"%d"' % number) for number in range(40)]
        lines[place] = odd
        assert items_of(lines) == in_python(lines)
        assert len(items_of(lines)[0][0]) == 40


@pytest.mark.parametrize("status", ["65535", "65536", "99999", "065536"])
def test_a_status_of_five_digits_gives_the_item_of_python(status: str) -> None:
    """Those above 65,535 are counted, and not stored."""
    lines = [LINES[0].replace(b'"200"', b'"%b"' % status.encode())]
    assert items_of(lines) == in_python(lines)
    assert items_of(lines)[2] == (int(status) > 65_535)


def test_a_line_with_an_empty_column_more_is_as_in_python() -> None:
    lines = [LINES[2].replace(b" http:", b"  http:")]
    assert items_of(lines) == in_python(lines)


@pytest.mark.parametrize("status", ["000200", "0" * 17 + "200", "0" * 18 + "200", "9" * 24])
def test_a_status_is_the_same_beside_an_odd_one(status: str) -> None:
    one, other = (
        line_of({"filename": "a", "length": "1", "offset": "2", "status": value}, ["filename", "length", "offset", "status"])
        for value in (status, "abc")
    )  # fmt: skip
    for lines in ([one, other], [one] * 40 + [other]):
        assert items_of(lines) == in_python(lines)
        assert items_of(lines)[0][1][0] == items_of([one])[0][1][0]


MUTANTS = """
import random, sys, _native
source, lines = random.Random(3), eval(sys.argv[1])
for _ in range(40_000):
    line = bytearray(source.choice(lines))
    for _ in range(source.randrange(1, 4)):
        line[source.randrange(len(line))] = source.choice(b'"\\\\{} 0-\\0\\r,:u')
    _native.capture_items([bytes(line[: source.randrange(len(line) + 1)]), bytes(line)], 0, names, [], [])
    _native.outline_block(bytes(line).replace(b"0", b"\\0"), source.randrange(5), 2)
    rows = bytes(line).replace(b" ", source.choice([b"\\t", b"\\n"]))
    _native.pointer_rows(rows, bytes(source.choices([1, 2, 4, 8], k=source.randrange(4))), [], [])
"""


def test_compiled_code_reads_only_what_it_is_given(tmp_path: Path) -> None:
    names = "class Names(dict):\n    def __missing__(self, name): return len(name)\nnames = Names()"
    run_sanitized(names + MUTANTS, tmp_path, repr(LINES))


@pytest.mark.parametrize("sizes", [b"\0", b"\x09", b"\xff" * 200, b"\1" * 257])
def test_compiled_code_takes_no_other_sizes_than_those_of_numbers(sizes: bytes) -> None:
    assert native.pointer_rows is not None
    with pytest.raises(ValueError, match=r"field|size"):
        native.pointer_rows(b"a\t" + b"1 " * 300, sizes, [], [])


@given(st.lists(FIELDS, min_size=1, max_size=3))
def test_pointers_have_the_values_of_the_lines(parts: list[dict[str, str]]) -> None:
    lines = [line_of(fields, ["url", "status", "length", "offset", "filename", "more"]) for fields in parts]
    found = items_of(lines)
    if isinstance(found, str):
        return
    (keys, tails), names, _ = found
    for line, key, tail in zip(lines, keys, tails, strict=True):
        fields, pointer = stored_fields(line), Pointer(*CAPTURE.unpack(tail[1:]))
        assert (fields["urlkey"].encode(), int(fields["offset"]), int(fields["length"])) == (
            key,
            *pointer[1:3],
        )
        assert names.decode().split("\n")[pointer.archive] == fields["filename"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b c", "5", "a,b", ""]),
            st.sampled_from(["\t", " "]),
            st.lists(
                st.sampled_from(
                    [
                        "1",
                        "0",
                        "23",
                        "007",
                        "-1",
                        "x",
                        "1.5",
                        "2,3",
                        "4294967296",
                        str(2**64 - 1),
                        str(2**64),
                        "0" * 21,
                    ]
                ),
                min_size=4,
                max_size=6,
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_lines_of_numbers_give_the_items_of_python(rows: list[tuple[str, str, list[str]]]) -> None:
    lines = [f"{key}\t{between.join(numbers)}".encode() for key, between, numbers in rows]

    def items() -> list[tuple[bytes, bytes]] | str:
        try:
            found = pointer_items([b"\n".join(lines)], CLASSIC)
            return [item for keys, tails in found for item in zip(keys, tails, strict=True)]
        except ValueError as error:
            return str(error)

    compiled = items()
    with mock.patch.object(tree_items, "pointer_rows", None):
        assert compiled == items()
    if isinstance(compiled, list):
        numbers = [int(number) for _, _, row in rows for number in row]
        assert [number for _, tail in compiled for number in CLASSIC.unpack(tail[1:])] == numbers


def test_lines_of_numbers_need_no_python() -> None:
    """Otherwise a build takes twice as long."""
    with mock.patch.object(tree_items, "_number_items", side_effect=AssertionError):
        for line in (b"a b\t1 2 3 4 5", b"a\t0\t18446744073709551615\t3 4\t005"):
            ((keys, tails),) = pointer_items([line + b"\n" + line], CLASSIC)
            assert (len(keys), len(tails)) == (2, 2)


@pytest.mark.parametrize("layout", [CLASSIC, CAPTURE])
def test_hexadecimal_pointers_are_their_bytes(layout: Layout) -> None:
    raw = [bytes(range(start, start + layout.size)) for start in (0, 100)]
    one, two = (pointer.hex().encode() for pointer in raw)
    for text in (b"a b\t%b\nc\t%b" % (one, two), b"a b\t%b\nc\t%b" % (one.upper(), two)):
        assert list(pointer_items([text], layout)) == [([b"a b", b"c"], [b"\0" + pointer for pointer in raw])]


@pytest.mark.parametrize("layout", [CLASSIC, CAPTURE])
@pytest.mark.parametrize(
    "text",
    [
        b"a\t%b\tc\n%b",
        b"a\t%b\tc\t%b",
        b"a\t%b\n\n%b",
        b"a\t%b\n%b",
        b"a\t%b\nb\t0%b",
        b"a\t%b\nb\tx%b",
        b"a\t%b\t\nb\t%b",
        b"a\t%b\nb\t%b\t",
        b"a\t%b\nb\t%b\n",
    ],
)
def test_other_lines_with_hexadecimal_digits_are_refused(layout: Layout, text: bytes) -> None:
    digits = bytes(layout.size).hex().encode()
    whole = text.replace(b"x%b", b"x" + digits[1:]).replace(b"%b", digits)
    with pytest.raises(NoItemError, match="expected key, tab and"):
        list(pointer_items([whole], layout))


def test_a_text_is_cut_at_line_ends() -> None:
    assert list(whole_lines([b"a\nb", b"c", b"\nd\n", b"e"])) == [b"a", b"bc\nd", b"e"]
    with pytest.raises(NoItemError, match="longer than 16 MiB"):
        list(whole_lines([b"a" * (1 << 20)] * 17))


def test_the_lines_of_a_file_are_checked_unless_they_are_pointers(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    pointers = [b"a\t1 2 3 4 5", b"b\t1 2 3 4 5"]
    path.write_bytes(b"".join(line + b"\n" for line in pointers))
    assert [line for lines in open_source(str(path)).lists() for line in lines] == pointers
    path.write_bytes(b'com,a)/ 2020 {"url": 1}\ncom,b)/\n')
    with pytest.raises(InputError, match="line 2"):
        list(open_source(str(path)).lists())


@pytest.mark.parametrize("name", [b"", b"-", b"a\nb", b"\n", b"a\0", b"\0"])
def test_a_name_that_the_list_of_archives_cannot_have_is_refused(name: bytes) -> None:
    archives = Archives()
    with pytest.raises(NoItemError, match="cannot be stored"):
        archives[name]
    assert (archives[b"a"], archives[b"--"], archives[b"a"], len(archives)) == (0, 1, 0, 2)
