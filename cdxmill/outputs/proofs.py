"""The proofs beside the archives that `recompress` writes: where they are, and whether one is of the archive beside it."""

from __future__ import annotations

from cdxmill.errors import InputError
from cdxmill.formats.own_records import PROOF
from cdxmill.formats.proof import Proof, parse_proof
from cdxmill.storage.location import Location


def proof_beside(archive: Location) -> Location:
    """The proof of a new archive.

    >>> str(proof_beside(Location("zst/a.warc.zst")))
    'zst/a.warc.zst.proof.json'
    """
    return archive.with_name(archive.name + PROOF)


def read_proof(place: Location) -> Proof | None:
    """The proof in a file. None if there is no file. Raises InputError if it cannot be read, or is something else."""
    if not place.exists():
        return None
    try:
        return parse_proof(place.read_bytes())
    except ValueError as error:
        raise InputError(place.text, str(error), "move it away") from None


def is_proof(place: Location) -> bool:
    """Whether a file is a proof. Raises InputError if the storage does not answer."""
    try:
        return parse_proof(place.read_bytes()) is not None
    except ValueError:
        return False
