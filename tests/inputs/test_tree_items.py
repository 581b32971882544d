"""Lines that are taken apart in columns give the items that they give one by one."""

from __future__ import annotations

import json
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.capture_fields import stored_fields
from cdxmill.formats.pointer_layout import CAPTURE, CLASSIC, Pointer
from cdxmill.inputs import tree_items
from cdxmill.inputs.tree_items import Archives, CaptureItems, Items, LineError, pointer_items, whole_lines

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


def items_of(lines: list[bytes]) -> tuple[Items, bytes, int] | None:
    archives = Archives()
    captures = CaptureItems(archives)
    try:
        (found,) = captures.of_lines([lines])
    except (LineError, ValueError):
        return None
    keys, tails = found
    return (list(keys), list(tails)), archives.text(), captures.odd_statuses


ORDER = st.permutations(["url", "status", "length", "offset", "filename", "more"])
USUAL = st.just(["url", "status", "length", "offset", "filename", "more"])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(FIELDS, st.one_of(USUAL, ORDER)), min_size=1, max_size=4))
def test_cdxj_lines_in_columns_are_those_one_by_one(parts: list[tuple[dict[str, str], list[str]]]) -> None:
    lines = [line_of(fields, order) for fields, order in parts]
    together = items_of(lines)
    with mock.patch.object(tree_items, "_cdxj_columns", lambda lines: None):
        assert together == items_of(lines)


def test_lines_of_crawls_are_taken_apart_in_columns() -> None:
    """Otherwise a build takes three times as long."""
    fields = {
        "url": "http://a.com/{",
        "mime": "text/html",
        "status": "200",
        "length": "9",
        "offset": "8",
        "filename": "a.gz",
    }
    usual = (
        b"com,a)/ 20200101000000 "
        + json.dumps({**fields, "url": "http://a.com/", "languages": "eng"}).encode()
    )
    assert tree_items._cdxj_columns([usual, usual.replace(b'"status": "200", ', b"")]) is not None
    assert tree_items._cdxj_columns([b"com,a)/ 20200101000000 " + json.dumps(fields).encode()]) is None
    cdx = b"com,a)/ 20200101000000 http://a.com/ text/html 200 SHA - - 12 7 a.arc.gz"
    assert tree_items._cdx_columns([cdx, cdx]) is not None
    assert tree_items._cdx_columns([cdx, cdx + b" x"]) is None


@given(st.lists(FIELDS, min_size=1, max_size=3))
def test_pointers_have_the_values_of_the_lines(parts: list[dict[str, str]]) -> None:
    lines = [line_of(fields, ["url", "status", "length", "offset", "filename", "more"]) for fields in parts]
    found = items_of(lines)
    if found is None:
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
                st.sampled_from(["1", "0", "23", "007", "-1", "x", "1.5", "2,3"]), min_size=4, max_size=6
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_lines_of_numbers_in_columns_are_those_one_by_one(rows: list[tuple[str, str, list[str]]]) -> None:
    lines = [f"{key}\t{between.join(numbers)}".encode() for key, between, numbers in rows]

    def items(texts: list[bytes]) -> list[tuple[bytes, bytes]] | None:
        try:
            return [
                item
                for keys, tails in pointer_items(texts, CLASSIC)
                for item in zip(keys, tails, strict=True)
            ]
        except LineError:
            return None

    assert items([b"\n".join(lines)]) == items(lines)
    valid = all(len(numbers) == 5 and all(number.isdigit() for number in numbers) for _, _, numbers in rows)
    assert (items(lines) is not None) == valid


def test_a_text_is_cut_at_line_ends() -> None:
    assert list(whole_lines([b"a\nb", b"c", b"\nd\n", b"e"])) == [b"a", b"bc\nd", b"e"]
    with pytest.raises(LineError, match="longer than 16 MiB"):
        list(whole_lines([b"a" * (1 << 20)] * 17))
