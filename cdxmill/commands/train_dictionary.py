"""train-dictionary: archives -> a zstd dictionary for archives like these, and what it saves."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.archives.zstd_dictionary import (
    MIN_SIZE,
    TooFewSamples,
    dictionary_frame,
    dictionary_id,
    train,
    with_own_id,
)
from cdxmill.inputs.named import Input
from cdxmill.messages import count, human_bytes
from cdxmill.options.packing import Training
from cdxmill.outputs.names import check_archives_stay, identity, output_file, writing
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate
from cdxmill.tasks.measuring import Measure, Promise, Savings, promise_of, sum_of
from cdxmill.tasks.record_sampling import Sample, choose_records, read_chosen, start_of
from cdxmill.version import __version__

SAMPLE = 128 << 20
"""Bytes of the sample, held-out records included. About three times as much memory is needed."""
_LEAST_SAMPLES = 20
_SHARE = 8
"""Bytes of samples that a byte of the dictionary needs at least. zstd advises 10 to 100."""
_KINDS = 50
_NOTED = 0.02
"""Share of the bytes that were not measured from which on that is said."""


class Trained(NamedTuple):
    """A new dictionary. `held_out` is the number of whole records that `saved` was measured with.

    The dictionary takes `frame` bytes of an archive. `promise` is None if no record was measured.
    """

    output: str
    number: int
    size: int
    trained_on: int
    held_out: int
    level: int
    by_file: bool
    saved: Savings
    promise: Promise | None
    frame: int

    def __str__(self) -> str:
        """Return the closing lines."""
        saved = self.saved
        where = "records of other files" if self.by_file else "other records of the file"
        return "\n".join(
            (
                f"{self.output}: {human_bytes(self.size)}, id {self.number}, trained on {count(self.trained_on, 'record')}",
                f"on {self.held_out} {where} ({human_bytes(saved.plain)}), zstd level {self.level}: {_share(saved.compressed, saved.gzip)}"
                f" of gzip -6; without a dictionary {_share(saved.without, saved.gzip)}",
                *self._promised(),
            )
        )

    def _promised(self) -> Iterator[str]:
        if self.promise is not None:
            ratio, unknown = self.promise
            how = "larger" if ratio > 1 else "smaller"
            yield (
                f"recompress would make archives like these about {abs(1 - ratio):.1%} {how};"
                f" the dictionary takes {human_bytes(self.frame)} of each one in which it pays"
            )
            if unknown >= _NOTED:
                yield (
                    f"{unknown:.0%} of their bytes are of kinds of records that were not measured, and count as no smaller;"
                    " more archives give a better estimate"
                )


def _share(size: int, whole: int) -> str:
    return f"{size / whole:.1%}" if whole else "-"


def train_dictionary(archives: Sequence[Input], options: Training, failures: Failures) -> Trained:
    """Train a dictionary and write it to the path or URL `options.output`, with its statistics beside it, in a .json file.

    Failures are reported. Raises UsageError if an output exists or is an input, or if the records are too few, StoppedError
    if an archive may be whole and cannot be read: the sample would be another one.
    """
    output = os.fspath(options.output)
    place, statistics = output_file(output, replace=options.replace), locate(f"{output}.json")
    check_archives_stay([place, statistics], archives)
    archives = _distinct(archives, failures)
    if not options.replace and not _is_statistics(statistics):
        statistics.check_absent()  # a run that was killed leaves them without their dictionary
    sample = choose_records(archives, SAMPLE, options.seed, options.processes, options.quiet, failures)
    for number, first in sample.same:
        failures.note(
            f"{archives[number].label}: note: not used, because it has the same records as {archives[first].label}"
        )
    training = read_chosen(archives, sample.training, start_of, failures)
    _check_reached(place, failures)
    dictionary = _train(training, options)
    trained_on, total = len(training), sum(map(len, training))
    del training
    held_out = read_chosen(archives, sample.held_out, Measure(dictionary, options.level), failures)
    trained = Trained(
        output,
        dictionary_id(dictionary),
        len(dictionary),
        trained_on,
        len(held_out),
        options.level,
        sample.by_file,
        sum_of(held_out),
        promise_of(held_out, sample.totals, frame := len(dictionary_frame(dictionary))),
        frame,
    )
    _check_reached(place, failures)
    with writing(place, replace=options.replace) as file:  # it gets its name after the statistics
        file.write(dictionary)
        found = _statistics(archives, sample, trained, total, options)
        own = {"id": trained.number, "size": trained.size, "sha256": hashlib.sha256(dictionary).hexdigest()}
        with statistics.write_named() as beside:
            beside.write(json.dumps({**own, **found}, indent=1).encode())
    return trained


def _check_reached(place: Location, failures: Failures) -> None:
    """Raise StoppedError if an archive may be whole, but could not be read."""
    if failures.outages:
        raise StoppedError(f"{place}: not written, because an archive could not be read; run it again")


def _distinct(archives: Sequence[Input], failures: Failures) -> list[Input]:
    """The archives without those that were named twice."""
    found = {identity(archive.location): archive for archive in reversed(archives)}
    if again := len(archives) - len(found):
        failures.note(f"note: {count(again, 'archive')} named twice")
    return [archive for archive in archives if found[identity(archive.location)] is archive]


def _is_statistics(file: Location) -> bool:
    """Whether a file was written by `train_dictionary`."""
    try:
        return {"id", "training", "held_out"} <= set(json.loads(file.read_bytes()))
    except (InputError, ValueError, TypeError):
        return False


def _train(samples: list[bytes], options: Training) -> bytes:
    total = sum(map(len, samples))
    size = min(options.size << 10, total // _SHARE)
    found = f"{count(len(samples), 'record')} with {human_bytes(total)}"
    if len(samples) < _LEAST_SAMPLES or size < MIN_SIZE:
        raise UsageError(f"too few records to train on ({found}); give more archives")
    try:
        dictionary = train(samples, size, options.level)
    except TooFewSamples as error:
        raise UsageError(f"no dictionary can be made of {found} ({error}); give more archives") from None
    return with_own_id(dictionary, options.id)


def _statistics(
    archives: Sequence[Input], sample: Sample, trained: Trained, total: int, options: Training
) -> dict[str, Any]:
    """What the file beside a dictionary says."""
    held = {one.archive for one in sample.held_out}
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for one in sample.training:
        kinds[one.kind] += 1
        sizes[one.kind] += one.size
    return {
        "level": options.level,
        "seed": options.seed,
        "cdxmill": __version__,
        "archives": len(archives),
        "training": {
            "records": trained.trained_on,
            "bytes": total,
            "kinds": {
                kind: {"records": kinds[kind], "bytes": size} for kind, size in sizes.most_common(_KINDS)
            },
        },
        "held_out": {
            "archives": [archives[number].filename for number in sorted(held)] if trained.by_file else [],
            "records": trained.held_out,
            **trained.saved._asdict(),
        },
    }
