"""Which outputs exist, what they were made from, and so which archives have to be read."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.own_records import OUTPUTS
from cdxmill.inputs.named import Input
from cdxmill.outputs.failure_list import failed_in, failures_beside
from cdxmill.outputs.names import identity
from cdxmill.outputs.record import Made, OutputRecord
from cdxmill.outputs.settings import OutputSettings
from cdxmill.storage.choose import ask_all, exists, file_size, is_newer, is_remote, join, local_path, status


class Rule(Enum):
    """What happens to outputs that exist. One that is complete and up to date is always kept, except by REPLACE."""

    REFUSE = "all others are an error"
    UPDATE = "others are kept too, unless their archive is newer or failed"
    RENEW = "all others are written again"
    REPLACE = "all are written again"


class _State(Enum):
    """An output as it was found. The text is for an error message."""

    ABSENT = "is missing or empty"
    FAILED = "was made from an archive with failures"
    GONE = "was made from an archive that is gone"
    CURRENT = "is up to date"
    OLDER = "was made from an earlier state of {archive}"
    OTHER_SETTINGS = "was made with other options"
    OTHER_ARCHIVE = "was made from another archive than {archive}"
    UNKNOWN = f"was changed, or is not listed in {OUTPUTS}"


_KEPT = {
    Rule.REFUSE: {_State.CURRENT},
    Rule.UPDATE: {_State.CURRENT, _State.OTHER_SETTINGS, _State.UNKNOWN},
    Rule.RENEW: {_State.CURRENT},
    Rule.REPLACE: set[_State](),
}
_REFUSED = {
    Rule.REFUSE: {_State.OLDER, _State.OTHER_SETTINGS, _State.OTHER_ARCHIVE, _State.UNKNOWN},
    Rule.UPDATE: {_State.OTHER_ARCHIVE},
    Rule.RENEW: set[_State](),
    Rule.REPLACE: set[_State](),
}
_UNRECORDED = {_State.CURRENT: _State.UNKNOWN, _State.OTHER_SETTINGS: _State.UNKNOWN}
"""A local output needs a record to be up to date: its first line does not show which options made it."""


class Plan(NamedTuple):
    """The archives to index, and the archives whose outputs are kept."""

    to_index: list[Input]
    kept: list[Input]


def check_inputs_stay(names: Mapping[Input, str], base: str) -> None:
    """Raise UsageError if an output of the names below `base` would replace a file that is read."""
    read = {_real(archive.path) for archive in names}
    for output in (join(base, name) for name in names.values()):
        if _real(output) in read:
            raise UsageError(f"{output}: is an input; choose another output directory")


def _real(path: str) -> str:
    return identity(path) if is_remote(path) else str(Path(local_path(path)).resolve())


def plan_outputs(
    outputs: Mapping[Input, str], settings: OutputSettings, rule: Rule, folder: Path | None = None
) -> Plan:
    """Decide which archives have to be read again to write `outputs`, which are paths or URLs.

    Local outputs are in `folder`, which has a record of them and a list of failures. Without it, the start of each
    output is compared, and failures are listed beside it. Raises UsageError if `rule` neither keeps nor replaces an output
    that exists, InputError if a storage does not answer.
    """
    if rule is Rule.REPLACE:
        return Plan(list(outputs), [])
    states = _states(outputs, settings, folder)
    refused = {archive: state for archive, state in states.items() if state in _REFUSED[rule]}
    for archive, state in refused.items():
        raise UsageError(_refusal(outputs[archive], archive, state, len(refused), rule))
    kept = [archive for archive, state in states.items() if state in _KEPT[rule]]
    return Plan([archive for archive, state in states.items() if state not in _KEPT[rule]], kept)


def up_to_date(names: Mapping[Input, str], folder: Path, settings: OutputSettings) -> list[Input]:
    """The archives whose outputs in a local folder are complete, and made from them as they are, with these settings."""
    outputs = {archive: str(folder / name) for archive, name in names.items()}
    return plan_outputs(outputs, settings, Rule.RENEW, folder).kept


def _refusal(output: str, archive: Input, state: _State, number: int, rule: Rule) -> str:
    more = f" ({number} such outputs)" if number > 1 else ""
    keep = "--update to keep finished outputs, " if state is not _State.OTHER_ARCHIVE else ""
    if rule is Rule.UPDATE:
        keep = ""
    return (
        f"{output}: {state.value.format(archive=archive.path)}{more};"
        f" use {keep}--replace to write it again, or another output directory"
    )


def _states(
    outputs: Mapping[Input, str], settings: OutputSettings, folder: Path | None
) -> dict[Input, _State]:
    archives = {output: archive for archive, output in outputs.items()}
    if folder is None:
        found = ask_all(lambda output: _by_start(output, archives[output], settings), archives)
        return dict(zip(archives.values(), found, strict=True))
    record, failed = OutputRecord(folder), failed_in(folder)
    return {
        archive: _by_record(output, archive, record.made_from(Path(output)), settings, failed)
        for archive, output in outputs.items()
    }


def _by_record(
    output: str, archive: Input, made: Made | None, settings: OutputSettings, failed: Set[str]
) -> _State:
    own = identity(archive.path)
    if made is None:
        state = _by_start(output, archive, settings)
        if state in (_State.ABSENT, _State.OTHER_ARCHIVE):
            return state
        return _State.FAILED if own in failed else _UNRECORDED.get(state, state)
    if made.archive != own:
        return _State.OTHER_ARCHIVE
    if own in failed or exists(failures_beside(output)):
        return _State.FAILED
    state = _by_time(output, archive)
    if state is _State.CURRENT and not is_remote(archive.path) and made.size != file_size(archive.path):
        return _State.OLDER
    if state is _State.CURRENT and made.settings != settings.digest(archive.filename):
        return _State.OTHER_SETTINGS
    return state


def _by_start(output: str, archive: Input, settings: OutputSettings) -> _State:
    """The state of an output of which no record exists. Raises InputError if the storage does not answer."""
    entry = status(output)
    if entry is None or not entry.size:
        return _State.ABSENT
    seen = settings.look(output, archive)
    if not seen.is_of_archive:
        return _State.OTHER_ARCHIVE
    if exists(failures_beside(output)):
        return _State.FAILED
    state = _by_time(output, archive)
    return _State.OTHER_SETTINGS if state is _State.CURRENT and not seen.has_settings else state


def _by_time(output: str, archive: Input) -> _State:
    if is_newer(output, archive.path):
        return _State.CURRENT
    try:
        return _State.OLDER if exists(archive.path) else _State.GONE
    except InputError:
        return _State.GONE
