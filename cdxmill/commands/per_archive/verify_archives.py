"""verify, of archives: two archives, or two directories of them, that should have the same records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cdxmill.checks.archive_pairs import ComparedPair, PairTask, compare_pair
from cdxmill.checks.verify_run import VerifyRun
from cdxmill.errors import UsageError
from cdxmill.inputs.archives import find_archives
from cdxmill.inputs.dictionaries import use_dictionary
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_bytes
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.packing import Comparing
from cdxmill.outputs.names import output_names, recompressed_name
from cdxmill.running.failures import Failure, Failures
from cdxmill.storage.location import Location, locate, total_size
from cdxmill.storage.scratch import temporary_directory


class VerifiedArchives(NamedTuple):
    """What was compared: pairs of archives, records that both of a pair have, and the bytes of these and of the files.

    `proven` pairs have a proof. `different` records are in one archive only, `carried` damaged parts in both. `wrong_digests` of `digests` are not those of their records.
    """

    pairs: int
    records: int
    content: int
    old: int
    new: int
    proven: int
    digests: int
    wrong_digests: int
    different: int
    carried: int
    faults: int

    def __str__(self) -> str:
        """Return one line."""
        sizes = f"{human_bytes(self.old)} and {human_bytes(self.new)}"
        what = f"{count(self.records, 'equal record')} in {count(self.pairs, 'pair')} of archives ({sizes})"
        what += f", {count(self.digests, 'digest')} checked"
        if self.wrong_digests:
            what += f", {self.wrong_digests} of them wrong"
        if self.carried:
            what += f", {count(self.carried, 'damaged part')} carried over"
        if self.proven < self.pairs:
            what += (
                f"; {self.pairs - self.proven} without a proof, so bytes outside of records were not checked"
            )
        else:
            what += "; every byte was checked"
        return what + (f"; {count(self.faults, 'error')} found" if self.faults else "")


def verify_archives(asked: Comparing, failures: Failures) -> VerifiedArchives:
    """Compare archives. Differences are failures. Raises UsageError if there are no archives, or if none belong together."""
    use_dictionary(asked.dictionary)
    run = VerifyRun(asked.processes, failures, asked.quiet)
    old = find_archives(ArchiveInputs(os.fspath(asked.old)), failures)
    new = find_archives(ArchiveInputs(os.fspath(asked.new)), failures)
    pairs = _pairs(old, new, locate(os.fspath(asked.new)), run)
    if not pairs:
        raise UsageError(
            f"{asked.new}: has no archive with the name that recompress gives one of {asked.old}"
        )
    size = total_size(archive.location for pair in pairs for archive in pair)
    with temporary_directory() as directory:
        tasks = [
            PairTask(*pair, Path(directory) / str(number), asked.max_window << 20, asked.any_digest)
            for number, pair in enumerate(pairs)
        ]
        compared = run.results("comparing archives", compare_pair, tasks, size)
    return _summary(compared, failures)


def _pairs(
    old: Sequence[Input], new: Sequence[Input], place: Location, run: VerifyRun
) -> list[tuple[Input, Input]]:
    """The archives that belong together: the one that `place` is, or by the names that `recompress` gives. Others are reported."""
    if len(old) == len(new) == 1 and new[0].location.stored_in.is_same(place):
        return [(old[0], new[0])]
    found = {one.name or one.path: one for one in new}
    names = [_names(old, to) for to in ("zst", "gz")]
    pairs = []
    for archive in old:
        here = next(filter(None, (_at(named[archive], found, place) for named in names)), None)
        if here is None:
            run.report([Failure(archive.label, None, "has no new archive")])
        else:
            pairs.append((archive, here))
    run.report(Failure(one.label, None, "is of no old archive") for one in found.values())
    return pairs


def _at(name: str, found: dict[str, Input], place: Location) -> Input | None:
    """The archive of this name below the directory `place`. A name such as a.warc.gz.zst is not searched for in directories."""
    if name in found:
        return found.pop(name)
    here = place / name
    return Input(here, name, here.text) if here.exists() else None


def _names(archives: Sequence[Input], to: str) -> dict[Input, str]:
    return output_names(archives, lambda path: recompressed_name(path, to), f".{to}")


def _summary(compared: Sequence[ComparedPair], failures: Failures) -> VerifiedArchives:
    def total(name: str) -> int:
        return sum(getattr(one, name) for one in compared)

    return VerifiedArchives(
        pairs=len(compared),
        records=total("records"),
        content=total("content"),
        old=total("old"),
        new=total("new"),
        proven=total("is_proven"),
        digests=total("digests"),
        wrong_digests=total("wrong_digests"),
        different=total("different"),
        carried=total("carried"),
        faults=failures.count,
    )
