"""The inputs of a job. A job starts only if each of them can be listed, because a task could not report them later."""

from __future__ import annotations

from collections.abc import Iterable

from cdxmill.errors import UsageError
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.cdx_files import find_cdx_files
from cdxmill.inputs.named import Input
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures


def cdx_files_of(named: Iterable[str]) -> list[str]:
    """The CDX files of the inputs. Raises UsageError, InputError."""
    failures = Failures()
    found = find_cdx_files(list(named), failures)
    _check(failures)
    return found


def archives_of(manifests: Iterable[str], root: str | None) -> list[Input]:
    """The archives that the manifests list. Raises UsageError, InputError."""
    failures = Failures()
    found = [
        archive
        for manifest in manifests
        for archive in find_archives(ArchiveInputs(manifest=manifest, root=root), failures)
    ]
    _check(failures)
    return found


def _check(failures: Failures) -> None:
    if failures.count:
        raise UsageError("some inputs cannot be listed; correct this and run the job again")
