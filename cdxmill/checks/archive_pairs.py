"""Two archives that have the same records, compressed in different ways: compared record by record, and with the proof."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from cdxmill.capture import Damage
from cdxmill.errors import InputError
from cdxmill.formats.proof import Proof, Sum
from cdxmill.inputs.named import Input
from cdxmill.outputs.proofs import proof_beside, read_proof
from cdxmill.running.failures import Failure
from cdxmill.running.processes import counted
from cdxmill.stages.captures.index_archive import Findings
from cdxmill.stages.records.carry_damage import DamagedPart, has_part, part_in
from cdxmill.stages.records.check_digests import SeenDigests
from cdxmill.stages.records.compare_contents import OtherRecords, RecordSum, differences, parts_of
from cdxmill.stages.records.describe import is_description
from cdxmill.stages.records.read_contents import Content, read_contents, without_notes
from cdxmill.stages.window import SummedReads, chunk_of
from cdxmill.stages.zipnum.check_index import MOST_FAULTS
from cdxmill.storage.reading import open_unchanged
from cdxmill.storage.scratch import Scratch

_AGAIN = "write it again with cdxmill recompress --replace"
_WRONG = "compare it with another copy; use --any-digest if the crawler wrote wrong digests"


class PairTask(NamedTuple):
    """Two archives to compare. `scratch` is a directory for temporary files. With `any_digest`, records may have wrong ones."""

    old: Input
    new: Input
    scratch: Path
    max_window: int | None
    any_digest: bool


class ComparedPair(NamedTuple):
    """What two archives have in common: records, and their bytes; the sizes of both, and whether there is a proof.

    `different` counts records that only one has, `carried` damaged parts that the new one has as they were. `wrong_digests` of `digests` are not those of their records.
    """

    records: int
    content: int
    old: int
    new: int
    is_proven: bool
    digests: int
    wrong_digests: int
    different: int
    carried: int
    findings: list[Failure]


class _Side:
    """One of the two archives while it is read."""

    def __init__(self, task: PairTask, archive: Input, stack: ExitStack) -> None:
        self._archive = archive
        self.reads = SummedReads(counted(stack.enter_context(open_unchanged(archive.location))))
        self._task = task
        self.digests = self.wrong_digests = self.found = 0
        self.causes: list[Failure] = []
        self.findings: list[Failure] = []
        self.carried: list[DamagedPart] = []
        self._damage = Findings()

    @property
    def name(self) -> str:
        """The name of the archive in index lines."""
        return self._archive.filename

    def parts(self, old: _Side | None = None) -> Iterator[RecordSum]:
        """The records. What is damaged, and wrong digests, are findings.

        Those that have damaged parts of the `old` archive are compared with these, and are not returned.
        """
        chunk = chunk_of(self._archive.location.is_remote)
        scratch = Scratch(self._task.scratch / ("new" if self._archive is self._task.new else "old"))
        found = read_contents(self.reads, scratch, chunk, self._task.max_window)
        contents = without_notes(found, lambda note: None)  # frames that are no records are not compared
        if old is not None:
            contents = self._without_carried(contents, old)
        return parts_of(contents, self._damaged, self._seen)

    def add(self, offset: int | None, reason: str, hint: str = "", *, is_first: bool = False) -> None:
        """Add a finding: to the causes, which are reported first, or to the others. Only some are kept, and all counted."""
        self.found += 1
        findings = self.causes if is_first else self.findings
        if len(findings) < MOST_FAULTS:
            findings.append(Failure(self._archive.label, offset, reason, hint))

    def _without_carried(
        self, contents: Iterable[Content | Damage], old: _Side
    ) -> Iterator[Content | Damage]:
        for item in contents:
            if isinstance(item, Damage):
                yield item
                continue
            if is_description(item, old.name):
                continue
            part = part_in(item)
            if part is None or not has_part(item, part, old.reads):
                yield item
            else:
                self.carried.append(part)

    def sum(self) -> Sum:
        """The size and the SHA-256 of the file. Its rest is read."""
        return Sum(sha256=self.reads.sha256(), size=self.reads.size)

    def _damaged(self, damage: Damage) -> None:
        self._damage.add(damage)

    def report_damage(self, carried: Sequence[DamagedPart]) -> None:
        """Add damage to the findings, but not that of parts which were carried over."""
        starts = [part.offset for part in carried]  # in order
        for damage in self._damage.damage:
            number = bisect_right(starts, damage.offset) - 1
            if number < 0 or damage.offset >= starts[number] + carried[number].length:
                self.add(damage.offset, damage.reason, damage.hint, is_first=True)

    def _seen(self, content: Content, seen: SeenDigests) -> None:
        self.digests += seen.checked
        if (
            seen.wrong and self._archive is self._task.old
        ):  # the same record in the new archive has the same one
            self.wrong_digests += 1
            if not self._task.any_digest:
                self.add(content.offset, seen.wrong, _WRONG)

    def finish(self) -> Iterator[Failure]:
        """The findings."""
        shown = [*self.causes, *self.findings]
        yield from shown
        if self.found > len(shown):
            yield Failure(self._archive.label, None, f"{self.found - len(shown)} more errors")


def compare_pair(task: PairTask) -> ComparedPair:
    """Read two archives to their ends and compare them. An archive that cannot be read is a finding."""
    try:
        return _compare(task)
    except InputError as error:
        return ComparedPair(0, 0, 0, 0, False, 0, 0, 0, 0, [Failure.from_error(error)])


def _compare(task: PairTask) -> ComparedPair:
    records = content = different = 0
    with ExitStack() as stack:
        old, new = _Side(task, task.old, stack), _Side(task, task.new, stack)
        for item in differences(old.parts(), new.parts(old)):
            if isinstance(item, OtherRecords):
                different += max(len(item.old), len(item.new))
                _report(item, task, new)
            else:
                records += 1
                content += item
        for side in (old, new):
            side.report_damage(new.carried if side is old else ())
        sums = old.sum(), new.sum()
        proof = read_proof(proof_beside(task.new.location))
        is_proven = proof is not None and proof.old_name == task.old.filename
        if proof is not None:
            _compare_with_proof(proof, sums, old if is_proven else None, new)
    return ComparedPair(
        records=records,
        content=content,
        old=sums[0].size,
        new=sums[1].size,
        is_proven=is_proven,
        digests=old.digests,
        wrong_digests=old.wrong_digests,
        different=different,
        carried=len(new.carried),
        findings=[*old.finish(), *new.finish()],
    )


def _report(found: OtherRecords, task: PairTask, new: _Side) -> None:
    """Add a difference to the findings about the new archive."""
    ours, theirs = found
    both = min(len(ours), len(theirs))
    for old_part, new_part in zip(ours[:both], theirs[:both], strict=True):
        where = f"record {old_part.number} of {task.old.label}, at offset {old_part.offset}"
        new.add(new_part.offset, f"record {new_part.number} is not the same as {where}", _AGAIN)
    for part in ours[both:]:
        new.add(
            None,
            f"lacks record {part.number} of {task.old.label}, at offset {part.offset} ({part.size} bytes)",
            _AGAIN,
        )
    for part in theirs[both:]:
        new.add(part.offset, f"record {part.number} is not in {task.old.label} ({part.size} bytes)", _AGAIN)


def _compare_with_proof(proof: Proof, sums: tuple[Sum, Sum], old: _Side | None, new: _Side) -> None:
    """Compare whole files, also bytes that belong to no record, with what was written down.

    `old` is None if the proof is of another old archive: the new one may have been written again.
    """
    for side, is_now, was in ((old, sums[0], proof.old_file), (new, sums[1], proof.new_file)):
        if side is not None and is_now != was:
            sizes = f"{is_now.size} bytes and the SHA-256 {is_now.sha256}"
            side.add(None, f"has {sizes}, but the proof has {was.size} bytes and {was.sha256}")
