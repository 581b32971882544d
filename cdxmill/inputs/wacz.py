"""The archives in the WACZ files that the user named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping

from cdxmill.errors import InputError
from cdxmill.formats.zip_directory import Member
from cdxmill.inputs.named import Input, Search
from cdxmill.storage.choose import ask_all, files_in_wacz
from cdxmill.storage.wacz import ARCHIVE, inside, is_wacz, own_name

_ELSEWHERE = {"", ".", ".."}


def open_wacz_files(search: Search, named: Collection[str], archives: re.Pattern[str]) -> None:
    """Replace each WACZ that the search has found by the files in it whose names match `archives`.

    Such a file is named in index lines as the WACZ, followed by its name there. If the WACZ is one of `named`, the name
    is that of the index in the WACZ: the path below `archive/`, unless another input has this name, too.
    """
    paths = [entry.path for entry in search.inputs if is_wacz(entry.path)]
    files = dict(zip(paths, ask_all(_files, paths), strict=True))
    found: list[Input] = []
    short: dict[Input, str] = {}
    for entry in search.inputs:
        if entry.path not in files:
            found.append(entry)
            continue
        for name in _choose(search, entry.path, files[entry.path], archives):
            found.append(_input(entry, name))
            if entry.path in named and entry.label == entry.path:
                short[found[-1]] = own_name(name)
    times = Counter(short.get(entry, entry.filename) for entry in set(found))
    search.inputs[:] = [
        entry._replace(filename=short[entry]) if times[short.get(entry, "")] == 1 else entry
        for entry in found
    ]


def _files(path: str) -> Mapping[str, Member] | InputError:
    try:
        return files_in_wacz(path)
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
        inside(entry.path, name),
        inside(entry.filename, name),
        inside(entry.label, name),
        entry.name and inside(entry.name, name),
    )
