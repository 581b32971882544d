"""A path index: the places of archives, by the file names in index lines. pywb reads the same format.

    file name TAB path or URL [TAB path or URL...]

Lines are sorted by their bytes, and each file name has one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ARCHIVES = "archives.tsv"
"""Name of the path index beside a cluster."""


def format_path_index(places: Iterable[tuple[str, str]]) -> tuple[bytes, list[str]]:
    r"""The content of a path index, and the places that it cannot have: no field can contain a tab or a line end.

    >>> format_path_index([("b", "/2/b"), ("a", "/1/a"), ("b", "/1/b"), ("b", "/2/b"), ("c", "/\n/c")])
    (b'a\t/1/a\nb\t/1/b\t/2/b\n', ['/\n/c'])
    """
    listed: dict[str, set[str]] = {}
    left = []
    for name, place in places:
        if name and place and not {"\t", "\n", "\r"}.intersection(name + place):
            listed.setdefault(name, set()).add(place)
        else:
            left.append(place)
    lines = ("\t".join((name, *sorted(found))) for name, found in listed.items())
    return b"".join(sorted(_encoded(f"{line}\n") for line in lines)), left


def parse_path_index(data: bytes) -> Iterator[tuple[str, list[str]]]:
    r"""The file names with their places; lines without a tab are skipped.

    >>> list(parse_path_index(b"a\t/1/a\t/2/a\nb\n"))
    [('a', ['/1/a', '/2/a'])]
    """
    for line in data.split(b"\n"):
        name, *places = line.rstrip(b"\r").split(b"\t")
        if places:
            yield _decoded(name), [_decoded(place) for place in places if place]


def find_places(data: bytes, filename: str) -> list[str]:
    r"""The places of one file name, in lines of any order. Empty if it is not listed.

    >>> find_places(b"b\t/b\r\na\t/1/a\t/2/a", "a"), find_places(b"", "a")
    (['/1/a', '/2/a'], [])
    """
    wanted = _encoded(filename) + b"\t"
    start = 0 if data.startswith(wanted) else data.find(b"\n" + wanted) + 1
    if not data.startswith(wanted, start):
        return []
    end = data.find(b"\n", start)
    return next(parse_path_index(data[start : end if end >= 0 else None]))[1]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
