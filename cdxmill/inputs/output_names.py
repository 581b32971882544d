"""The name of the index of an archive, below the output folder."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input, without_host

_OUTPUT_NAMES = (
    (re.compile(r"\.warc\.(wat|wet)\.gz$"), r".\1.cdx.gz"),
    (re.compile(r"(\.w?arc)?\.gz$"), ".cdx.gz"),
    (re.compile(r"$"), ".cdx.gz"),
)


def output_name(path: str) -> str:
    """The path, below the output folder, of the index of the archive at `path`.

    >>> output_name("/dir1/a.warc.gz"), output_name("s3://bucket/x/a.warc.wet.gz"), output_name("../a.warc")
    ('dir1/a.cdx.gz', 'x/a.wet.cdx.gz', 'a.warc.cdx.gz')
    """
    path = below(path)
    for pattern, ending in _OUTPUT_NAMES:
        if pattern.search(path):
            return pattern.sub(ending, path, count=1)
    raise AssertionError("the last pattern matches every path")


def below(path: str) -> str:
    """A path or URL as a path below some folder.

    >>> below("/dir1/a.warc.gz"), below("../x/./a.warc"), below("s3://bucket/a.warc")
    ('dir1/a.warc.gz', 'x/a.warc', 'a.warc')
    >>> below("https://example.com/a.warc.gz?token=x")
    'a.warc.gz'
    """
    path = posixpath.normpath("/" + without_host(path)).lstrip("/")
    while path.startswith("../"):
        path = path[3:]
    return path


def output_names(archives: Sequence[Input]) -> dict[Input, str]:
    """The name of the output of each archive. Raises UsageError if two have the same name."""
    names: dict[Input, str] = {}
    owners: dict[str, Input] = {}
    for archive in archives:
        name = output_name(archive.name or archive.path)
        if name in owners:
            raise _same_name(owners[name], archive, name, "use two output directories, or -o -")
        owners[name], names[archive] = archive, name
    return names


def whole_names(archives: Sequence[Input]) -> dict[Input, str]:
    """The names of outputs that keep the whole path, so that `a.arc.gz` and `a.warc.gz` of one folder differ.

    An archive that is named twice is taken once. Raises UsageError if two archives have the same name.
    """
    owners: dict[str, Input] = {}
    for archive in archives:
        name = f"{below(archive.path)}.cdx.gz"
        owner = owners.setdefault(name, archive)
        if owner.path != archive.path:
            raise _same_name(owner, archive, name, "build two clusters, or index them and use cdxmill zipnum")
    return {archive: name for name, archive in owners.items()}


def _same_name(one: Input, other: Input, name: str, hint: str) -> UsageError:
    return UsageError(f"{one.path} and {other.path} would get the same output name {name}; {hint}")
