"""Compiled code against its twins in Python, with changed inputs. The same seed gives the same inputs.

python -m bench.twins [CALLS] [SEED]

Per function, it prints the calls, how many of them the compiled code left to Python, and a CRC-32 of all results. Two builds
that print the same lines behave alike. Exit status 1: a result differs.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple

from cdxmill.capture import Capture, Outcome, Record
from cdxmill.formats.archives.framing import frame_within
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.formats.lines.cdx_lines import format_cdxj
from cdxmill.formats.tree.prefix_btree import DataBlocks
from cdxmill.stages import native
from cdxmill.stages.captures.capture_options import CaptureOptions
from cdxmill.stages.captures.index_archive import common_reader
from cdxmill.stages.captures.make_captures import make_captures
from cdxmill.stages.counting.count_records import Counted, count_records
from cdxmill.stages.counting.counters import COUNTERS
from cdxmill.stages.counting.tally import DictTally, clean_item
from cdxmill.stages.lines import cdx_text
from cdxmill.stages.pages.nesting import python_parsed_size
from cdxmill.stages.prefix_tree import search_tree
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.take_record import is_one_record, take_whole
from cdxmill.tasks import tree_items

_HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: nginx\r\n\r\n<p>a <B x=1>b</b><!-- <i> --><a href='>'>"
_REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: http://example.com/b\r\nContent-Type: text/html\r\nX: y\r\n\r\n"
_NOTES = b'fetchTimeMs: 17\r\ncharset-detected: UTF-8\r\nlanguages-cld2: {"languages":[{"code-iso-639-3":"eng"}]}\r\n\r\n'
_WAT = b'{"Envelope":{"Payload-Metadata":{"HTTP-Response-Metadata":{"Headers":{"Date":"x","Server":"nginx/1"}}}},"n":[1,-2.5e-7]}'
_DIGEST = b"WARC-Payload-Digest: sha1:YCTSX5TRBTYS76C5PKEW43YWT2AWUSSM\r\n"
_LINES = (
    b'com,a)/ 20200101000000 {"url": "http://a.com/\\u00e9", "status": "200", "length": "9", "offset": "80", "filename": "a.gz"}',
    b'com,a)/ - {"filename":"a.gz","offset":0,"length":17,"status":404,"more":1.5e3,"none":null,"url":"\xc3\xa9"} \r',
    b"com,a)/ 20200101000000 http://a.com/ text/html 200 SHA - - 12 7 a.arc.gz",
    b"com,b)/ 2020 http://b.com/ text/html - SHA - 7 a.arc.gz\r",
)
_PIECES = (
    b"", b"\r\n", b"\n", b"\r", b" ", b":", b"0", b"9" * 20, b"-", b'"', b"\\", b"\\u00e9", b"{", b"}", b"[", b"]", b",", b"\t",
    b"\xc3\xa9", b"\xe2\x80\x83", b"\xff", b"\0", b"<p", b"<script>", b"</script>", b"<!--", b"-->", b"?b=1&a=2", b"/", b"//", b"/.",
    b"#", b"%41", b"sid=1", b"WARC/1.1", b" folded\r\n", b"Server: z\r\n", b"WARC-Type: revisit\r\n", b"Content-Encoding: gzip\r\n",
    b"1e5", b"null", b"A", b"(\xb5/\xfd",
)  # fmt: skip
_FIELDS = b"WARC-Date: 2024-05-17T23:41:22Z\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: https://www.Example.com/a/?b=1&a=2\r\n"
_USUAL = CaptureOptions()


class Twin(NamedTuple):
    """Compiled code and Python that does the same. `left` is what the compiled code returns for what it leaves to Python."""

    draw: Callable[[Random], tuple[Any, ...]]
    compiled: Callable[..., Any] | None
    python: Callable[..., Any]
    left: object


def changed(random: Random, data: bytes, most: int = 3) -> bytes:
    """`data` with up to `most` pieces inserted in place of some bytes."""
    for _ in range(random.randrange(most + 1)):
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.choice(_PIECES) + data[at + random.randrange(4) :]
    return data


def record(random: Random) -> tuple[bytes]:
    """The content of a member with one record, which may be changed."""
    kind, media, block = random.choice(
        [
            (b"response", b"application/http; msgtype=response", _HTTP),
            (b"response", b"application/http; msgtype=response", _REDIRECT),
            (b"revisit", b"application/http; msgtype=response", _HTTP),
            (b"metadata", b"application/warc-fields", _NOTES),
            (b"metadata", b"application/json", _WAT),
            (b"conversion", b"text/plain", b"to be or not to be \xc3\xa9 \xe2\x80\x83x\n"),
            (b"request", b"application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"),
        ]
    )
    block = changed(random, block)
    more = random.choice((b"", _DIGEST)) + random.choice(
        (b"", b"WARC-Concurrent-To: <urn:x:2>\r\n", b"WARC-Truncated: length\r\n")
    )
    head = b"WARC/1.0\r\nWARC-Type: %b\r\n%b%bContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    whole = head % (kind, _FIELDS, more, media, len(block)) + block + b"\r\n\r\n"
    return (changed(random, whole, 2) if random.random() < 0.5 else whole,)


def counted_record(what: str, random: Random) -> tuple[str, bytes]:
    return what, *record(random)


def read_compiled(data: bytes) -> Any:
    read = common_reader(b"x", _USUAL)
    assert read is not None
    found = read(bytearray(data), 7, len(data))
    return list(found) if isinstance(found, tuple) else found


def read_python(data: bytes) -> Any:
    """What the general reader makes of content, in the form of the compiled one."""
    found = take_whole(7, len(data), data, None, _USUAL.lineless)
    if not isinstance(found, Record):
        return found
    if found.headers[b"warc-type"] == b"request":
        return Outcome.NO_LINE
    if found.headers[b"warc-type"] == b"metadata":
        shapes = HeaderShapes()
        shapes.parse(data)
        notes = take_whole(7, len(data), data, shapes, _USUAL.lineless)
        return list(notes) if isinstance(notes, tuple) else notes
    (capture,) = [one for one in make_captures(iter([found]), b"x", _USUAL) if isinstance(one, Capture)]
    line, place = format_cdxj(capture), b'", "filename": "x'
    end = line.index(place) + len(place)
    return [found.headers[b"warc-record-id"], line[:end], line[end:]]


def head_python(data: bytes) -> Any:
    assert is_one_record(data, HeaderShapes())
    headers, _ = HeaderShapes().parse(data)
    return headers[b"warc-type"], headers.get(b"warc-target-uri", b"")


def count_compiled(what: str, data: bytes) -> Any:
    assert native.Tally is not None and native.count is not None
    tally = native.Tally()
    found = native.count(tally, what, data)
    return None if found is None else tally.take(b"\n")


def count_python(what: str, data: bytes) -> Any:
    """The counts of a record by the general way. Nothing may have to be reported."""
    tally = DictTally()
    counted: Counted = count_records(
        lambda offset, size: data[offset : offset + size], COUNTERS[what], tally, lambda: None
    )
    assert not counted.findings.damage, counted
    return tally.take(b"\n")


def lines(random: Random) -> bytes:
    some = [changed(random, random.choice(_LINES), 1) for _ in range(random.randrange(1, 6))]
    return b"\n".join(sorted(some) if random.random() < 0.5 else some) + b"\n"


def odd_line_python(text: bytes, start: int, end: int, fields: int) -> Any:
    found = cdx_text._valid_lines(fields).match(text, start, end)
    offset = found.end() if found is not None else start
    return offset, text.count(b"\n", start, offset)


def in_order_python(text: bytes, start: int, end: int) -> int:
    some = text[start:end].split(b"\n")
    return len(some) if some == sorted(some) else -1


def items_compiled(some: list[bytes]) -> Any:
    keys: list[bytes] = []
    tails: list[bytes] = []
    assert native.capture_items is not None
    if native.capture_items(some, 0, tree_items.Archives(), keys, tails) < len(some):
        return None
    return keys, tails


def items_python(some: list[bytes]) -> Any:
    items = tree_items.CaptureItems(tree_items.Archives())
    keys, tails = items._items(tree_items._any_columns(some))
    return list(keys), list(tails)


def outline_python(data: bytes, size: int, apart: int) -> Any:
    try:
        return tuple(search_tree._outline_of(data, DataBlocks(size)))
    except ValueError:
        return None


def rows(random: Random) -> tuple[bytes, bytes]:
    sizes = bytes(random.choices((1, 2, 4, 8), k=random.randrange(1, 4)))
    some = [
        b"key%d\t" % random.randrange(9) + b" ".join(b"%d" % random.getrandbits(8 * size) for size in sizes)
        for _ in range(3)
    ]
    return changed(random, b"\n".join(some), 1), sizes


def rows_compiled(text: bytes, sizes: bytes) -> Any:
    keys: list[bytes] = []
    tails: list[bytes] = []
    assert native.pointer_rows is not None
    return (keys, tails) if native.pointer_rows(text, sizes, keys, tails) else None


def rows_python(text: bytes, sizes: bytes) -> Any:
    keys, tails = [], []
    for line in text.split(b"\n"):
        key, numbers = tree_items._row(line, len(sizes))
        keys.append(key)
        parts = [number.to_bytes(size, "little") for number, size in zip(numbers, sizes, strict=True)]
        tails.append(b"\0" + b"".join(parts))
    return keys, tails


def tally_of(make: Callable[[], Any]) -> Callable[..., Any]:
    def run(texts: Sequence[bytes], numbers: Sequence[int]) -> Any:
        one, other = make(), make()
        for text, number in zip(texts, numbers, strict=True):
            one.add(clean_item(text), number)
            other.add_words(text)
            other.add_tags(text)
        one.absorb(other)
        return len(one), len(other), one.take(b" end\n"), one.take(b"")

    return run


def sorted_texts(random: Random) -> tuple[list[list[bytes]], int]:
    """Sorted texts, each in pieces, and the number of lines of a block."""
    texts = []
    for _ in range(random.randrange(6)):
        some = sorted(random.randbytes(random.choice((0, 1, 2, 300))).replace(b"\n", b"") for _ in range(9))
        text, step = b"\n".join(some) + b"\n" * random.randrange(2), random.choice((1, 2, 5, 1000))
        texts.append([text[at : at + step] for at in range(0, len(text), step)])
    return texts, random.choice((1, 2, 100))


def merge_compiled(texts: list[list[bytes]], count: int) -> bytes:
    assert native.Merger is not None
    merger, block, whole = native.Merger([(iter(text), None, None) for text in texts]), bytearray(), b""
    while merger.fill(block, count):
        whole += block
    return whole


def merge_python(texts: list[list[bytes]], _: int) -> bytes:
    some = {line for text in texts for line in b"".join(text).split(b"\n")}
    return b"".join(line + b"\n" for line in sorted(some) if line and not line.startswith(b" CDX"))


def frame(random: Random) -> tuple[bytes, int, int]:
    """A zstd frame of raw and repeated blocks, which may be changed."""
    blocks = random.choices(((0, 5), (1, 3), (2, 4)), k=random.randrange(1, 4))
    data = b"\x28\xb5\x2f\xfd" + bytes((random.choice((0x20, 0x24, 0x60, 0x00)), 40, 1))
    for number, (kind, size) in enumerate(blocks):
        data += (size << 3 | kind << 1 | (number == len(blocks) - 1)).to_bytes(3, "little")
        data += bytes(1 if kind == 1 else size)
    return changed(random, data + bytes(9), 1), 0, 1 << 20


def counted_texts(random: Random) -> tuple[list[bytes], list[int]]:
    texts = [changed(random, _HTTP, 9) * random.randrange(20) for _ in range(3)]
    return texts, random.choices((0, 1, 1 << 40), k=3)


def page_and_names(random: Random) -> tuple[bytes, tuple[bytes, ...]]:
    html = changed(random, _HTTP, 9).replace(b"b", random.choice((b"BASE", b"area")))
    return html, (b"base", b"area")


def page_of_tags(random: Random) -> tuple[bytes]:
    """A page with nested tags, or with many attributes."""
    parts = (
        b"<div>",
        b"<b>",
        b"</b>",
        b"<p>",
        b"</div>",
        b"<td>",
        b"<table>",
        b"<svg>",
        b"</svg>",
        b"<path/>",
        b"<a %s>" % (b"x " * 500),
    )
    return (b"".join(random.choices(parts, k=random.randrange(1, 8))) * random.choice((30, 300, 3000)),)


def elements_python(html: bytes, names: tuple[bytes, ...]) -> list[bytes]:
    return [name for name in names if b"<" + name in html.lower()]


def ranged(random: Random) -> tuple[bytes, int, int]:
    text = lines(random)
    return text, 0, len(text)


def ranged_fields(random: Random) -> tuple[bytes, int, int, int]:
    return *ranged(random), random.choice((0, 9, 11))


def split_lines(random: Random) -> tuple[list[bytes]]:
    return (lines(random)[:-1].split(b"\n"),)


def data_block(random: Random) -> tuple[bytes, int, int]:
    parts = (b"a\0\1\2", b"b\0\0\0", b"ab", b"\0")
    return b"".join(random.choices(parts, (9, 9, 1, 1), k=40)), 2, 32


def make_twins() -> dict[str, Twin]:
    """The twins by the names of the compiled functions."""
    assert native.Tally is not None, "nothing was compiled"
    found = {
        "read": Twin(record, read_compiled, read_python, Outcome.NOT_COMMON),
        "head": Twin(record, native.head, head_python, None),
        "frame_within": Twin(frame, native.frame_within, frame_within, -1),
        "odd_line": Twin(ranged_fields, native.odd_line, odd_line_python, None),
        "lines_in_order": Twin(ranged, native.lines_in_order, in_order_python, None),
        "capture_items": Twin(split_lines, items_compiled, items_python, None),
        "outline_block": Twin(data_block, native.outline_block, outline_python, 0),
        "pointer_rows": Twin(rows, rows_compiled, rows_python, None),
        "elements_in": Twin(page_and_names, native.elements_in, elements_python, None),
        "parsed_size": Twin(page_of_tags, native.parsed_size, python_parsed_size, None),
        "Tally": Twin(counted_texts, tally_of(native.Tally), tally_of(DictTally), None),
        "Merger": Twin(sorted_texts, merge_compiled, merge_python, None),
    }
    for what in ("tags", "servers", "words"):
        found[f"count {what}"] = Twin(partial(counted_record, what), count_compiled, count_python, None)
    return found


def compare(name: str, twin: Twin, calls: int, seed: int) -> bool:
    """Call both many times, and print what came of it. Returns whether all results were the same."""
    assert twin.compiled is not None
    random, left, check = Random(f"{seed} {name}"), 0, 0
    for _ in range(calls):
        arguments = twin.draw(random)
        found = twin.compiled(*arguments)
        check = zlib.crc32(repr(found).encode(), check)
        if found is twin.left or found == twin.left:
            left += 1
            continue
        try:
            expected = twin.python(*arguments)
        except (RecordError, ValueError, KeyError, AssertionError) as error:
            expected = repr(error)
        if found != expected:
            print(f"{name}: {found!r:.2000} in C, {expected!r:.2000} in Python, for {arguments!r:.4000}")
            return False
    print(f"{name:15}{calls:8} calls {left:8} left to Python  {check:08x}")
    return True


def main() -> None:
    calls, seed = map(int, (*sys.argv[1:], *("3000", "1")[len(sys.argv) - 1 :]))
    same = [compare(name, twin, calls, seed) for name, twin in make_twins().items()]
    sys.exit(not all(same))


if __name__ == "__main__":
    main()
