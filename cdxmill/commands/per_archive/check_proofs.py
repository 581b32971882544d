"""Archives that an earlier run of `recompress` wrote are up to date if they and the old ones have the SHA-256 of their proofs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdxmill.errors import UsageError
from cdxmill.inputs.named import Input
from cdxmill.outputs.proofs import proof_beside, read_proof
from cdxmill.running.processes import counted, run_tasks
from cdxmill.running.progress import Progress
from cdxmill.stages.window import SummedReads
from cdxmill.storage.location import Location, total_size

_REPLACE = "use --update to keep it, --replace to write it again, or another output directory"


class ProofTask(NamedTuple):
    """An archive, and the new one that is kept. A remote file has an ETag or a time, which were compared already."""

    old: Input
    new: Location


def check_proofs(tasks: Sequence[ProofTask], processes: int, quiet: bool) -> None:
    """Read the local files of all pairs. Raises UsageError if one has another SHA-256 than its proof, InputError."""
    places = [place for task in tasks for place in (task.old.location, task.new) if not place.is_remote]
    with Progress("checking what exists", len(tasks), total_size(places), quiet) as progress:
        for _, wrong in run_tasks(_wrong, tasks, processes, progress.tick):
            if wrong:
                raise UsageError(f"{wrong}; {_REPLACE}")
            progress.advance()


def _wrong(task: ProofTask) -> str:
    """What is wrong; "" if nothing is. Raises InputError if a file cannot be read."""
    proof = read_proof(proof_beside(task.new))
    if proof is None:
        return f"{task.new}: has no proof"
    for place, wanted in ((task.new, proof.new_file), (task.old.location, proof.old_file)):
        if not place.is_remote and _sha256(place) != wanted.sha256:
            return f"{place}: does not have the SHA-256 of {proof_beside(task.new)}"
    return ""


def _sha256(place: Location) -> str:
    with place.open_ranges() as read_at:
        return SummedReads(counted(read_at)).sha256()
