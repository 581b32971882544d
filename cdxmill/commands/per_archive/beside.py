"""What stands beside an archive that `recompress` writes, in this run or in an earlier one: proof, index, table of offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cdxmill.commands.per_archive.recompress_one import INDEX, RecompressOptions
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import Input
from cdxmill.outputs.names import apart, output_name
from cdxmill.outputs.offset_tables import is_table_of, table_beside
from cdxmill.outputs.proofs import is_proof, proof_beside, read_proof
from cdxmill.outputs.record import OutputRecord, recorded
from cdxmill.outputs.side_files import retired_of
from cdxmill.storage.location import Location

_KEEP = (
    "{}: is not {} of {} that recompress writes; use --replace to write it again, or another output directory"
)


class NewBeside(NamedTuple):
    """A new archive, and what may stand beside it: its proof, a table of offsets, and an index below the output directory.

    `retired` has those of them that a killed run has to write again.
    """

    new: Input
    index_name: str
    index_file: Location
    table: Location
    proof: Location
    retired: set[Location]

    def to_write(self, old: str, options: RecompressOptions) -> tuple[Location | None, Location | None]:
        """The index and the table, each if it is wanted or that of an earlier archive would become wrong.

        The archive had the name `old`.
        """
        has_index = options.index or self.index_file in self.retired
        has_index = has_index or (self.index_file.exists() and self._has_own_index())
        has_table = options.offsets or self.table in self.retired
        has_table = has_table or (self.table.exists() and is_table_of(self.table, old, self.new.filename))
        return self.index_file if has_index else None, self.table if has_table else None

    def check(self, old: str, options: RecompressOptions, record: OutputRecord) -> None:
        """Raise UsageError if what would be written exists, and is not of the archive, which had the name `old`."""
        is_wrong = self.index_file.exists() and (
            not self._is_of_this_place(record) if self._has_own_index() else options.index
        )
        if is_wrong:
            raise UsageError(_KEEP.format(self.index_file, "an index", self.new.filename))
        if self.table.exists() and not is_table_of(self.table, old, self.new.filename):
            raise UsageError(_KEEP.format(self.table, "a table of offsets", self.new.filename))

        if self.proof.exists() and not is_proof(self.proof):
            raise UsageError(_KEEP.format(self.proof, "a proof", self.new.filename))

    def is_proven(self, record: OutputRecord) -> bool:
        """Whether the proof is of the archive beside it, by its SHA-256."""
        row = record.made_from(self.new.location)
        try:
            proof = read_proof(self.proof)
        except InputError:
            return False
        return row is not None and proof is not None and proof.new_file.sha256 == row.sha256

    def _is_of_this_place(self, record: OutputRecord) -> bool:
        """Whether the index is of the archive that stands where the new one will be. The old one may have the same name."""
        if self.index_file in self.retired:
            return True
        row = record.made_from(self.index_file)
        return row.archive == recorded(self.new.location) if row else self.new.location.exists()

    def _has_own_index(self) -> bool:
        return INDEX.is_own(self.index_file, self.new)


def all_beside(
    names: Mapping[Input, str], outputs: Mapping[Input, Location], place: Location
) -> dict[Input, NewBeside]:
    """What may stand beside each output. An index has the name that `index` gives."""
    indexes = apart(
        {one: output_name(name) for one, name in names.items()}, lambda one: f"{names[one]}.cdx.gz"
    )
    places = {
        one: (place / indexes[one], table_beside(new), proof_beside(new)) for one, new in outputs.items()
    }
    retired = retired_of(side for sides in places.values() for side in sides)
    return {
        one: NewBeside(
            Input(new, names[one], new.text), indexes[one], *places[one], retired & set(places[one])
        )
        for one, new in outputs.items()
    }
