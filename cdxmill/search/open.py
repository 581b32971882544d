"""What a user searches, opened: a cluster, or one CDX file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cdxmill.cluster.find import Rule, is_crawl, is_index_file
from cdxmill.cluster.reader import open_cluster
from cdxmill.errors import UsageError
from cdxmill.formats.lines.cdx_lines import CDX_NAME
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.search.query import OpenCluster
from cdxmill.storage.location import PathOrUrl, locate

STDIN = "-"
LAYOUT = ".layout"
"""The ending of the file beside a prefix B-tree with its layout, unless that is `capture`."""
ARCHIVES = ".archives.gz"
"""Ending of the side file of a prefix B-tree: the names of the archives, one per line, gzipped."""
_TREE = ".tree"


def is_cdx_file(path: str) -> bool:
    """Whether `path` is a CDX file and not a cluster: by the ending of a URL; for a path, if it is no directory.

    Raises InputError if the storage gives no answer.
    """
    if locate(path).is_remote:
        return CDX_NAME.search(path) is not None
    found = locate(path).status()
    if found is None:
        return CDX_NAME.search(path) is not None
    return not found.is_directory and not is_index_file(path)


def is_prefix_index(path: str) -> bool:
    """Whether a path or URL names a prefix B-tree of captures: its side file exists, or a URL ends in .tree."""
    return path.endswith(_TREE) if locate(path).is_remote else locate(f"{path}{ARCHIVES}").exists()


def is_one_cluster(text: str) -> bool:
    """Whether `text` is the path or URL of one cluster or CDX file: no name of a crawl, not several, not -."""
    return names_in(text) == [text] and not (is_named_crawl(text) or text == STDIN or is_prefix_index(text))


def names_in(text: str) -> list[str]:
    """The names of what is searched: `text` itself if it exists, else its parts between commas."""
    is_one = not locate(text).is_remote and locate(text).exists()
    return [text] if is_one else [name.strip() for name in text.split(",") if name.strip()]


def is_named_crawl(name: str) -> bool:
    """Whether it is the name of a crawl, and no path of that name exists."""
    return is_crawl(name) and not locate(name).exists()


@contextmanager
def open_searched(
    path: PathOrUrl, rule: Rule | None = None, keys: KeyRange | None = None
) -> Iterator[OpenCluster]:
    """Open the cluster or CDX file at a path or URL. If all questions are about the range `keys`, give it.

    Raises UsageError if there is no cluster, InputError if it cannot be read or is corrupt, also inside the `with`.
    """
    path = str(path)
    if not is_cdx_file(path):
        with open_cluster(path, rule) as reader:
            yield OpenCluster.of(reader)
        return
    if rule is not None:
        raise UsageError(f"{path}: --shard-index-loc needs a cluster, and this is a CDX file")
    from cdxmill.search.cdx_file import open_cdx_file  # most questions are about clusters

    with open_cdx_file(path, keys) as file:
        yield OpenCluster.of(file)
