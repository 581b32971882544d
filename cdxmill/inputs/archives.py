"""`find_archives`: files, directories, globs, URLs, manifests and WACZ files -> the list of archives."""

from __future__ import annotations

import codecs
import os
import posixpath
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import SCHEME, Input, Search, Wanted, all_listed, check_name, without_host
from cdxmill.inputs.pipes import Pipes
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.option import optional_path, path_list
from cdxmill.regex import regex
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import Location, ask_all
from cdxmill.storage.wacz import ARCHIVE, inside, is_wacz, own_name

_ELSEWHERE = {"", ".", ".."}
_UNPACK = "unpack it and index its files"
_ARCHIVES = Wanted(
    "archives",
    regex(r"\.w?arc(\.wat|\.wet)?(\.gz|\.zst)?$|\.(wat|wet)(\.gz|\.zst)?$|\.wacz$", re.I),
    "in directories, cdxmill searches for .warc, .arc, .wat and .wet files, also with .gz or .zst, and for .wacz files",
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ARCHIVE_STARTS = (b"WARC/", b"filedesc://", b"\x28\xb5\x2f\xfd")
_START = 1 << 12


class WaczContents(NamedTuple):
    """The archives in a WACZ, why others cannot be read, and the names of files that are skipped.

    `unopened` is the reason if the WACZ itself cannot be opened.
    """

    archives: list[Input]
    errors: list[InputError]
    skipped: list[str]
    unopened: InputError | None = None


def names_in(wacz: Location) -> list[str] | InputError:
    """The names of all files in a WACZ, or why it cannot be opened."""
    try:
        return list(wacz.wacz_files())
    except InputError as error:
        return error


OpenAll = Callable[[Sequence[Location]], Sequence[list[str] | InputError]]
"""Opens several WACZ files: what `names_in` returns for each."""


def open_here(places: Sequence[Location]) -> list[list[str] | InputError]:
    """Open WACZ files in this process."""
    return ask_all(names_in, places)


def contents_of(wacz: Input, names: list[str] | InputError) -> WaczContents:
    """What is in a WACZ that has files of these names, or that could not be opened.

    In index lines, an archive in it has the name of the WACZ, then its name in the WACZ.
    """
    if isinstance(names, InputError):
        return WaczContents([], [], [], names)
    found = WaczContents([], [], [])
    for name in names:
        if is_wacz(name):
            found.errors.append(InputError(inside(wacz.path, name), "is a WACZ in a WACZ", _UNPACK))
        elif not _ARCHIVES.pattern.search(name):
            if name.startswith(ARCHIVE):
                found.skipped.append(name)
        elif _ELSEWHERE & set(name.split("/")):
            found.errors.append(InputError(wacz.path, f"has a file with the name {name}", _UNPACK))
        else:
            found.archives.append(_input(wacz, name))
    if not found.archives and not found.errors:
        hint = "a WACZ has WARC files, such as archive/data.warc.gz"
        found.errors.append(InputError(wacz.path, "has no archives", hint))
    return found


def _open_wacz_files(
    search: Search, named: Collection[str], unopened: Failures | None, open_all: OpenAll
) -> None:
    """Replace each WACZ that the search has found by the archives in it.

    If the WACZ is one of `named` and the only input, their names in index lines are those of the index in the WACZ: the path
    below `archive/`.
    """
    found_wacz = [entry for entry in search.inputs if is_wacz(entry.path)]
    is_alone = len(search.inputs) == 1 and search.inputs[0].label in named
    listings = open_all([entry.location for entry in found_wacz]) if found_wacz else []
    contents = {entry: contents_of(entry, names) for entry, names in zip(found_wacz, listings, strict=True)}
    found: list[Input] = []
    for entry in search.inputs:
        if entry not in contents:
            found.append(entry)
            continue
        archives, errors, skipped, error = contents[entry]
        if error is not None and unopened is not None:
            unopened.report(Failure.from_error(error))
        elif error is not None:
            search.fail(error)
        for one in errors:
            search.fail(one)
        for name in skipped:
            search.skip(entry.path, name)
        found += [_named_in(entry, one) for one in archives] if is_alone else archives
    search.inputs[:] = found


def _named_in(wacz: Input, archive: Input) -> Input:
    """An archive of a WACZ with the name that the index in the WACZ has for it."""
    return archive._replace(filename=own_name(archive.filename[len(wacz.filename) + 1 :]))


def _input(entry: Input, name: str) -> Input:
    return Input(
        Location(inside(entry.path, name)),
        inside(entry.filename, name),
        inside(entry.label, name),
        entry.name and inside(entry.name, name),
    )


def find_archives(
    asked: ArchiveInputs,
    failures: Failures,
    pipes: Pipes | None = None,
    unopened: Failures | None = None,
    open_all: OpenAll | None = open_here,
) -> list[Input]:
    """The archives that the user named, in order; with `pipes`, also pipes.

    A directory stands for the files below it that have the name of an archive, a WACZ for those in it. File names in
    index lines are relative to `dir_root`. Without it, a file has its base name, a file of a directory its path below
    that, and an entry of the manifest is used as written. Inputs that cannot be listed are reported to `failures`, and
    what was skipped in directories; WACZ files that cannot be opened to `unopened`, if that is given. Without
    `open_all`, a WACZ is itself an archive: a task opens it. Raises UsageError if there is no archive or the manifest cannot be read,
    InputError if nothing could be listed.
    """
    named, manifest = path_list(asked.inputs), optional_path(asked.manifest)
    if not named and manifest is None:
        raise UsageError("no input; give archives, directories, or a manifest")
    if asked.dictionary is not None:
        from cdxmill.inputs.dictionaries import use_dictionary  # the library is slow to import

        use_dictionary(asked.dictionary)
    if pipes is not None and manifest == "-" and "-" in named:
        raise UsageError("- can be an archive or the manifest, not both")
    search = Search(_ARCHIVES, failures, pipes)
    for name in named:
        search.add(name)
    if manifest is not None:
        _add_listed(search, manifest, os.fspath(asked.root or ""))
    if open_all is not None:
        _open_wacz_files(search, named, unopened, open_all)
    found = search.finish(named if manifest is None else [*named, manifest])
    if asked.dir_root is not None:
        found = [
            entry
            if SCHEME.match(entry.path) or (pipes is not None and pipes.has(entry.path))
            else entry._replace(filename=os.path.relpath(entry.path, asked.dir_root))
            for entry in found
        ]
    return found


def archives_of(manifests: Iterable[str], root: str | None, unopened: Failures | None = None) -> list[Input]:
    """The archives and WACZ files that the manifests of a job list. Its tasks open the WACZ files.

    With `unopened`, they are opened here: the archives in them are returned, and those that cannot be opened are reported to it.
    Raises UsageError, also if only one input cannot be listed, or if a WACZ is listed and a file in it, too; InputError.
    """
    with all_listed() as failures:
        asked = [ArchiveInputs(manifest=manifest, root=root) for manifest in manifests]
        open_all = None if unopened is None else open_here
        listed = (find_archives(one, failures, unopened=unopened, open_all=open_all) for one in asked)
        found = [entry for entries in listed for entry in entries]
    opened = {entry.location for entry in found if is_wacz(entry.path)}
    for entry in found if opened else ():
        if entry.location not in opened and entry.location.stored_in in opened:
            raise UsageError(f"{entry.label}: is listed twice, because its WACZ is listed, too; delete one")
    return found


def _add_listed(search: Search, manifest: str, root: str) -> None:
    """Add the entries of a manifest: of each line the last tab-separated field that is not empty."""
    for number, line in enumerate(_manifest_text(manifest).split("\n"), 1):
        fields = [field.strip() for field in line.split("\t")]
        entry = next((field for field in reversed(fields) if field), "")
        if not entry or line.startswith("#"):
            continue
        is_relative = not (entry.startswith("/") or SCHEME.match(entry))
        path = posixpath.join(root, entry) if is_relative else entry
        filename = (
            entry if is_relative else posixpath.basename(entry) if entry[0] == "/" else without_host(entry)
        )
        label = f"{manifest}:{number}: {path}"
        try:
            check_name(path, label)
        except InputError as error:
            search.fail(error)
        else:
            search.inputs.append(Input(Location(path), filename, label, entry))


def _manifest_text(manifest: str) -> str:
    import gzip

    try:
        if manifest == "-":
            data = b"" if sys.stdin is None else sys.stdin.buffer.read()
        else:
            place = Location(manifest)
            data = place.read_bytes() if place.is_remote else Path(place.local).read_bytes()
        is_gzip = data[:2] == b"\x1f\x8b"
        gzip_text = zlib.decompressobj(zlib.MAX_WBITS | 16)
        start = gzip_text.decompress(data[:_START], 16) if is_gzip else data[:16]
        if start.startswith(_ARCHIVE_STARTS):
            raise UsageError(
                f"{manifest} is an archive, not a manifest, which is a text with one path per line"
            )
        if is_gzip:
            data = gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error, InputError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise UsageError(f"the manifest {manifest} cannot be read ({reason}); check it") from None
    if data.startswith(_UTF16):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
