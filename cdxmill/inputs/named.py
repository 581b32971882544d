"""`Input`, and the search that finds inputs: files, directories, globs, URLs -> files. What is skipped is reported."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.own_records import is_own_record
from cdxmill.inputs.pipes import Pipes, filename_of
from cdxmill.messages import count
from cdxmill.regex import regex
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.local import status
from cdxmill.storage.location import Location, PathOrUrl, join, locate
from cdxmill.storage.walk import SPECIAL, Listing, files_below, files_like, is_glob, unfinished_in

_SHARD = regex(r"cdx-\d{5,}(?:-\d+)?\.gz")
_PACKED = regex(r"\.(?:gz|bz2|xz|zst|lz4|zip|z|open|tmp|bad)", re.I)
_ENDING = regex(r"\.\w{1,12}", re.ASCII)
_NAMED = 12
"""Kinds that are listed; the others are summed up."""
SCHEME = regex(r"[a-z][a-z0-9+.-]*://[^/]*/?", re.I)
_LISTED = regex(r"(.+?):\d+: ", re.S)
"""The start of the label of an archive in a manifest."""
_LONGEST = 255
"""Bytes of a file name. No local file has a longer one."""
_SHOWN = 3
"""Inputs that a message names, of many."""


def _summary(skipped: Counter[str]) -> str:
    """`5 files skipped: 3 .har, 2 .txt`."""
    kinds = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{number} {kind}" for kind, number in kinds[:_NAMED]]
    rest = sum(number for _, number in kinds[_NAMED:])
    if rest:
        shown.append(f"{rest} of {count(len(kinds) - _NAMED, 'other kind')}")
    return f"{count(skipped.total(), 'file')} skipped: {', '.join(shown)}"


def skipped_among(names: Iterable[str]) -> str:
    """What is said of files of these names that are skipped; "" if all are records that `index` keeps.

    >>> skipped_among(["archive/a.har", "archive/b.har", "archive/README"])
    '3 files skipped: 2 .har, 1 without ending'
    """
    skipped = Counter(_kind_of(name) for name in names if not is_own_record(name))
    return _summary(skipped) if skipped else ""


def _kind_of(path: str) -> str:
    """The kind of a file that is skipped.

    >>> [_kind_of(name) for name in ("a.har", "x/a.b.warc.bz2", "README", ".x", "cdx-00000.gz", "a.TXT")]
    ['.har', '.warc.bz2', 'without ending', 'without ending', 'shard of a cluster', '.txt']
    """
    name = posixpath.basename(path)
    if _SHARD.fullmatch(name):
        return "shard of a cluster"
    stem, ending = posixpath.splitext(name)
    if _PACKED.fullmatch(ending):
        ending = posixpath.splitext(stem)[1] + ending
    steps = ending.split(".")[1:]
    known = bool(steps) and all(_ENDING.fullmatch(f".{step}") for step in steps)
    return ending.lower() if known else "without ending"


class Input(NamedTuple):
    """An archive: where it is, its name in index lines, its name in messages, and the path that its output is named after."""

    location: Location
    filename: str
    label: str
    name: str = ""

    @property
    def path(self) -> str:
        """Its path or URL."""
        return self.location.text

    @property
    def is_listed(self) -> bool:
        """Whether a manifest lists it. Its label has the line of the manifest then."""
        return self.label != self.path

    @property
    def manifest(self) -> str:
        """The manifest that lists it; "" if none does."""
        found = _LISTED.match(self.label) if self.is_listed else None
        return found[1] if found else ""

    def to_fields(self) -> list[str]:
        """The input as JSON has it, for a task of a job."""
        return [self.path, *self[1:]]

    @classmethod
    def of_fields(cls, fields: Sequence[str]) -> Input:
        """The input of what `to_fields` returned."""
        return cls(Location(fields[0]), *fields[1:])


def named_input(path: PathOrUrl, filename: str) -> Input:
    """An input that the user named, or that is in a directory. Its output is named after its name in index lines."""
    return Input(locate(path), filename, str(path), filename)


class Wanted(NamedTuple):
    """What is searched in directories: its name in messages, the names that its files have, and advice if there is none.

    `is_alone` says that other files in these directories are reported as skipped.
    """

    what: str
    pattern: re.Pattern[str]
    hint: str
    is_alone: bool = True


@contextmanager
def all_listed() -> Iterator[Failures]:
    """The failures of a search for the inputs of a job. Raises UsageError if there are any: no task could report them."""
    failures = Failures()
    yield failures
    if failures.count:
        raise UsageError("some inputs cannot be listed; correct this and run the job again")


class Search:
    """A search for the files that the user named. Use `add` for each input, then `finish` once.

    With `pipes`, inputs may be pipes, and their copies are taken.
    """

    def __init__(self, wanted: Wanted, failures: Failures, pipes: Pipes | None = None) -> None:
        self._wanted, self._failures, self._pipes = wanted, failures, pipes
        self._skipped: Counter[str] = Counter()
        self._directories: dict[str, None] = {}
        """The directories in which files were skipped, in order."""
        self._empty: list[str] = []
        self._errors: list[InputError] = []
        self.inputs: list[Input] = []

    def add(self, named: str) -> None:
        """Add the files that an input stands for: itself, or the files below a directory or of a glob."""
        before = len(self.inputs) + len(self._errors)
        try:
            check_name(named)
            copy = self._pipes and self._pipes.copy_of(named)
            if copy:
                self.inputs.append(Input(Location(copy), filename_of(named), named, filename_of(named)))
            elif locate(named).is_listed:
                self._add_listed(named)
            else:
                self._add_local(named)
        except InputError as error:
            self.fail(error)
        if len(self.inputs) + len(self._errors) == before:
            self._empty.append(named)

    def fail(self, error: InputError) -> None:
        """Note an input that cannot be read or listed, to be reported."""
        self._errors.append(error)

    def skip(self, directory: str, path: str) -> None:
        """Count a file of a directory that is skipped. The records that `index` keeps beside its outputs are no inputs."""
        if not is_own_record(path):
            self._skip(directory, _kind_of(path))

    def _skip(self, directory: str, kind: str, number: int = 1) -> None:
        self._skipped[kind] += number
        self._directories[directory] = None

    def finish(self, named: Sequence[str]) -> list[Input]:
        """The files of all inputs, which are `named`. Reports what was skipped, and inputs that have no file.

        Raises UsageError if there is no file at all, InputError if the reason is that inputs cannot be listed.
        """
        last = None if self.inputs or not self._errors else self._errors.pop()
        for error in self._errors:
            self._failures.report(Failure.from_error(error))
        if last is not None:
            raise last
        if not self.inputs:
            skipped = f" ({_summary(self._skipped)})" if self._skipped else ""
            raise UsageError(f"no {self._wanted.what} found in {_some(named)}{skipped}; {self._wanted.hint}")
        if self._skipped and self._wanted.is_alone:
            self._failures.note(f"{_some([*self._directories])}: note: {_summary(self._skipped)}")
        for path in self._empty:
            if is_glob(path):
                self._failures.add(path, None, "no file matches", "check the pattern")
            else:
                self._failures.add(path, None, f"no {self._wanted.what} found", self._wanted.hint)
        return self.inputs

    def _add_local(self, named: str) -> None:
        path = _path_of(named)
        found = status(path)
        if found is not None and found.is_directory:
            self._take(files_below(path), path)
        elif is_glob(named) and not locate(named).is_remote and not os.path.lexists(path):
            self._take(files_like(path), None, path)
        else:
            self.inputs.append(named_input(named, posixpath.basename(without_host(named))))

    def _add_listed(self, url: str) -> None:
        """A URL whose directories can be listed. If its name is that of a wanted file, it is taken for a file."""
        if is_glob(url) and not locate(url).exists():
            self._take(files_like(url), None, url)
        elif self._wanted.pattern.search(url):
            self.inputs.append(named_input(url, posixpath.basename(url)))
        else:
            listing = files_below(url)
            if not listing.files and not url.endswith("/"):
                self.inputs.append(named_input(url, posixpath.basename(url)))
            self._take(listing, url)

    def _take(self, found: Listing, directory: str | None, pattern: str = "") -> None:
        """Take the wanted files of a directory, or all files of a glob without a directory."""
        for error in found.errors:
            self.fail(error)
        for path, kind in found.others:
            if kind == SPECIAL and (directory is None or self._wanted.pattern.search(path)):
                self.fail(InputError(path, f"is a {kind}", "name a file"))
            else:
                self._skip(directory or pattern, kind)
        names = [*found.files, *found.links]
        if directory is not None:
            names = self._wanted_of(names, directory)
        names, twice = _without_twins(names, set(found.links))
        if twice:
            self._skip(directory or pattern, "link to a file that is taken already", twice)
        start = 0 if directory is None else len(join(directory, ""))
        for path in sorted(names):
            self.inputs.append(named_input(path, path[start:] if start else posixpath.basename(path)))

    def _wanted_of(self, paths: Iterable[str], directory: str) -> list[str]:
        taken = []
        start = len(join(directory, ""))
        for path in paths:
            if unfinished := unfinished_in(path[start:]):
                self._skip(directory, f"in {unfinished}")
            elif self._wanted.pattern.search(path):
                taken.append(path)
            else:
                self.skip(directory, path)
        return taken


def check_name(path: str, label: str = "") -> None:
    """Raise InputError, with the path or its label, if no file can have this path or URL."""
    reason = ""
    if not path:
        reason = "the name is empty"
    elif "\0" in path:
        reason = "the name has a NUL character"
    elif not locate(path).is_remote and any(len(os.fsencode(step)) > _LONGEST for step in path.split("/")):
        reason = f"a name in the path has more than {_LONGEST} bytes"
    if reason:
        label = label or path
        shown = label if len(label) <= _LONGEST else f"{label[:_LONGEST]}..."
        raise InputError(shown, reason, "check the name")


def _path_of(named: str) -> str:
    """The path of a file URL; all else as it is."""
    try:
        return locate(named).local
    except InputError:
        return named


def without_host(path: str) -> str:
    """A URL without scheme and host, an http URL also without its query; a path unchanged."""
    if path.lower().startswith(("http://", "https://")):
        path = path.partition("#")[0].partition("?")[0]
    return SCHEME.sub("", path)


def _without_twins(paths: list[str], links: set[str]) -> tuple[list[str], int]:
    """`paths` with one name for each file, and the number of the names that were dropped.

    A name without hidden directories wins, then one that is no link: the stores of git-annex are hidden.
    """
    if not links:
        return paths, 0
    directories: dict[str, str] = {}
    best: dict[str, tuple[bool, bool, str]] = {}
    for path in paths:
        rank = "/." in path, path in links, path
        if path in links:
            real = os.path.realpath(path)
        else:
            directory, name = posixpath.split(path)
            if directory not in directories:
                directories[directory] = os.path.realpath(directory)
            real = join(directories[directory], name)
        best[real] = min(best.get(real, rank), rank)
    return [path for _, _, path in best.values()], len(paths) - len(best)


def check_archives(archives: Mapping[Input, str] | Sequence[Input]) -> None:
    """Raise UsageError if there are none."""
    if not archives:
        raise UsageError("no archives found; check the paths, and that the disk with the archives is mounted")


def _some(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
