"""Write one archive again: the task that `recompress` runs in its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from cdxmill.capture import Damage
from cdxmill.errors import InputError
from cdxmill.inputs.existing_outputs import Rule
from cdxmill.inputs.failure_list import failures_beside, list_beside, list_in
from cdxmill.inputs.named import Input
from cdxmill.inputs.output_names import identity
from cdxmill.inputs.output_record import Fingerprinted, Made, append_made
from cdxmill.inputs.output_settings import ArchiveSettings
from cdxmill.running.counted_reads import counted
from cdxmill.running.failures import Failure
from cdxmill.stages.captures.index_archive import Findings
from cdxmill.stages.records.pack_contents import GzipPacker, Packer, ZstPacker, write_contents
from cdxmill.stages.records.read_contents import ScratchFiles, read_contents
from cdxmill.stages.window import CHUNK, LOCAL_CHUNK
from cdxmill.storage.choose import file_size, is_remote, remove, write_atomic
from cdxmill.storage.scratch import Scratch
from cdxmill.storage.unchanged import open_unchanged


@dataclass(frozen=True, kw_only=True)
class RecompressOptions:
    """How archives are written again. `dictionary` is the content of the dictionary's file, b"" for none."""

    to: str = "zst"
    level: int = 6
    dictionary: bytes = field(default=b"", repr=False)
    processes: int = 1
    existing: Rule = Rule.REFUSE
    quiet: bool = False

    def settings(self) -> ArchiveSettings:
        """The options that decide how an archive looks."""
        return ArchiveSettings(packer_of(self).head, (self.to, self.level))


class RecompressTask(NamedTuple):
    """An archive to write again to the path or URL `output`.

    Failures are listed in the local folder `folder`, or, without one, beside the output.
    """

    archive: Input
    output: str
    folder: Path | None
    scratch: Path
    options: RecompressOptions


class RecompressResult(NamedTuple):
    """What came of an archive: bytes before and after (0 if nothing was written), its records, its failures."""

    before: int
    after: int
    records: int
    failures: list[Failure]


class _NothingToWriteError(Exception):
    """The archive has no record that can be written."""


@lru_cache(maxsize=1)
def packer_of(options: RecompressOptions) -> Packer:
    """The packer of a process: its tables are made once."""
    return GzipPacker(options.level) if options.to == "gz" else ZstPacker(options.level, options.dictionary)


def recompress_one(task: RecompressTask) -> RecompressResult:
    """Write one archive again. Its failures are in the result; they are listed before its output appears.

    If it cannot be read to its end, or has no record, nothing is written, and an output of an earlier run stays.
    """
    path, findings = task.archive.path, Findings()
    size = 0 if is_remote(path) else file_size(path)
    result = RecompressResult(size, 0, 0, [])
    try:
        with write_atomic(task.output, sync_name=False) as raw:
            file = Fingerprinted(raw)
            records = _copy(task, cast("IO[bytes]", file), findings)
            if not records:
                raise _NothingToWriteError
            result = result._replace(
                after=file.size, records=records, failures=failures_of(path, findings.damage)
            )
            _list_failures(task, result.failures)
            if task.folder is not None:
                append_made(task.folder, _made(task, task.folder, size, file.fingerprint()))
    except _NothingToWriteError:
        result = result._replace(failures=failures_of(path, findings.damage))
        _list_failures(task, result.failures)
    except InputError as error:
        result = result._replace(failures=failures_of(path, findings.damage, error))
        _list_failures(task, result.failures)
    if result.records and (task.folder is not None or not result.failures):
        remove(failures_beside(task.output))
    Scratch(task.scratch).remove()
    return result


def _copy(task: RecompressTask, file: IO[bytes], findings: Findings) -> int:
    """Write the records of the archive to `file`. Returns their number."""
    path, scratch = task.archive.path, Scratch(task.scratch)
    records = 0
    with open_unchanged(path) as read_at:
        chunk = CHUNK if is_remote(path) else LOCAL_CHUNK
        contents = read_contents(counted(read_at), ScratchFiles(scratch.create, scratch.reader), chunk)
        for item in write_contents(contents, packer_of(task.options), file.write):
            if isinstance(item, Damage):
                findings.add(item)
            else:
                records += 1
    return records


def _made(task: RecompressTask, folder: Path, size: int, fingerprint: str) -> Made:
    name = Path(task.output).relative_to(folder).as_posix()
    settings = task.options.settings().digest(task.archive.filename)
    return Made(name, identity(task.archive.path), settings, size, fingerprint)


def failures_of(path: str, damage: Sequence[Damage], error: InputError | None = None) -> list[Failure]:
    """The failures of an archive under the name `path`: by offset, and last that of the file as a whole."""
    found = [Failure(path, one.offset, one.reason, one.hint) for one in damage]
    if error is not None:
        found.append(Failure(path, None, error.reason, error.hint))
    return found


def _list_failures(task: RecompressTask, failed: Sequence[Failure]) -> None:
    if task.folder is not None:
        list_in(task.folder, failed)
    elif failed:
        list_beside(task.output, failed)
