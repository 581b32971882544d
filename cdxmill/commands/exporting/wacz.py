"""export --to wacz: the captures of queries as one WACZ. `copy` writes the archives, and then they are packed.

OUT.wacz                   appears when it is complete
.OUT.wacz.work/            where a run that was killed continues: the lock, and in .work the copy and the files beside it
_OUT.wacz.failures         the captures that could not be copied, if there are any
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cdxmill.commands.copying.copy import copy, job_of, list_failures
from cdxmill.commands.copying.plan import Asked, ask
from cdxmill.commands.exporting.wacz_file import WaczParts, write_wacz
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.archives.wacz_package import hash_of, iso_time
from cdxmill.formats.own_records import BESIDE
from cdxmill.options.exports import Exporting
from cdxmill.options.option import text_list
from cdxmill.options.queries import CaptureFilters
from cdxmill.options.records import Copying
from cdxmill.outputs.names import check_inputs_stay, output_file, writing
from cdxmill.outputs.record import check_failure_list
from cdxmill.outputs.time import output_time
from cdxmill.running.failures import Failures
from cdxmill.running.lock import hold
from cdxmill.running.progress import Progress
from cdxmill.running.resume import WORK, WorkDirectory
from cdxmill.storage.local import stopping, sync_directory
from cdxmill.storage.location import Location, locate
from cdxmill.storage.scratch import temporary_directory
from cdxmill.storage.wacz import is_wacz
from cdxmill.version import __version__

_CREATED = "created"
_SOFTWARE = f"cdxmill {__version__}"


def export_wacz(asked: Exporting, failures: Failures) -> tuple[int, int]:
    """Write the WACZ. Returns the number of captures, with the originals of revisits, and of pages.

    Raises UsageError, InputError if a source cannot be read or nothing is found, StoppedError.
    """
    place, options = _output(asked), _copying(asked)
    queries = () if asked.query is None else text_list(asked.query)
    found = ask(options, queries or ("*",))
    _check_sources(place, found, options)
    with _work_directory(place, failures) as directory:
        work = WorkDirectory(directory, job_of(found, options))
        copied = work.scratch.directory / "copy" / re.sub(r"\.wacz$", "", place.name, flags=re.I)
        try:
            captures = _copy(found, copied, options, failures)
        except (InputError, UsageError):
            if not any(copied.glob("*.warc.gz")):
                work.remove()
            raise
        pages = _pack(place, asked, copied, work)
        _list_failed(place, work, failures)
        work.remove()
    return captures, pages


def _output(asked: Exporting) -> Location:
    """The place of the WACZ. Raises UsageError if it cannot be written there, or if its signature cannot be made."""
    place = output_file(os.fspath(asked.output), replace=asked.replace)
    if not is_wacz(place.text):
        raise UsageError(f"{place}: the name of a WACZ ends in .wacz; choose such an output")
    known = place.status()
    if known is not None and not place.is_remote and not Path(place.local).is_file():
        raise UsageError(f"{place}: is not a file; choose another output file")
    beside = _beside(place)
    if beside.exists():
        check_failure_list(beside)
    if asked.sign_command is not None:
        words = _words(asked.sign_command)
        if shutil.which(words[0]) is None:
            raise UsageError(
                f"--sign-command {asked.sign_command}: {words[0]} is not found or not executable"
            )
    return place


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--sign-command {command}: {error}") from None
    if not words:
        raise UsageError("--sign-command: is empty; give a program and its arguments")
    return words


def _copying(asked: Exporting) -> Copying:
    """The options of `copy`. What revisits refer to is copied, too: a WACZ is replayed alone."""
    chosen = {name: getattr(asked, name) for name in CaptureFilters.__dataclass_fields__}
    copying = Copying(
        source=os.fspath(asked.cluster),
        archives=asked.archives,
        processes=asked.processes,
        related=asked.related,
        originals=True,
        progress=asked.progress,
        **chosen,
    )
    copying.quiet = asked.quiet
    return copying


def _check_sources(place: Location, found: Asked, options: Copying) -> None:
    """Raise UsageError if the output is an input, or a pipe is read."""
    names = [source.cluster for source in found.sources if not source.is_pipe]
    archives = [] if options.archives is None else [os.fspath(options.archives)]
    check_inputs_stay([place], [locate(name).stored_in for name in (*names, *archives)])


@contextmanager
def _work_directory(place: Location, failures: Failures) -> Iterator[Path]:
    """The directory for unfinished work, beside a local output. A remote output cannot continue after a kill."""
    own = place.directory
    if own is None:
        with temporary_directory() as directory:
            yield Path(directory) / WORK
        return
    beside = own.with_name(f".{own.name}.work")
    try:
        with hold(str(beside), failures.note):
            yield beside / WORK
    finally:
        with suppress(OSError):
            beside.rmdir()


def _copy(found: Asked, copied: Path, options: Copying, failures: Failures) -> int:
    """Copy the captures. Returns how many the copy has."""
    done = copy(found, str(copied), options, failures)
    if failures.outages:
        raise StoppedError("the WACZ is not complete: a machine was at fault; run it again to continue")
    if not any(copied.glob("*.warc.gz")):
        reason = "none of the captures could be copied" if failures.count else "no capture matches the query"
        names = ",".join(source.name for source in found.sources)
        raise InputError(names, f"{reason}; no WACZ is written", "check QUERY")
    return done.captures + done.present


def _pack(place: Location, asked: Exporting, copied: Path, work: WorkDirectory) -> int:
    """Write the WACZ of the copy. Returns the number of pages."""
    time = work.load(_CREATED)
    if time is None:
        time = output_time()
        work.save(_CREATED, time)
    created = iso_time(time)
    parts = WaczParts(copied, work.scratch.directory / "made")
    known = {
        "title": asked.title,
        "description": asked.description,
        "created": created,
        "software": _SOFTWARE,
    }
    about = {name: value for name, value in known.items() if value is not None}
    with Progress("packing", len(list(parts.files())), quiet=asked.quiet) as progress:
        pages = parts.make(progress.tick)
        with _writing(place, asked.replace, work.scratch.directory / "made/package") as out:
            write_wacz(
                _counted(parts.files(), progress),
                out,
                about,
                lambda package: _signed(asked.sign_command, hash_of(package), created),
                progress.tick,
            )
    return pages


def _counted(files: Iterator[tuple[str, Path]], progress: Progress) -> Iterator[tuple[str, Path]]:
    """The same files. Each is done when the next one is asked for."""
    for file in files:
        yield file
        progress.advance()


@contextmanager
def _writing(place: Location, replace: bool, made: Path) -> Iterator[IO[bytes]]:
    """Write the output. A local one is written to the file `made`, which a later run deletes if this one is killed."""
    if place.is_remote:
        with writing(place, replace=replace) as out:
            yield out
        return
    new = locate(made)
    with new.write_atomic() as out:
        yield out
    if not replace:
        place.check_absent()
    new.move(place)
    with stopping(made):
        sync_directory(Path(place.local).parent)


def _signed(command: str | None, digest: str, created: str) -> dict[str, Any] | None:
    """What the command answers for a digest, as WACZ-AUTH has it. Raises StoppedError if it fails, or answers otherwise."""
    if command is None:
        return None
    wanted = {"hash": digest, _CREATED: created}
    try:
        done = subprocess.run(
            _words(command), input=json.dumps(wanted).encode() + b"\n", capture_output=True, check=False
        )
    except OSError as error:
        raise StoppedError(f"--sign-command {command}: {error.strerror}; run it again") from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[-300:] or "without a message"
        raise StoppedError(f"--sign-command {command}: ended with {done.returncode} ({said}); run it again")
    try:
        answer = json.loads(done.stdout)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or not isinstance(answer.get("signature"), str):
        raise StoppedError(f"--sign-command {command}: printed no JSON object with a signature")
    signed = {**wanted, "software": _SOFTWARE, **answer}
    if any(signed[name] != value for name, value in wanted.items()):
        raise StoppedError(f"--sign-command {command}: signed another hash or time")
    return signed


def _beside(place: Location) -> Location:
    """The list of failures of a WACZ."""
    return place.with_name(f"_{place.name}{BESIDE}")


def _list_failed(place: Location, work: WorkDirectory, failures: Failures) -> None:
    """List what could not be copied beside the WACZ, or remove the list of an earlier run."""
    beside = _beside(place)
    if place.is_remote or not failures.items:
        list_failures(beside, failures)
        return
    made = locate(work.scratch.directory / "failures")
    list_failures(made, failures)
    made.move(beside)
