"""Calls of all entry points of the compiled part: with arguments that they take, and with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdxmill.stages import native

compiled: Any = vars(native).get("_native")
TALLY, RANGE = "Tally", (b"a\n", 0, 2)
USUAL: dict[str, tuple[Any, ...]] = {
    "read": (({}, b"x", len), b"", 0, 0),
    "head": (b"",),
    "frame_within": (b"ab", 0, 1),
    "count": (TALLY, "tags", b""),
    "odd_line": (*RANGE, 0),
    "lines_in_order": RANGE,
    "capture_columns": ([], str),
    "capture_items": ([b"a)/ 2020 http://a/ x 200 S - - 1 2 a.gz"], 0, {b"a.gz": 1}, [], []),
    "pointer_rows": (b"a\t1", b"\1", [], []),
    "outline_block": (b"a\0\1b\0\1\0", 1, 1),
    "elements_in": (b"<a", (b"a",)),
    "parsed_size": (b"<a>",),
    "outline": (b"<a>", 0, str),
    "plain_links": (["/a", "b#c", "\\"], b"http://a/", 9, str),
    "Tally": (),
    "Tally.add": (b"a", 1),
    "Tally.absorb": (TALLY,),
    "Tally.add_words": (b"a",),
    "Tally.add_tags": (b"<a>",),
    "Tally.take": (b"\n",),
    "Merger": ([([b"a", b"b\n"], b"a", b"c")] * 9,),
    "Merger.fill": (bytearray(), 1),
    "CaptureSums": (False,),
    "CaptureSums.take": (b'a)/ 2020 {"mime": "x"}\n', 0, 0, []),
    "CaptureSums.add": (b"a", b"2020", (b"",) * 6),
    "CaptureSums.groups": (),
    "CaptureSums.totals": (),
    "CaptureSums.pack": ("urls",),
    "CaptureSums.absorb": ("urls", compiled.CaptureSums(False).pack("urls")),
    "CaptureSums.sampled": ("urls",),
}
"""Arguments that each entry point takes."""


def entry(name: str) -> Callable[..., Any]:
    owner, _, method = name.partition(".")
    if not method:
        found: Callable[..., Any] = getattr(compiled, owner)
        return found
    made = {
        "Tally": compiled.Tally,
        "Merger": lambda: compiled.Merger([]),
        "CaptureSums": lambda: compiled.CaptureSums(False),
    }
    bound: Callable[..., Any] = getattr(made[owner](), method)
    return bound


def usual(name: str) -> list[Any]:
    return [compiled.Tally() if value is TALLY else value for value in USUAL[name]]


WRONG: list[tuple[str, tuple[Any, ...], type[Exception]]] = [
    ("read", (({}, b"x"), b"", 0, 0), TypeError),
    ("read", (({}, "x", len), b"", 0, 0), TypeError),
    ("frame_within", (b"ab", 3, 1), ValueError),
    ("count", (None, "tags", b""), TypeError),
    ("capture_columns", (["a"], str), TypeError),
    ("capture_columns", ([b"a"], str), TypeError),
    ("capture_columns", ([b"a"], lambda line: ()), TypeError),
    ("capture_columns", ([b"a"], lambda line: (1,) * 23), TypeError),
    ("capture_columns", ([b"a"], lambda line: (b"",) * 23), TypeError),
    ("capture_columns", ([b"a"], lambda line: (None,) * 22 + (2**64,)), OverflowError),
    ("odd_line", (b"a\n", 2, 1, 0), ValueError),
    ("odd_line", (b"a\n", 0, 3, 0), ValueError),
    ("lines_in_order", (b"a\n", 2, 1), ValueError),
    ("lines_in_order", (b"a\n", 0, 3), ValueError),
    ("capture_items", (["a"], 0, {}, [], []), TypeError),
    ("pointer_rows", (b"", b"\0", [], []), ValueError),
    ("pointer_rows", (b"", b"\x09", [], []), ValueError),
    ("pointer_rows", (b"", b"\1" * 257, [], []), ValueError),
    ("outline_block", (b"", 1, 0), ValueError),
    ("elements_in", (b"", ("a",)), TypeError),
    ("elements_in", (b"", (b"",)), ValueError),
    ("elements_in", (b"", (b"a",) * 17), ValueError),
    ("plain_links", ([], b"http://a/", 8, str), ValueError),
    ("plain_links", ([], b"http://a/", 10, str), ValueError),
    ("plain_links", ([], b"http://a/b", 9, str), ValueError),
    ("plain_links", (["\\"], b"http://a/", 9, 1), TypeError),
    ("outline", (b"<a>", 0, 1), TypeError),
    ("Tally.add", (b"x" * 1001, 1), ValueError),
    ("Merger", ([1],), TypeError),
    ("Merger", ([([], None)],), TypeError),
    ("Merger", ([(1, None, None)],), TypeError),
    ("Merger", ([([], 1, None)],), TypeError),
    ("Merger", ([([], None, "b")],), TypeError),
    ("Merger", ([([1], None, None)],), TypeError),
    ("Merger.fill", (bytearray(), 0), ValueError),
]
