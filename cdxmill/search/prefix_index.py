"""A prefix B-tree at a path or URL, opened for searches: query -> key ranges -> items -> lines.

from cdxmill.search.prefix_index import find_captures
for lines in find_captures("index.tree", ["*.example.com"]):    # lists of CDXJ lines with filename, offset, length
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from cdxmill.cluster.reader import open_known
from cdxmill.errors import CorruptError, UsageError
from cdxmill.formats.lines.lookup_query import EVERYTHING, KeyRange, key_range
from cdxmill.formats.tree.pointer_layout import (
    CLASSIC,
    Layout,
    Pointer,
    capture_line,
    classic_key,
    classic_key_of_url,
    classic_line,
)
from cdxmill.formats.tree.prefix_btree import Item
from cdxmill.formats.tree.tree_header import Header
from cdxmill.search.tree_names import NamesInTree
from cdxmill.stages.prefix_tree.search_tree import HEAD, DamagedTreeError, TreeReader, read_header
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.reading import open_mapped

KEYS = ("surt", "reversed", "plain")
"""Kinds of keys: `com,example)/a`, `com.example/a:http`, and any other."""
_KEYS_OF = {"capture": "surt", "classic": "reversed"}
_REBUILD = "build it again with cdxmill prefix-index build"


class OpenTree:
    """An open prefix B-tree. Made by `open_prefix_index`."""

    def __init__(self, place: Location, layout: str | None, files: ExitStack) -> None:
        self.path, self._hint, self.is_remote = str(place), _REBUILD, place.is_remote
        size: int | None = None
        if place.is_remote:
            read_at = files.enter_context(open_known(place))
        else:
            read_at, size = files.enter_context(open_mapped(place.local))
        with self.damage():
            head = read_at(0, HEAD)
            header = read_header(head, read_at)
            self.layout = self._layout_of(header, layout)
            self.tree = TreeReader(read_at, header, self.layout.size, size, head if place.is_remote else b"")
        self.names = NamesInTree(header, read_at, ahead=place.is_remote)
        if place.is_remote and header.fingerprint:
            self._use_cache(place, header)

    def _layout_of(self, header: Header, asked: str | None) -> Layout:
        """The layout in the header. A file of 2012 has none. Raises UsageError."""
        if not header.layout:
            found = parse_layout(asked or CLASSIC.text)
            self._hint += f"; if its pointers are others than {found.text}, name them with --layout"
            return found
        found = parse_layout(header.layout)
        if asked is not None and parse_layout(asked).text != found.text:
            raise UsageError(f"{self.path}: its layout is {found.text}; leave --layout out")
        return found

    def _use_cache(self, place: Location, header: Header) -> None:
        """Read the index and the names of archives through the cache."""
        from cdxmill.storage.cache import cached_part  # network code

        version, read_at, data = (
            header.fingerprint.hex(),
            self.tree.read_at,
            header.offset(header.index_blocks),
        )
        self.tree.read_index = cached_part(place, version, read_at, range(header.start, data))
        self.names.read_at = cached_part(place, version, read_at, self.names.place)

    def items(self, ranges: Iterable[KeyRange]) -> Iterator[list[Item]]:
        """The items in key ranges: keys and pointers, in non-empty lists. Raises InputError."""
        with self.damage():
            for low, high, _ in ranges:
                yield from self.tree.scan(low, high)

    def pointers(self, key: bytes) -> list[bytes]:
        """The pointers of one key, as it is stored. Raises InputError."""
        found = self.items([KeyRange(key, key + b"\0")])
        return [pointer for items in found for _, pointer in items]

    def captures(self, ranges: Iterable[KeyRange]) -> Iterator[list[bytes]]:
        """The items in key ranges as CDXJ lines, in lists. Raises UsageError if the layout has no captures."""
        make = self._line_maker()
        with self.damage():
            for low, high, _ in ranges:
                yield from map(make, self.tree.scan(low, high))

    def _line_maker(self) -> Callable[[list[Item]], list[bytes]]:
        unpack = self.layout.unpack
        if self.layout.name == "classic":
            return lambda items: [classic_line(key, unpack(pointer)) for key, pointer in items]
        if self.layout.name != "capture":
            hint = "use cdxmill prefix-index search"
            raise UsageError(f"{self.path}: the layout {self.layout.text!r} has no captures; {hint}")

        def make(items: list[Item]) -> list[bytes]:
            pointers = [Pointer(*unpack(pointer)) for _, pointer in items]
            names = self.names.of([pointer.archive for pointer in pointers])
            parts = zip(items, pointers, names, strict=True)
            return [capture_line(key, pointer, name) for (key, _), pointer, name in parts]

        return make

    def archive(self, number: int) -> str:
        """The name of an archive. Raises InputError."""
        with self.damage():
            return self.names.of([number])[0]

    @contextmanager
    def damage(self) -> Iterator[None]:
        """Turn DamagedTreeError into CorruptError."""
        try:
            yield
        except DamagedTreeError as error:
            raise CorruptError(f"{self.path}@{error.offset}", str(error), self._hint) from None


@contextmanager
def open_prefix_index(path: PathOrUrl, layout: str | None = None) -> Iterator[OpenTree]:
    """Open the prefix B-tree at a path or URL. `layout` is that of a file of 2012, by default `classic`.

    Raises UsageError if the layout is invalid or another one, InputError if the file is missing or corrupt.
    """
    with ExitStack() as files:
        yield OpenTree(locate(path), layout, files)


def parse_layout(text: str) -> Layout:
    """The layout of pointers. Raises UsageError."""
    try:
        return Layout(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def key_ranges(
    query: str, layout: Layout, match_type: str | None = None, keys: str | None = None
) -> list[KeyRange]:
    """The ranges of keys that contain the answer to a query, in order. Raises UsageError.

    `keys` is the kind of the keys, by default that of the layout. For `surt`, queries are those of `lookup`. For `reversed`, hosts,
    domains and URLs with a scheme are written as usual, anything else as the keys are. For `plain`, only exact and prefix are possible.
    """
    kind = keys or _KEYS_OF.get(layout.name or "", "plain")
    if kind not in KEYS:
        raise UsageError(f"invalid kind of keys {kind!r}: expected one of {', '.join(KEYS)}")
    try:
        if kind == "surt":
            low, high, is_one = key_range(query, match_type)
            return [KeyRange(low, low + b"\0" if is_one else high, is_one)]
        return _ranges(query, match_type, kind)
    except ValueError as error:
        raise UsageError(f"{query[:200]}: cannot be searched ({error})") from None


def _ranges(query: str, match_type: str | None, kind: str) -> list[KeyRange]:
    if match_type is None:
        is_domain = kind == "reversed" and query.startswith("*.")
        match_type = "domain" if is_domain else "prefix" if query.endswith("*") else "exact"
        query = query[2:] if is_domain else query.removesuffix("*") if match_type == "prefix" else query
    key = query.encode("utf-8", "surrogateescape")
    if kind == "reversed" and "://" in query:
        key = classic_key_of_url(query, with_scheme=match_type == "exact")
    if match_type == "exact":
        return [KeyRange(key, key + b"\0", True)]
    if match_type == "prefix":
        return [prefix_range(key)]
    if kind == "plain" or match_type not in ("host", "domain"):
        raise ValueError(f"the match type {match_type} needs other keys; use exact or prefix")
    host = classic_key(query)
    return [
        prefix_range(host + end) for end in ((b".", b"/", b":") if match_type == "domain" else (b"/", b":"))
    ]


def key_ranges_of_url(url: str, layout: Layout, match_type: str | None = None) -> list[KeyRange]:
    """As `key_ranges`, for a query of `lookup`: http and https are the same, and a URL needs no scheme. Raises UsageError."""
    if layout.name != "classic" or (url == EVERYTHING and match_type is None):
        return key_ranges(url, layout, match_type)
    if match_type is None:
        match_type = "domain" if url.startswith("*.") else "prefix" if url.endswith("*") else "exact"
        url = url.removeprefix("*.") if match_type == "domain" else url.removesuffix("*")
    host, slash, path = url.partition("://")[2 if "://" in url else 0].partition("/")
    if not host:
        raise UsageError(f"{url[:200]}: cannot be searched in an index with the layout classic")
    if match_type not in ("exact", "prefix"):
        return key_ranges(host, layout, match_type)
    if match_type == "prefix":
        return key_ranges(f"http://{host}/{path}", layout, match_type)
    ends = [f"/{path}"] if slash else ["/", ""]
    urls = [f"{scheme}://{host}{end}" for end in ends for scheme in ("http", "https")]
    return [found for one in urls for found in key_ranges(one, layout, match_type)]


def prefix_range(prefix: bytes) -> KeyRange:
    """All keys that start with `prefix`.

    >>> prefix_range(b"com,a"), prefix_range(b"a\\xff")[:2]
    (KeyRange(low=b'com,a', high=b'com,b', is_one_url=False), (b'a\\xff', b'b'))
    """
    start = prefix.rstrip(b"\xff")
    high = start[:-1] + bytes((start[-1] + 1,)) if start else b"\xff" * (1 << 16)
    return KeyRange(prefix, high)


def resumed(ranges: Sequence[KeyRange], key: bytes) -> list[KeyRange]:
    """The parts of ranges that start at `key`.

    >>> resumed([KeyRange(b"a", b"c"), KeyRange(b"d", b"f")], b"e")
    [KeyRange(low=b'e', high=b'f', is_one_url=False)]
    """
    later = (KeyRange(max(low, key), high) for low, high, _ in ranges)
    return [found for found in later if found.low < found.high]
