"""The names of the outputs of archives, which are never those of inputs; and one text for all spellings of an archive."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TypeVar

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.own_records import CONTROLS, TABLE
from cdxmill.inputs.named import Input, without_host
from cdxmill.inputs.pipes import NO_NAME
from cdxmill.regex import regex
from cdxmill.storage.location import Location, PathOrUrl, locate

Key = TypeVar("Key")

_OUTPUT_NAMES = (
    (regex(r"\.warc\.(wat|wet)\.gz$"), r".\1.cdx.gz"),
    (regex(r"(\.w?arc)?\.gz$"), ".cdx.gz"),
    (regex(r"$"), ".cdx.gz"),
)
_COMPRESSED = regex(r"\.(gz|zst)$", re.I)
_ONE_FILE = regex(r"[^/]\.cdxj?(\.gz)?$", re.I)
_CC_CRAWL, _CC_INDEX = "crawl-data/", "cc-index/cdx/"
"""Where Common Crawl keeps the archives of a crawl, and their indexes."""
_APART = "use --dir-root DIR, or a --manifest with their paths below --root"
_READABLE = 150
"""Bytes of an archive's base name that are kept in a name of `unique_names`, and in one that is too long."""
_LONGEST, _LONGEST_PATH = 230, 1000
"""Bytes of the longest name of an output, and of its path. A file name has at most 255, also that of its list of failures."""
_CONTROL = regex(CONTROLS)
_SKIPPED, _SEEN = regex(r"(?<![^/])(?=[._])"), "file"
"""Where a name starts with a character for which Spark, pandas and PyArrow skip it, and what is put there."""
_ENDINGS = regex(r"(\.[a-z0-9]{1,7}){1,3}\Z", re.I)


def output_name(path: str) -> str:
    """The path, below the output directory, of the index of the archive at `path`.

    >>> output_name("/dir1/a.warc.gz"), output_name("s3://bucket/x/a.warc.wet.gz"), output_name("../a.warc")
    ('dir1/a.cdx.gz', 'x/a.wet.cdx.gz', 'a.warc.cdx.gz')
    """
    path = below(path)
    for pattern, ending in _OUTPUT_NAMES:
        if pattern.search(path):
            return pattern.sub(ending, path, count=1)
    raise AssertionError("the last pattern matches every path")


def is_one_file(output: str) -> bool:
    """Whether the output of `index` is one CDX file. A directory may have such a name, too. Raises InputError."""
    if not _ONE_FILE.search(output):
        return False
    place = locate(output)
    found = None if place.is_remote else place.status()
    return found is None or not found.is_directory


def below(path: str) -> str:
    """A path or URL as a path below some directory.

    >>> below("/dir1/a.warc.gz"), below("../x/./a.warc"), below("s3://bucket/a.warc")
    ('dir1/a.warc.gz', 'x/a.warc', 'a.warc')
    >>> below("https://example.com/a.warc.gz?token=x")
    'a.warc.gz'
    """
    return posixpath.normpath("/" + without_host(path)).lstrip("/")  # no .. is left at the start


def recompressed_name(path: str, to: str) -> str:
    """The path, below the output directory, of the archive at `path` when it is compressed as `to`: gz or zst.

    >>> recompressed_name("/dir1/a.warc.gz", "zst"), recompressed_name("a.arc.zst", "gz"), recompressed_name("a.warc", "gz")
    ('dir1/a.warc.zst', 'a.arc.gz', 'a.warc.gz')
    """
    return f"{_COMPRESSED.sub('', below(path))}.{to}"


def output_names(
    archives: Sequence[Input], name_of: Callable[[str], str] = output_name, ending: str = ".cdx.gz"
) -> dict[Input, str]:
    """The name of the output of each archive. Raises UsageError if two have the same name.

    An archive that the user named has its base name, one of a directory its path below the directory, and one of a manifest
    its path as it is listed. Where two outputs would have one name, as those of x.warc and x.warc.gz, the archives keep
    their whole name before the `ending`. If that gives one name twice, too, the archives that no manifest lists have
    their paths below the directory that contains all of them. Names are safe, whatever a WACZ chose (see `_safe`), and
    readers find all parts of a table (see `_seen`).
    """
    if any(archive.name == NO_NAME for archive in archives):
        raise UsageError("an archive from a pipe has no name for its output; use -o NAME.cdxj.gz, or -o -")

    def named(paths: Mapping[Input, str]) -> dict[Input, str]:
        names = {one: name_of(path) for one, path in paths.items()}
        whole = apart(names, lambda one: f"{below(paths[one])}{ending}")
        seen = _seen if ending == TABLE else str
        return {one: _safe(seen(name)) for one, name in whole.items()}

    paths = {archive: archive.name or archive.path for archive in archives}
    names = named(paths)
    identities = {identity(archive.location) for archive in archives}
    if len(identities) < len(archives) or len(set(names.values())) < len(archives):
        names = named(paths | _longer_paths([archive for archive in names if not archive.is_listed]))
    owners: dict[str, Input] = {}
    for archive in archives:
        owner = owners.setdefault(names[archive], archive)
        if owner is not archive:
            raise UsageError(
                f"{owner.path} and {archive.path} would get the same output name {names[archive]};"
                f" use two output directories{', or one output file (-o NAME.cdxj.gz)' if name_of is output_name else ''}"
            )
    return names


def _seen(path: str) -> str:
    """The path of a part of a table. No name in it starts with `_` or `.`.

    >>> _seen("_x/.a.warc.parquet"), _seen("x/a_.parquet")
    ('file_x/file.a.warc.parquet', 'x/a_.parquet')
    """
    return _SKIPPED.sub(_SEEN, path)


def _safe(path: str) -> str:
    """The path of an output. A name in it that is too long, or has control characters, gets its first 150 bytes and a hash.

    So does the whole path if it is too long.

    >>> _safe("x/a.cdx.gz"), _safe("x/" + 300 * "a" + ".cdx.gz")[-26:], _safe("\x1b[2J/a")
    ('x/a.cdx.gz', 'aa-08ef1bfbd8e35d8c.cdx.gz', '_[2J-05704e8a84c06017/a')
    """
    safe = "/".join(map(_safe_name, path.split("/")))
    return safe if len(os.fsencode(safe)) <= _LONGEST_PATH else _hashed(posixpath.basename(path), path)


def _safe_name(name: str) -> str:
    is_safe = len(os.fsencode(name)) <= _LONGEST and not _CONTROL.search(name)
    return name if is_safe else _hashed(name, name)


def _hashed(name: str, whole: str) -> str:
    endings = _ENDINGS.search(name)
    ending = endings[0] if endings else ""
    return f"{_readable(name.removesuffix(ending))}-{_hash(whole)}{ending}"


def _readable(name: str) -> str:
    """The start of a name, without control characters."""
    return _CONTROL.sub("_", os.fsencode(name)[:_READABLE].decode("utf-8", "ignore"))


def _hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def apart(names: Mapping[Key, str], whole: Callable[[Key], str]) -> dict[Key, str]:
    """The names, but `whole` in place of each that stands twice."""
    times = Counter(names.values())
    return {key: name if times[name] == 1 else whole(key) for key, name in names.items()}


def check_index_names(archives: Iterable[Input], advice: str = _APART) -> None:
    """Raise UsageError, with `advice`, if two archives would have one file name in index lines.

    A reader would take one for the other.
    """
    owners: dict[str, Input] = {}
    for archive in archives:
        owner = owners.setdefault(archive.filename, archive)
        if owner is not archive and identity(owner.location) != identity(archive.location):
            raise UsageError(
                f"{owner.path} and {archive.path} would both have the file name {archive.filename} in the index, and no reader"
                f" could tell them apart; {advice}"
            )


def _longer_paths(archives: Sequence[Input]) -> dict[Input, str]:
    paths = {archive: below(identity(archive.location)) for archive in archives}
    parent = os.path.commonpath([posixpath.dirname(path) for path in paths.values()]) if paths else ""
    return {archive: posixpath.relpath(path, parent) for archive, path in paths.items()}


def identity(path: PathOrUrl) -> str:
    """One text for all spellings of an archive: the absolute path, or the URL.

    >>> identity("/data/x/../a.warc.gz"), identity("file:///data/a.warc.gz"), identity("s3a://bucket/a.warc.gz")
    ('/data/a.warc.gz', '/data/a.warc.gz', 's3://bucket/a.warc.gz')
    """
    place = locate(path)
    if place.is_remote:
        rest = place.text.partition("://")[2]
        return f"{'s3' if place.scheme == 's3a' else place.scheme}://{rest}"
    try:
        return place.absolute()
    except InputError:  # a file URL with the name of another machine
        return place.text


def check_archives_stay(outputs: Iterable[Location], archives: Iterable[Input]) -> None:
    """Raise UsageError if an output would replace an archive, the WACZ that has it, or the manifest that lists it."""
    files = {(archive.location.stored_in, archive.manifest) for archive in archives}
    manifests = {locate(manifest) for _, manifest in files if manifest}
    check_inputs_stay(outputs, [*(place for place, _ in files), *manifests])


def check_inputs_stay(outputs: Iterable[Location], inputs: Iterable[Location]) -> None:
    """Raise UsageError if an output would replace a file that is read. Every command that writes a file asks this."""
    read: dict[object, list[Location]] = {}
    for place in inputs:
        read.setdefault(_file_at(place), []).append(place)
    for output in outputs:
        if any(output.is_same(place) for place in read.get(_file_at(output), ())):
            raise UsageError(f"{output}: is an input; choose another output")


def _file_at(place: Location) -> object:
    """What several names of a file have in common. The path itself if there is no file."""
    if place.is_remote:
        return identity(place)
    try:
        found = os.stat(place.local)  # noqa: PTH116 - a tenth of the time of Path.resolve
    except (OSError, ValueError):
        return place.local
    return found.st_dev, found.st_ino


def cdx_names(archives: Sequence[Input], cc_index_paths: bool) -> dict[Input, str]:
    """The path of each archive's CDX file below the directory of the job, also as Common Crawl has it. Raises UsageError if two are equal."""
    check_index_names(archives, "give archives of different hosts to different runs")
    names = output_names(archives)
    if not cc_index_paths:
        return names
    return {
        archive: _CC_INDEX + name[len(_CC_CRAWL) :] if name.startswith(_CC_CRAWL) else name
        for archive, name in names.items()
    }


def unique_names(archives: Sequence[Input]) -> dict[Input, str]:
    """A name for the output of each archive that no other archive has, in this run or in any other.

    It has the base name, and a hash of the identity. An archive that is named twice is taken once.
    """
    names: dict[str, Input] = {}
    for archive in archives:
        names.setdefault(unique_name(archive.path), archive)
    return {archive: name for name, archive in names.items()}


def unique_name(path: str) -> str:
    """The name that `unique_names` gives the output of the archive at a path or URL."""
    name = posixpath.basename(without_host(path))
    return f"{_readable(name)}-{_hash(identity(path))}.cdx.gz"


@contextmanager
def writing(place: Location, *, replace: bool) -> Iterator[IO[bytes]]:
    """Write the file of `output_file`, as `write_named` does.

    Raises UsageError if it may not be replaced, and another run or the user has written it since the start.
    """
    if not replace:
        place.check_absent()
    is_new = not replace and place.status() is None
    with place.write_named() as file:
        yield file
        if is_new:
            place.check_absent()


def output_file(path: PathOrUrl, *, replace: bool) -> Location:
    """Resolve the path or URL of a file to write. Raises UsageError if it exists and may not be replaced, as no directory may.

    Raises as `check_writable` and `check_absent` do.
    """
    place = locate(path)
    place.check_writable()
    place.check_absent(replace=replace)
    return place
