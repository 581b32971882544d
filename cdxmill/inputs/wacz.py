"""The archives in the WACZ files that the user named."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping

from cdxmill.errors import InputError
from cdxmill.formats.archives.zip_directory import Member
from cdxmill.inputs.named import Input, Search, without_host
from cdxmill.storage.location import Location, ask_all
from cdxmill.storage.wacz import ARCHIVE, inside, is_wacz, own_name

_ELSEWHERE = {"", ".", ".."}


def open_wacz_files(search: Search, named: Collection[str], archives: re.Pattern[str]) -> None:
    """Replace each WACZ that the search has found by the files in it whose names match `archives`.

    Such a file is named in index lines as the WACZ, followed by its name there. If the WACZ is one of `named` and the
    only input, the name is that of the index in the WACZ: the path below `archive/`.
    """
    found_wacz = [entry.location for entry in search.inputs if is_wacz(entry.path)]
    is_alone = len(search.inputs) == 1 and search.inputs[0].label in named
    files = dict(zip(found_wacz, ask_all(_files, found_wacz), strict=True))
    found: list[Input] = []
    for entry in search.inputs:
        if entry.location not in files:
            found.append(entry)
            continue
        for name in _choose(search, entry.path, files[entry.location], archives):
            archive = _input(entry, name)
            found.append(archive._replace(filename=own_name(name)) if is_alone else archive)
    search.inputs[:] = found


def _files(place: Location) -> Mapping[str, Member] | InputError:
    try:
        return place.wacz_files()
    except InputError as error:
        return error


def _choose(
    search: Search, path: str, files: Mapping[str, Member] | InputError, archives: re.Pattern[str]
) -> list[str]:
    """The names of the archives in a WACZ. Whatever else may have captures is reported."""
    if isinstance(files, InputError):
        search.fail(files)
        return []
    chosen, failed = [], False
    for name in files:
        if is_wacz(name):
            search.fail(
                InputError(inside(path, name), "is a WACZ in a WACZ", "unpack it and index its files")
            )
            failed = True
        elif not archives.search(name):
            if name.startswith(ARCHIVE):
                search.skip(path, name)
        elif _ELSEWHERE & set(name.split("/")):
            search.fail(InputError(path, f"has a file with the name {name}", "unpack it and index its files"))
            failed = True
        else:
            chosen.append(name)
    if not chosen and not failed:
        search.fail(
            InputError(path, "has no archives", "a WACZ has WARC files, such as archive/data.warc.gz")
        )
    return chosen


def _input(entry: Input, name: str) -> Input:
    return Input(
        Location(inside(entry.path, name)),
        inside(entry.filename, name),
        inside(entry.label, name),
        entry.name and inside(entry.name, name),
    )


def locator_in_wacz(wacz: Location) -> Callable[[str], list[Location]]:
    """A function from the file name of a line to the path of that archive in a WACZ. Raises InputError.

    The name in a line is that in the zip, also without `archive/`, or after the name of the WACZ.
    """
    names = {own_name(name): name for name in wacz.wacz_files()}
    prefix = posixpath.basename(without_host(wacz.text)) + "/"

    def find(filename: str) -> list[Location]:
        name = own_name(filename.removeprefix(prefix))
        return [Location(inside(wacz.text, names.get(name, ARCHIVE + name)))]

    return find
