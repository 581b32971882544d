"""What the lines of an index add up to: totals, groups such as all captures of a host, and samples of digests and URLs.

Compiled code takes usual lines. It leaves a line that has anything unusual to Python, which reads all of its JSON. `DictSums` does
all of it in Python, and is compared with the compiled type by the tests.

Groups count the captures, URLs and bytes of one name: h host (reversed, as in a key), d top-level domain, m MIME type, s status, l language, a archive,
y year, t month, x month and MIME type. The URLs of a group are exact if the lines are sorted.
"""

from __future__ import annotations

import copyreg
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cdxmill.formats.lines.capture_fields import REVISIT, stored_fields, text_to_bytes
from cdxmill.stages import native
from cdxmill.stages.lines.line_lists import is_capture_line

if TYPE_CHECKING:
    from cdxmill.stages import _native

LONGEST_NAME = 200
"""Bytes of the longest name of a group. Longer ones are cut, and counted by what is left."""
NONE = b"-"
"""The name of a value that is missing."""
_FIELDS = ("mime", "status", "digest", "length", "filename", "languages")
_MOST_DIGITS = 18
MOST_SAMPLED = 1 << 19
"""Values of a sample, as compiled code has them: see native/sample.c."""
_HASH_BITS = 64

Group: TypeAlias = tuple[bytes, int, int, int]
"""The name, the captures, the URLs, the bytes."""
Large: TypeAlias = tuple[int, bytes]
"""The length of a record, and its line."""
CaptureSums: TypeAlias = "DictSums | _native.CaptureSums"


class PackedSamples(NamedTuple):
    """The samples of sums, for `absorb`."""

    digests: bytes
    urls: bytes


class Totals(NamedTuple):
    """What all lines add up to. `first` and `last` are timestamps of 14 digits, b"" if no line has one.

    `undated` lines have no month, `unsized` lines no length. `key` is that of the last line.
    """

    captures: int = 0
    urls: int = 0
    size: int = 0
    undated: int = 0
    unsized: int = 0
    revisits: int = 0
    revisit_bytes: int = 0
    is_sorted: int = 1
    first: bytes = b""
    last: bytes = b""
    key: bytes = b""


def new_sums(with_urls: bool) -> CaptureSums:
    """Empty sums. Only `with_urls` have they a sample of URLs: sorted lines need none."""
    return DictSums(with_urls) if native.CaptureSums is None else native.CaptureSums(with_urls)


def pack_samples(sums: CaptureSums) -> PackedSamples:
    """The samples of sums. Pickled sums are read as this: what another process has to know of them."""
    return PackedSamples(sums.pack("digests"), sums.pack("urls"))


def absorb_samples(sums: CaptureSums, samples: PackedSamples) -> None:
    """Add the samples of other sums."""
    sums.absorb("digests", samples.digests)
    sums.absorb("urls", samples.urls)


def take_text(sums: CaptureSums, text: bytes | bytearray, floor: int, large: list[Large]) -> list[bytes]:
    """Add all lines of a text, and return those that cannot be read. Lines of more than `floor` bytes are added to `large`."""
    invalid: list[bytes] = []
    start = 0
    while (start := sums.take(text, start, floor, large)) < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        line = bytes(text[start:end])
        if is_capture_line(line) and not _add_line(sums, line, floor, large):
            invalid.append(line)
        start = min(end + 1, len(text))
    return invalid


def _add_line(sums: CaptureSums, line: bytes, floor: int, large: list[Large]) -> bool:
    """Add a line with all that Python knows of JSON; whether it could be read."""
    try:
        key, timestamp, fields = read_line(line)
    except (ValueError, RecursionError):
        return False
    sums.add(key, timestamp, fields)
    if _size_of(fields[3]) > floor:
        large.append((_size_of(fields[3]), line))
    return True


def read_line(line: bytes) -> tuple[bytes, bytes, tuple[bytes, ...]]:
    """The key, the timestamp, and the values of a report. Raises ValueError if the line is neither CDX nor CDXJ."""
    found = stored_fields(line)
    key, timestamp, _ = line.split(b" ", 2)
    if not key:
        raise ValueError("the line has no key")
    values = [found.get(name) for name in _FIELDS]
    return key, timestamp, tuple(b"" if value is None else text_to_bytes(str(value)) for value in values)


def _size_of(length: bytes) -> int:
    """The number in a field, -1 if it is none."""
    return int(length) if length.isdigit() and len(length) <= _MOST_DIGITS else -1


def host_of(key: bytes) -> bytes:
    """The host in a key, reversed as it is there; b"" if the key has none.

    >>> host_of(b"com,example:8080)/x"), host_of(b"com,example,)/"), host_of(b"urn:x)"), host_of(b"dns:example.com")
    (b'com,example', b'com,example', b'', b'')
    """
    before, closed, _ = key.partition(b")")
    host, colon, port = before.partition(b":")
    if not closed or b"/" in before or (colon and port and not port.isdigit()):
        return b""
    return host.rstrip(b",")


def tld_of(host: bytes) -> bytes:
    """The top-level domain of a host, which is reversed. NONE for an IP address, and for one label.

    >>> tld_of(b"com,example,www"), tld_of(b"9.8.7.6"), tld_of(b"localhost")
    (b'com', b'-', b'-')
    """
    first, _, rest = host.partition(b",")
    return NONE if not rest or first.isdigit() else first


def name_text(name: bytes, most: int = LONGEST_NAME) -> str:
    r"""A name as text: bytes that are not UTF-8 are written as \\xNN.

    >>> name_text(b"a\xff")
    'a\\xff'
    """
    return name[:most].decode("utf-8", "backslashreplace")


class DictSample:
    """A sample of values, without compiled code: all of them, or `most` of those with the lowest hashes."""

    def __init__(self, most: int = MOST_SAMPLED) -> None:
        self._most, self._level = most, 0
        self._values: dict[int, tuple[int, int, int]] = {}
        """The count, the sum of the sizes and the largest size, by hash."""

    def add(self, value: bytes, size: int) -> None:
        """Count a value."""
        self._merge(int.from_bytes(blake2b(value, digest_size=8).digest()), 1, size, size)

    def _merge(self, name: int, count: int, total: int, largest: int) -> None:
        if name >> (_HASH_BITS - self._level):
            return
        own = self._values.get(name, (0, 0, 0))
        self._values[name] = own[0] + count, own[1] + total, max(own[2], largest)
        if len(self._values) >= self._most:
            self._rise(self._level + 1)

    def _rise(self, level: int) -> None:
        """Keep only the values of a level: half of those of the level before."""
        self._level, bound = level, 1 << (_HASH_BITS - level)
        self._values = {name: one for name, one in self._values.items() if name < bound}

    def pack(self) -> bytes:
        """The sample for `absorb`."""
        rows = (
            name.to_bytes(8) + b"".join(number.to_bytes(8) for number in one)
            for name, one in self._values.items()
        )
        return self._level.to_bytes(8) + b"".join(rows)

    def absorb(self, packed: bytes) -> None:
        """Add another sample."""
        level = int.from_bytes(packed[:8])
        if level > self._level:
            self._rise(level)
        for start in range(8, len(packed), 32):
            self._merge(*(int.from_bytes(packed[at : at + 8]) for at in range(start, start + 32, 8)))

    def sampled(self) -> tuple[int, int, int, int]:
        """The level (of 2**level values, one is in the sample), the values, and how often and with what bytes they came again."""
        found = self._values.values()
        repeated = sum(count - 1 for count, _, _ in found)
        return self._level, len(found), repeated, sum(total - largest for _, total, largest in found)


class DictSums:
    """The sums without compiled code."""

    def __init__(self, with_urls: bool, /) -> None:
        self._groups: dict[bytes, list[int]] = {}
        self._samples = {"digests": DictSample(), "urls": DictSample()}
        self._with_urls = with_urls
        self._totals = Totals()

    def __len__(self) -> int:
        return len(self._groups)

    def take(self, text: bytes | bytearray, start: int, floor: int, large: list[Large], /) -> int:
        """Where the first line starts that was not added: all are left to `add`."""
        return start

    def add(self, key: bytes, timestamp: bytes, fields: tuple[bytes, ...], /) -> None:
        """Add the values of `read_line`."""
        mime, status, digest, length, filename, languages = fields
        mime, size = mime or NONE, _size_of(length)
        self._count(key, max(size, 0), is_sized=size >= 0)
        month = timestamp[4:6] if len(timestamp) > 5 and timestamp.isdigit() else b""
        is_dated = b"01" <= month <= b"12"
        self._date(timestamp, is_dated)
        groups = {
            b"h": host_of(key),
            b"d": tld_of(host_of(key)),
            b"m": mime,
            b"s": status,
            b"l": languages.partition(b",")[0],
            b"a": filename,
        }
        groups |= {b"t": timestamp[:6] if is_dated else NONE, b"y": timestamp[:4] if is_dated else NONE}
        if is_dated:
            groups[b"x"] = timestamp[:6] + mime[:LONGEST_NAME]
        for kind, name in groups.items():
            self._group(kind + (name or NONE)[:LONGEST_NAME], max(size, 0))
        if mime == REVISIT.encode():
            totals = self._totals
            self._totals = totals._replace(
                revisits=totals.revisits + 1, revisit_bytes=totals.revisit_bytes + max(size, 0)
            )
        elif digest not in (b"", NONE):
            self._samples["digests"].add(digest, max(size, 0))
        if self._with_urls:
            self._samples["urls"].add(key, max(size, 0))

    def _count(self, key: bytes, size: int, *, is_sized: bool) -> None:
        totals = self._totals
        is_new = not totals.captures or key != totals.key
        self._totals = totals._replace(
            captures=totals.captures + 1,
            urls=totals.urls + is_new,
            size=totals.size + size,
            unsized=totals.unsized + (not is_sized),
            is_sorted=int(bool(totals.is_sorted) and (not totals.captures or totals.key <= key)),
            key=key,
        )

    def _date(self, timestamp: bytes, is_dated: bool) -> None:
        totals = self._totals
        if not is_dated:
            self._totals = totals._replace(undated=totals.undated + 1)
        elif len(timestamp) == 14:
            first = min(totals.first or timestamp, timestamp)
            self._totals = totals._replace(first=first, last=max(totals.last, timestamp))

    def _group(self, name: bytes, size: int) -> None:
        group = self._groups.setdefault(name, [0, 0, 0, 0])
        group[0] += 1
        group[1] += group[3] != self._totals.urls
        group[2] += size
        group[3] = self._totals.urls

    def groups(self) -> dict[bytes, list[Group]]:
        """All groups by kind. They are empty then. Those of the last URL stay known, so that it is not counted twice."""
        found: dict[bytes, list[Group]] = {}
        for name, (captures, count, size, _) in self._groups.items():
            if captures:
                found.setdefault(name[:1], []).append((name[1:], captures, count, size))
        urls = self._totals.urls
        self._groups = {name: [0, 0, 0, urls] for name, group in self._groups.items() if group[3] == urls}
        return found

    def totals(self) -> Totals:
        """Return the totals."""
        return self._totals

    def pack(self, which: str, /) -> bytes:
        """Return a sample for `absorb`."""
        return self._samples[which].pack()

    def absorb(self, which: str, packed: bytes, /) -> None:
        """Add the sample of other sums."""
        self._samples[which].absorb(packed)

    def sampled(self, which: str, /) -> tuple[int, int, int, int]:
        """Return the numbers of a sample, as `DictSample` has them."""
        return self._samples[which].sampled()


def _reduced(sums: Any) -> tuple[type[PackedSamples], PackedSamples]:
    return PackedSamples, pack_samples(sums)


for _kind in (DictSums, native.CaptureSums):
    if _kind is not None:
        copyreg.pickle(_kind, _reduced)
