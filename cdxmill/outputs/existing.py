"""Which outputs exist, what they were made from, and so which archives have to be read; what decides how an output looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.options.option import Existing
from cdxmill.outputs.names import identity
from cdxmill.outputs.record import (
    OutputRecord,
    OutputRow,
    check_failure_list,
    failed_in,
    failures_beside,
    recorded,
    state_of,
)
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location, ask_all


class Rule(Enum):
    """What happens to outputs that exist. One that is complete and up to date is always kept, except by REPLACE."""

    REFUSE = "all others are an error"
    STAY = "all others are an error, in a command without UPDATE"
    MEND = "those of changed archives are written again, those of other options kept; others are an error"
    UPDATE = "others are kept too, unless their archive has changed or failed"
    RENEW = "all others are written again"
    REPLACE = "all are written again"


def rule_of(existing: Existing) -> Rule:
    """What the options say."""
    return Rule.REPLACE if existing.replace else Rule.UPDATE if existing.update else Rule.REFUSE


class _State(Enum):
    """An output as it was found. The text is for an error message."""

    ABSENT = "is missing or empty"
    FAILED = "was made from an archive with failures"
    GONE = "was made from an archive that is gone"
    CURRENT = "is up to date"
    OLDER = "was made from an earlier state of {archive}"
    OTHER_SETTINGS = "was made with other options"
    OTHER_ARCHIVE = "was not made from {archive}"
    UNKNOWN = "was changed, or cdxmill has no record of it"
    FOREIGN = "was changed, or was not made from {archive}"


_KEPT = {
    Rule.REFUSE: {_State.CURRENT},
    Rule.STAY: {_State.CURRENT},
    Rule.MEND: {_State.CURRENT, _State.OTHER_SETTINGS},
    Rule.UPDATE: {_State.CURRENT, _State.OTHER_SETTINGS, _State.UNKNOWN},
    Rule.RENEW: {_State.CURRENT},
}
_STALE = {_State.OLDER, _State.OTHER_SETTINGS, _State.OTHER_ARCHIVE, _State.UNKNOWN, _State.FOREIGN}
_REFUSED = {
    Rule.REFUSE: _STALE,
    Rule.STAY: _STALE,
    Rule.MEND: {_State.OTHER_ARCHIVE, _State.UNKNOWN, _State.FOREIGN},
    Rule.UPDATE: {_State.OTHER_ARCHIVE, _State.FOREIGN},
    Rule.RENEW: set[_State](),
}
_NOTED = (_State.OTHER_SETTINGS, _State.UNKNOWN)
"""With UPDATE, it is said that these are kept."""


class PlannedOutputs(NamedTuple):
    """The outputs to write, each with its archive, the archives whose outputs are kept, those of them without a record, and what has to be said of them."""

    to_write: dict[Input, Location]
    kept: list[Input]
    unknown: Sequence[Location] = ()
    notes: Sequence[str] = ()


def plan_outputs(
    outputs: Mapping[Input, Location], settings: OutputSettings, rule: Rule, directory: Path | None
) -> PlannedOutputs:
    """Decide which archives have to be read again to write `outputs`.

    Local outputs are in `directory`, which has a record of them and a list of failures. Without it, each output carries its
    record, and failures are listed beside it. Raises UsageError if `rule` neither keeps nor replaces an output that exists,
    or if a list beside it is somebody else's, InputError if a storage does not answer, StoppedError if the record cannot be read.
    """
    if rule is Rule.REPLACE:
        ask_all(_has_failures, outputs.values())
        return PlannedOutputs(dict(outputs), [])
    states = _states(outputs, settings, directory)
    refused = {archive: state for archive, state in states.items() if state in _REFUSED[rule]}
    for archive, state in refused.items():
        raise UsageError(_refusal(outputs[archive], archive, state, len(refused), rule))
    kept = [archive for archive, state in states.items() if state in _KEPT[rule]]
    to_write = {archive: outputs[archive] for archive, state in states.items() if state not in _KEPT[rule]}
    by_state = {state: [outputs[one] for one in kept if states[one] is state] for state in _NOTED}
    notes = [_note(found, state) for state, found in by_state.items() if found and rule is Rule.UPDATE]
    return PlannedOutputs(to_write, kept, by_state[_State.UNKNOWN], notes)


def _note(outputs: Sequence[Location], state: _State) -> str:
    return f"{outputs[0]}: note: kept, but it {state.value}{_such(len(outputs))}; use --replace to write it again"


def _such(number: int) -> str:
    return f" ({number} such outputs)" if number > 1 else ""


def up_to_date(names: Mapping[Input, str], directory: Path, settings: OutputSettings) -> list[Input]:
    """The archives whose outputs in a local directory are complete, and made from them as they are, with these settings."""
    outputs = {archive: Location(str(directory / name)) for archive, name in names.items()}
    return plan_outputs(outputs, settings, Rule.RENEW, directory).kept


def _refusal(output: Location, archive: Input, state: _State, number: int, rule: Rule) -> str:
    can_keep = rule is not Rule.STAY and state not in _REFUSED[Rule.UPDATE]
    keep = "--update to keep finished outputs, " if can_keep else ""
    return (
        f"{output}: {state.value.format(archive=archive.path)}{_such(number)};"
        f" use {keep}--replace to write it again, or another output directory"
    )


def _states(
    outputs: Mapping[Input, Location], settings: OutputSettings, directory: Path | None
) -> dict[Input, _State]:
    record, failed = OutputRecord(directory), failed_in(directory) if directory else set[str]()

    def ask(archive: Input) -> _State:
        output = outputs[archive]
        has_failed = _has_failures(output) or (bool(failed) and identity(archive.location) in failed)
        return _by_record(output, archive, record.made_from(output), settings, has_failed)

    is_remote = directory is None or any(archive.location.is_remote for archive in outputs)
    states = dict(zip(outputs, ask_all(ask, outputs, is_remote), strict=True))
    record.keep_times()
    return states


def _by_record(
    output: Location, archive: Input, row: OutputRow | None, settings: OutputSettings, has_failed: bool
) -> _State:
    if row is None:
        state = _by_start(output, archive, settings)
        if state in (_State.ABSENT, _State.FOREIGN):
            return state
        return _State.FAILED if has_failed else state
    if row.archive != recorded(archive.location):
        return _State.OTHER_ARCHIVE
    if has_failed:
        return _State.FAILED
    found = _status(archive.location)
    if found is None:
        return _State.GONE
    if row.state != state_of(found) and not settings.is_proven(output, archive):
        return _State.OLDER
    is_same = row.settings == settings.digest(archive.filename)
    return _State.CURRENT if is_same else _State.OTHER_SETTINGS


def _has_failures(output: Location) -> bool:
    """Whether failures are listed beside an output. Raises UsageError if a file of this name is somebody else's."""
    listed = failures_beside(output)
    if not listed.exists():
        return False
    check_failure_list(listed)
    return True


def _by_start(output: Location, archive: Input, settings: OutputSettings) -> _State:
    """The state of an output of which no record exists. Raises InputError if the storage does not answer."""
    entry = output.status()
    if entry is None or not entry.size:
        return _State.ABSENT
    return _by_time(entry.modified, archive.location) if settings.fits(output, archive) else _State.FOREIGN


def _by_time(made: float, archive: Location) -> _State:
    """The state of an output that was written at a time. Without a record, it is not known to be up to date."""
    if not archive.properties.has_times:
        return _State.UNKNOWN
    found = _status(archive)
    if found is None:
        return _State.GONE
    return _State.UNKNOWN if made >= found.modified else _State.OLDER


def _status(archive: Location) -> Entry | None:
    """What is at a place; None also if its storage does not answer: the archive is read then, and costs no other one."""
    try:
        return archive.status()
    except InputError:
        return None


class OutputSettings(Protocol):
    """The settings of a command that writes one output per archive."""

    def digest(self, filename: str) -> str:
        """A hash of all that decides how the output looks. `filename` is the name of the archive in lines."""

    def is_proven(self, output: Location, archive: Input) -> bool:
        """Whether a proof shows that an output was made from the archive as it is, also if that has another time now."""

    def fits(self, output: Location, archive: Input) -> bool:
        """Whether the start of an output may be that of one of this archive. Raises InputError if its storage does not answer."""
