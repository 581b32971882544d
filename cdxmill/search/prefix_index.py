"""A prefix B-tree at a path or URL, opened for searches: query -> key ranges -> items -> lines.

from cdxmill.search.prefix_index import find_captures
for lines in find_captures("index.tree", ["*.example.com"]):    # lists of CDXJ lines with filename, offset, length
    ...
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property

from cdxmill.cluster.reader import open_known
from cdxmill.errors import AbsentError, CorruptError, InputError, RefusedError, UsageError
from cdxmill.formats.lines.lookup_query import EVERYTHING, KeyRange, key_range
from cdxmill.formats.tree.pointer_layout import (
    CAPTURE,
    MOST_NAMES,
    Layout,
    Pointer,
    capture_line,
    classic_key,
    classic_key_of_url,
    classic_line,
    is_intact,
    name_check,
)
from cdxmill.formats.tree.prefix_btree import Item
from cdxmill.search.lookup import ARCHIVES, LAYOUT
from cdxmill.stages.lines.cdx_text import read_content
from cdxmill.stages.prefix_tree.search_tree import DamagedTreeError, TreeReader
from cdxmill.stages.window import CHUNK, MemberError, Window
from cdxmill.storage.location import Location, PathOrUrl, locate
from cdxmill.storage.reading import open_mapped

KEYS = ("surt", "reversed", "plain")
"""Kinds of keys: `com,example)/a`, `com.example/a:http`, and any other."""
_KEYS_OF = {"capture": "surt", "classic": "reversed"}
_GROUP = re.compile(rb"(?:[^\n]*+\n){128}")
_MOST_LAYOUT = 1 << 10
"""Bytes of a layout."""
_REBUILD = "build it again with cdxmill prefix-index build"


class OpenTree:
    """An open prefix B-tree. Made by `open_prefix_index`."""

    def __init__(self, place: Location, layout: Layout, files: ExitStack) -> None:
        self.path, self.layout = str(place), layout
        self._place, self._side = place, side_file(place, ARCHIVES)
        self._named: dict[int, tuple[str, int]] = {}
        """The names of archives, each with its check."""
        if place.is_remote:
            read_at, size = files.enter_context(open_known(place)), None
        else:
            read_at, size = files.enter_context(open_mapped(place.local))
        check = self._check_neighbor if layout.name == "capture" else None
        with self._damage():
            self.tree = TreeReader(read_at, layout.size, size, check)

    def items(self, ranges: Iterable[KeyRange]) -> Iterator[list[Item]]:
        """The items in key ranges: keys and pointers, in non-empty lists. Captures are checked. Raises InputError."""
        is_capture = self.layout.name == "capture"
        for low, high, _ in ranges:
            with self._damage():
                for items in self.tree.scan(low, high):
                    if is_capture:
                        for item in items:
                            self._check_item(item)
                    yield items

    def pointers(self, key: bytes) -> list[bytes]:
        """The pointers of one key, as it is stored. Captures are checked. Raises InputError."""
        found = self.items([KeyRange(key, key + b"\0", True)])
        return [pointer for items in found for _, pointer in items]

    def captures(self, ranges: Iterable[KeyRange]) -> Iterator[list[bytes]]:
        """The items in key ranges as CDXJ lines, in lists. Raises UsageError if the layout has no captures."""
        make = self._line_maker()
        for items in self.items(ranges):
            yield [make(item) for item in items]

    def _line_maker(self) -> Callable[[Item], bytes]:
        unpack = self.layout.unpack
        if self.layout.name == "classic":
            return lambda item: classic_line(item[0], unpack(item[1]))
        if self.layout.name != "capture":
            hint = "use cdxmill prefix-index search"
            raise UsageError(f"{self.path}: the layout {self.layout.text!r} has no captures; {hint}")

        def make(item: Item) -> bytes:
            pointer = Pointer(*unpack(item[1]))
            return capture_line(item[0], pointer, self.archive(pointer.archive))

        return make

    def archive(self, number: int) -> str:
        """The name of an archive. Raises InputError."""
        return self._archive(number)[0]

    def _archive(self, number: int) -> tuple[str, int]:
        """The name of an archive, and its check."""
        known = self._named.get(number)
        if known is None:
            if number >= len(self._names):
                raise CorruptError(
                    self.path,
                    f"archive {number} is not in {self._side}, which has {len(self._names)}",
                    _REBUILD,
                )
            name = self._names.get(number).decode("utf-8", "surrogateescape")
            known = self._named[number] = name, name_check(name)
        return known

    @cached_property
    def _names(self) -> _Names:
        """The names in the side file. Raises InputError if it is missing or corrupt."""
        data = bytearray()
        try:
            with open_known(self._side) as read_at:
                for piece in read_content(Window(read_at, CHUNK)):
                    data += piece
                    if len(data) > MOST_NAMES:
                        reason = f"has more than {MOST_NAMES >> 20} MiB of names"
                        raise CorruptError(str(self._side), reason, _REBUILD)
        except AbsentError:
            raise _without_side_file(self._place) from None
        except RefusedError as error:
            raise _with_refused_side_file(self._place, error) from None
        except MemberError as error:
            raise CorruptError(str(self._side), str(error), _REBUILD) from None
        return _Names(data)

    def _check_neighbor(self, item: Item) -> None:
        """Check an item beside a range: if its key was changed, the range may miss it."""
        if not self._place.is_remote or "_names" in self.__dict__:  # an empty answer needs no further request
            self._check_item(item)

    def _check_item(self, item: Item) -> None:
        key, pointer = item
        _, check = self._archive(int.from_bytes(pointer[:4], "little"))
        if not is_intact(key, pointer, check):
            reason = f"the item of {key[:80]!r} is corrupt, or {self._side} belongs to another file"
            raise CorruptError(self.path, reason, _REBUILD)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except DamagedTreeError as error:
            hint = f"{_REBUILD}; if its pointers are others than {self.layout.text}, name them with --layout"
            if (
                self._place.is_remote
                and self.layout.name == "capture"
                and (refused := _refused_layout(self._place))
            ):
                hint += f" ({refused})"
            raise CorruptError(f"{self.path}@{error.offset}", str(error), hint) from None


class _Names:
    """The lines of a text, which stays whole: a list of the lines of a corrupt text could fill the memory."""

    def __init__(self, text: bytearray) -> None:
        self._text, self._count = text, text.count(b"\n")
        self._groups = array("Q", [0])
        self._groups.extend(found.end() for found in _GROUP.finditer(text))

    def __len__(self) -> int:
        return self._count

    def get(self, number: int) -> bytes:
        """A line. Requires: it exists."""
        group, place = divmod(number, 128)
        stop = self._groups[group + 1] if group + 1 < len(self._groups) else len(self._text)
        return bytes(self._text[self._groups[group] : stop].split(b"\n")[place])


@contextmanager
def open_prefix_index(path: PathOrUrl, layout: str | None = None) -> Iterator[OpenTree]:
    """Open the prefix B-tree at a path or URL. Unless it is named, the layout of its pointers is `stored_layout`.

    Raises UsageError for an invalid layout, InputError if the file or its side file is missing or corrupt.
    """
    place = locate(path)
    fields = parse_layout(stored_layout(place) if layout is None else layout)
    has_names = place.is_remote or not place.exists() or side_file(place, ARCHIVES).exists()
    if fields.name == "capture" and not has_names:
        raise _without_side_file(place)
    with ExitStack() as files:
        yield OpenTree(place, fields, files)


def side_file(place: Location, ending: str) -> Location:
    """The file beside a prefix B-tree with this ending."""
    return locate(f"{place}{ending}")


def stored_layout(path: PathOrUrl) -> str:
    """The layout in the file beside a prefix B-tree; `capture` if there is none. A remote file costs one request.

    A remote file that is refused is taken as missing: S3 without the right to list answers so for both.
    Raises InputError if the server gives no answer.
    """
    place = locate(path)
    try:
        return _read_layout(place)
    except AbsentError:
        return CAPTURE.text
    except RefusedError:
        if not place.is_remote:
            raise
        return CAPTURE.text


def _read_layout(place: Location) -> str:
    with open_known(side_file(place, LAYOUT)) as read_at:
        return read_at(0, _MOST_LAYOUT).decode("utf-8", "replace").strip()


def _refused_layout(place: Location) -> str:
    """What to say if the layout was refused; "" if it was not."""
    try:
        _read_layout(place)
    except RefusedError as error:
        return f"{error.path} {error.reason}, so it was taken as missing"
    except InputError:
        pass
    return ""


def _without_side_file(place: Location) -> InputError:
    reason = f"{place}{ARCHIVES}, which has the names of its archives, is missing"
    hint = f"copy it, too; of an index of 2012, the file {place}{LAYOUT} must have the word classic"
    return AbsentError(str(place), reason, hint)


def _with_refused_side_file(place: Location, error: RefusedError) -> InputError:
    reason = f"{place}{ARCHIVES}, which has the names of its archives, {error.reason}"
    hint = error.hint
    if place.is_remote:
        hint = "check the access rights and that it exists: S3 without the right to list answers so for a missing file, too"
    return RefusedError(str(place), reason, hint)


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
    if kind == "reversed" and "://" in query and match_type in ("exact", "prefix"):
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
    if not host or match_type == "range":
        raise UsageError(f"{url[:200]}: cannot be searched in an index with the layout classic")
    if match_type in ("host", "domain"):
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


def find_captures(
    path: PathOrUrl, queries: Iterable[str], *, layout: str | None = None, match_type: str | None = None
) -> Iterator[list[bytes]]:
    """The captures of queries in the prefix B-tree at a path or URL: CDXJ lines with filename, offset and length, in lists.

    The order is that of the queries, and by key within each. Queries are as in `lookup`: a URL, URL* or *.HOST.
    Raises UsageError, InputError.
    """
    with open_prefix_index(path, layout) as index:
        for query in queries:
            yield from index.captures(key_ranges(query, index.layout, match_type))
