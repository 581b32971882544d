"""Tallies: the compiled one and the one in Python give the same lines; words, tags and sums are right."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdxmill.stages import native
from cdxmill.stages.counting import tally as tally_module
from cdxmill.stages.counting.tally import (
    MAX_ITEM,
    DictTally,
    Tally,
    clean_item,
    cut_item,
    new_tally,
    spill,
    sum_counts,
    sum_lines,
)
from cdxmill.stages.lines.sort_lines import read_slice
from cdxmill.stages.pages.html_tags import MAX_TAG, start_tags
from cdxmill.stages.window import ReadAt
from tests.material.sanitizers import run_sanitized

MARKUP = [
    "<",
    ">",
    "/",
    "!",
    "--",
    "-",
    "=",
    '"',
    "'",
    "?",
    "<!--",
    "-->",
    "--!>",
    "</script>",
    "<script>",
    "<svg>",
    "</svg>",
    "<title",
    "</title",
    "<![CDATA[",
    "]]>",
    "plaintext",
    "textarea",
    "a",
    "P",
    "x:y",
]
SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


def tallies() -> list[Tally]:
    """An empty one of each kind."""
    assert native.Tally is not None
    return [native.Tally(), DictTally()]


def counts(tally: Tally) -> Counter[bytes]:
    lines = tally.take(b"\n").splitlines(keepends=True)
    assert lines == sorted(lines)
    rows = [line.rstrip(b"\n").split(b"\t") for line in lines]
    return Counter({item: int(count) for item, count in rows})


def test_nothing_is_left_in_a_tally_that_was_taken() -> None:
    for size in range(40, 1000, 40):
        words = [b"word%d" % number for number in range(size)]
        for tally in tallies():
            for _ in range(2):
                tally.add_words(b" ".join(words))
                assert counts(tally) == Counter(words)


@given(
    st.lists(st.one_of(st.sampled_from(MARKUP), st.text(" \n\f\x00ab<>", max_size=3)), max_size=30).map(
        "".join
    )
)
@example("".join(f"<{'a' * length}>" for length in (MAX_TAG, MAX_TAG + 1, 80, 5000)))
@example("<svg><title/><path></svg><title><b></title>")
@example("<!--a--!><b>-->")
@example("<plaintext><b></plaintext>")
@example("<script><!--<script></script><b></script><i><!--><u>")
@example("<script><!--><script></script><b></script><i>")
@example("<a\n href=x><b/><c/ d><e f='>'><g h=\"\n>\"><j =k><!DOCTYPE html><?xml ?></ x><m")
@settings(max_examples=200)
def test_both_find_the_same_tags(html: str) -> None:
    compiled, python = tallies()
    for tally in (compiled, python):
        tally.add_tags(html.encode())
    assert counts(compiled) == counts(python) == Counter(start_tags(html.encode()))


_SANITIZED = """
import ctypes, random, sys, _native
random = random.Random(3)
pieces = [piece.encode() for piece in sys.argv[1:]]
tally = _native.Tally()
for length in (60, 61, 80, 5000):
    tally.add_tags(b"<%b>" % (b"a" * length))
for _ in range(8_000):
    data = b"".join(random.choices(pieces, k=random.randrange(12)))
    data = data[: len(data) - random.randrange(3)]
    if data:
        tally.add_tags((ctypes.c_char * len(data)).from_buffer_copy(data))  # bytes have a NUL after the last byte
assert tally.take(b"").count(b"a" * 60) == 1
"""


def test_no_byte_outside_of_a_page_is_touched(tmp_path: Path) -> None:
    run_sanitized(_SANITIZED, tmp_path, *MARKUP)


@given(st.text(st.sampled_from("ab\u00e9\u4e2d\u2003\x00\x1b" + SPACES), max_size=60))
@example("x" * (MAX_ITEM + 1))
@settings(max_examples=200)
def test_words_are_those_of_str_split(text: str) -> None:
    expected = Counter(word.encode()[:MAX_ITEM] for word in text.split())
    for tally in tallies():
        tally.add_words(text.encode())
        assert counts(tally) == expected


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 9, 16])
def test_items_that_start_alike_are_sorted_with_their_counts(size: int) -> None:
    """Lines are sorted with the TAB after an item, so `a\\x08` comes before `a`."""
    start = b"x" * size
    items = [
        start + end
        for end in (b"a", b"b", b"ab", b"a\x08", b"a\x0b", b"aa", b"a\xff", b"aaaaaaaa", b"aaaaaaab")
    ]
    for order in (items, items[::-1]):
        for tally in tallies():
            for number, item in enumerate(order):
                tally.add(item, number + 1)
            assert counts(tally) == {item: number + 1 for number, item in enumerate(order)}


@given(st.binary(max_size=80))
@example(b"\xe2\x80")
@example(b"a\xc2")
def test_both_find_the_same_words_in_any_bytes(data: bytes) -> None:
    compiled, python = tallies()
    for tally in (compiled, python):
        tally.add_words(data)
        tally.add_words(memoryview(data))
    assert counts(compiled) == counts(python)


def test_a_long_word_is_cut_between_two_characters() -> None:
    text = "x" * (MAX_ITEM - 1) + "\u00e9" * 40
    for tally in tallies():
        tally.add_words(text.encode())
        assert counts(tally) == {b"x" * (MAX_ITEM - 1): 1}


@given(st.lists(st.binary(max_size=5).map(clean_item).filter(bool), max_size=300), st.integers(1, 2**50))
def test_lines_are_sorted_as_bytes_and_tallies_are_joined(items: list[bytes], weight: int) -> None:
    expected = Counter({item: count + count * weight for item, count in Counter(items).items()})
    for all_items, own in zip(tallies(), tallies(), strict=True):
        for item in items:
            own.add(item, 1)
            all_items.add(item, weight)
        all_items.absorb(own)
        assert len(own) == 0
        assert counts(all_items) == expected
        assert counts(all_items) == {}


def test_many_items_are_counted() -> None:
    items = [b"%d" % number for number in range(30_000)]
    for tally in tallies():
        for item in items * 2:
            tally.add(item, 1)
        assert len(tally) == len(items)
        assert tally.size > 1_000_000
        assert counts(tally) == dict.fromkeys(items, 2)


def test_what_cannot_be_counted_is_an_error() -> None:
    assert native.Tally is not None
    tally = native.Tally()
    with pytest.raises(ValueError, match="too long"):
        tally.add(b"x" * (MAX_ITEM + 1), 1)
    with pytest.raises(ValueError, match="itself"):
        tally.absorb(tally)
    with pytest.raises(TypeError):
        tally.absorb(DictTally())


def test_without_compiled_code_a_dictionary_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "Tally", None)
    assert isinstance(new_tally(), DictTally)


@given(
    st.lists(st.dictionaries(st.sampled_from([b"a", b"a\x01", b"b", b"ab"]), st.integers(1, 9)), max_size=5)
)
def test_the_sums_of_runs(runs: list[dict[bytes, int]]) -> None:
    lines = sorted(b"%b\t%d\t%d" % (item, run[item], n) for n, run in enumerate(runs) for item in run)
    expected = Counter[bytes]()
    for run in runs:
        expected.update(run)
    found = [line for lists in sum_lines([lines[:3], lines[3:]]) for line in lists]
    assert found == sorted(b"%b\t%d" % pair for pair in expected.items())


def test_words_that_are_made_to_share_a_hash_are_told_apart() -> None:
    """A hash that only multiplies keeps a flipped top bit as it is, whatever its seed is."""
    pairs = [b"AAAAAAAABBBBBBBB", b"AAAAAAA\xc1BBBB\x46BB\xc2"]  # the top bit, and then it and bit 34
    tally = new_tally()
    tally.add_words(b" ".join(map(b"".join, product(pairs, repeat=14))))
    assert len(tally) == 1 << 14


class Tags(HTMLParser):
    """The start tags that Python's own parser finds."""

    CDATA_CONTENT_ELEMENTS = ("script", "style", "title", "textarea")  # type: ignore[misc]

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: Counter[bytes] = Counter()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found[tag.encode()] += 1


def test_a_page_has_the_tags_that_another_parser_finds() -> None:
    page = (
        b"<!DOCTYPE html><HTML><head><title>a <b> c</title><style>p > i { }</style><script>if (a<b) '<i>'</script>"
        b"</head><body><!-- <em> --><p class='<x>'>1 < 2<br/><my-tag a=1 b><textarea><u></textarea></p></body></HTML>"
    )
    parser = Tags()
    parser.feed(page.decode())
    parser.close()
    assert Counter(start_tags(page)) == parser.found
    assert set(parser.found) == {
        b"html", b"head", b"title", b"style", b"script", b"body", b"p", b"br", b"my-tag", b"textarea"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ("x" * MAX_ITEM, MAX_ITEM),
        ("x" * (MAX_ITEM + 1), MAX_ITEM),
        *(("x" * (MAX_ITEM - short) + "\u20ac" * 9, MAX_ITEM - short % 3) for short in range(1, 7)),
        *(("x" * (MAX_ITEM - short) + "\U0001f600" * 9, MAX_ITEM - short % 4) for short in range(1, 9)),
    ],
)
def test_a_long_item_ends_with_a_whole_character(item: str, size: int) -> None:
    found = cut_item(item.encode())
    assert len(found) == size
    assert item.startswith(found.decode())
    assert len(cut_item(b"\x80" * 1100)) == MAX_ITEM - 3  # no characters


def test_the_memory_of_a_tally_without_compiled_code_grows_with_its_items() -> None:
    tally, other = DictTally(), DictTally()
    assert tally.size == 0
    for _ in range(2):
        tally.add(b"abc", 1)
    one = tally.size
    assert one > 3
    other.add(b"abc", 1)
    tally.absorb(other)
    assert (tally.size, other.size) == (one, 0)
    tally.add(b"abcd", 1)
    assert tally.size == 2 * one + 1
    tally.take(b"")
    assert tally.size == 0


def test_a_tally_is_spilled_as_a_run_of_its_lines(tmp_path: Path) -> None:
    def read_at(name: str) -> ReadAt:
        data = (tmp_path / name).read_bytes()
        return lambda offset, size: data[offset : offset + size]

    for number, tally in enumerate(tallies()):
        for items in (["b", "a", "b"], []):
            for item in items:
                tally.add(item.encode(), 1)
            run = spill(tally, lambda name: (tmp_path / name).open("wb"), f"{number}-{len(items)}")
            assert run.lines == len(set(items))
            found = [line for lines in read_slice(read_at, run.whole(), 100) for line in lines]
            assert found == ([b"a\t1\t%d-3" % number, b"b\t2\t%d-3" % number] if items else [])
            assert len(tally) == 0


def test_sums_come_in_lists_that_are_not_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally_module, "_LIST", 4)
    given = [[b"%02d\t1" % (n // 2) for n in range(start, start + 3)] for start in range(0, 30, 3)]
    found = list(sum_counts(given))
    assert [line for lines in found for line in lines] == [b"%02d\t2" % n for n in range(15)]
    assert [len(lines) for lines in found] == [4, 4, 5, 2]
    assert list(sum_counts([])) == list(sum_counts([[]])) == []
