"""Compress the records of one file at every level, and measure size and time of each way.

    python -m bench.levels [--quick] [--records N] [--runs N] [--markdown FILE] [--plot FILE]

Ways: gzip by zlib and libdeflate, zstd without and with a dictionary, and with a dictionary and all records of a capture
in one frame. For a WARC, and for the WAT and the WET of it. The dictionary was trained on another file. All ways run once before any runs twice.
CPU seconds of this process, medians of the runs.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

import deflate
import zstandard
from isal import isal_zlib

from bench import level_plot, machine
from bench.corpora import QUICK_PAGES, ensure
from bench.extracted import wat_records, wet_records
from bench.members import walk
from bench.report import Passage
from bench.run import write_markdown
from bench.running import show
from cdxmill.formats.archives.zstd_dictionary import train
from cdxmill.tasks.record_sampling import MAX_SAMPLE

KINDS = ("WARC", "WAT", "WET")
GZIP = "gzip 6 (zlib)"
HEADER = ["way", "size", "compress", "s", "decompress", "s", "random record, us"]
_LOOKS = 2000
_SLOW = 15
"""Levels from this one on are measured once."""
_OF_ALL = "all"
DICTIONARY = 1 << 20
ON_PAGE = (1, 3, 6, 8, 9, 12, 15, 19)
"""The levels that a page has, for WARC files. All levels are printed and drawn."""


class Way(NamedTuple):
    """How records are compressed: `pack` makes a member or frame, `unpack` reads one."""

    name: str
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes | bytearray]
    is_grouped: bool = False
    runs: int = 99


class Run(NamedTuple):
    """Bytes, CPU seconds to compress and to decompress everything, CPU seconds per random record."""

    size: int
    packing: float
    unpacking: float
    random: float


def gzip_ways() -> Iterator[Way]:
    def isal(data: bytes) -> bytes:
        return isal_zlib.decompress(data, 31)

    for level in (6, 9):
        yield Way(f"gzip {level} (zlib)", lambda data, level=level: zlib.compress(data, level, 31),  # type: ignore[misc]
                  lambda data: zlib.decompress(data, 31))  # fmt: skip
    yield Way("gzip 6 (zlib), read by isal", lambda data: zlib.compress(data, 6, 31), isal)
    for level in (6, 9, 12):
        yield Way(f"gzip {level} (libdeflate)", lambda data, level=level: bytes(deflate.gzip_compress(data, level)),  # type: ignore[misc]
                  lambda data: deflate.gzip_decompress(data, int.from_bytes(data[-4:], "little")))  # fmt: skip


def zstd_way(name: str, level: int, dictionary: bytes | None, is_grouped: bool = False) -> Way:
    held = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    if held is not None:
        held.precompute_compress(level)
    packer = zstandard.ZstdCompressor(level, dict_data=held, write_checksum=True)
    inflater = zstandard.ZstdDecompressor(
        dict_data=zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    )
    return Way(
        f"zstd {level}{name}", packer.compress, inflater.decompress, is_grouped, 1 if level >= _SLOW else 99
    )


def all_ways(dictionary: bytes, levels: Sequence[int], has_groups: bool) -> list[Way]:
    ways = list(gzip_ways())
    ways += [zstd_way("", level, None) for level in levels]
    ways += [zstd_way(" + dictionary", level, dictionary) for level in levels]
    if has_groups:
        ways += [zstd_way(" + dictionary, grouped", level, dictionary, True) for level in levels]
    return ways


def measure(way: Way, records: list[bytes], groups: list[bytes]) -> Run:
    pieces = groups if way.is_grouped else records
    way.unpack(way.pack(pieces[0]))  # what is prepared once
    start = time.process_time()
    packed = [way.pack(piece) for piece in pieces]
    middle = time.process_time()
    for one in packed:
        way.unpack(one)
    end = time.process_time()
    chosen = Random(1).choices(packed, k=_LOOKS)
    looking = time.process_time()
    for one in chosen:
        way.unpack(one)
    looked = time.process_time() - looking
    return Run(sum(map(len, packed)), middle - start, end - middle, looked / _LOOKS)


def in_groups(records: list[bytes]) -> list[bytes]:
    """The first record alone, then the request, response and metadata of each capture as one piece."""
    return [records[0], *(b"".join(records[start : start + 3]) for start in range(1, len(records), 3))]


def records_of(path: Path, count: int) -> list[bytes]:
    return [record for _, _, record in islice(walk(memoryview(path.read_bytes())), count)]


def as_kind(kind: str, records: list[bytes], name: str) -> list[bytes]:
    if kind == "WARC":
        return records
    return list((wat_records if kind == "WAT" else wet_records)(records, name))


def make_rows(measured: dict[str, list[Run]]) -> list[list[str]]:
    def middle(runs: list[Run]) -> Run:
        return Run(*(median(values) for values in zip(*runs, strict=True)))

    base = middle(measured[GZIP])
    rows = [HEADER]
    for name, runs in measured.items():
        run = middle(runs)
        rows.append([name, f"{run.size / base.size:.3f}", f"{run.packing / base.packing:.2f}", f"{run.packing:.3f}",
                     f"{run.unpacking / base.unpacking:.2f}", f"{run.unpacking:.3f}", f"{run.random * 1e6:.0f}"])  # fmt: skip
    return rows


def for_page(passages: list[Passage]) -> list[Passage]:
    """The comparisons of dictionaries, and some levels for WARC files."""
    number = next(number for number, one in enumerate(passages) if one.title == "WARC")
    warc = passages[number]
    rows = [row for row in warc.rows[1:] if int(row[0].split(" ")[1]) in ON_PAGE]
    return [*passages[:number], warc._replace(rows=[warc.rows[0], *rows])]


def measure_kind(kind: str, ways: list[Way], records: list[bytes], runs: int) -> dict[str, list[Run]]:
    groups = in_groups(records)
    measured: dict[str, list[Run]] = {way.name: [] for way in ways}
    for number in range(runs):
        for way in ways:
            if number < way.runs:
                show(f"{kind} {number + 1}/{runs} {way.name}")
                measured[way.name].append(measure(way, records, groups))
    show("")
    return measured


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="tiny inputs and few levels, to test the benchmark")
    add("--records", type=int, default=1501, metavar="N", help="records of the WARC (default 1501)")
    add("--runs", type=int, default=3, metavar="N", help="alternating runs below level 15 (default 3)")
    add("--markdown", type=Path, metavar="FILE", help="replace the tables of a page")
    add("--plot", type=Path, metavar="FILE", help="draw size and time of each way as SVG")
    return parser.parse_args()


def samples_of(records: Sequence[bytes]) -> list[bytes]:
    """All records in a random order, cut as cdxmill cuts them."""
    chosen = [record[:MAX_SAMPLE] for record in records]
    Random(1).shuffle(chosen)
    return chosen


def dictionaries(samples: dict[str, list[bytes]]) -> dict[str, bytes]:
    """A dictionary for each kind of file, and one for all three, each of 1 MiB or of an eighth of the samples."""
    every = [one for found in zip(*samples.values(), strict=False) for one in found]
    found = {}
    for kind, chosen in [*samples.items(), (_OF_ALL, every)]:
        show(f"training {kind}")
        found[kind] = train(chosen, min(DICTIONARY, sum(map(len, chosen)) // 8), 6)
    return found


def compare(measured: dict[str, list[bytes]], held: dict[str, bytes]) -> Passage:
    """What each dictionary makes of each kind of file, at level 6."""
    rows = [["kind of file", "gzip 6", "no dictionary", *(f"dictionary of {name}" for name in held)]]
    for kind, records in measured.items():
        base = sum(len(zlib.compress(record, 6, 31)) for record in records)
        ways = [zstd_way("", 6, None), *(zstd_way("", 6, dictionary) for dictionary in held.values())]
        sizes = [sum(len(way.pack(record)) for record in records) / base for way in ways]
        rows.append([kind, "1", *(f"{size:.3f}" for size in sizes)])
    facts = "Sizes as ratios to gzip 6, zstd level 6. `all` is trained on a third of each kind."
    return Passage("A dictionary for each kind of file", facts, rows)


def compare_sizes(records: list[bytes], samples: list[bytes]) -> Passage:
    """What smaller dictionaries make of WARC files, at level 6."""
    base = sum(len(zlib.compress(record, 6, 31)) for record in records)
    rows = [["dictionary", "size"]]
    for size in (DICTIONARY // 4, DICTIONARY // 2, DICTIONARY):
        show(f"training {size >> 10} KiB")
        dictionary = train(samples, min(size, sum(map(len, samples)) // 8), 6)
        pack = zstd_way("", 6, dictionary).pack
        packed = sum(len(pack(record)) for record in records)
        rows.append([f"{size >> 10} KiB", f"{packed / base:.3f}"])
    return Passage("The size of the dictionary", "WARC files, zstd level 6. Sizes as ratios to gzip 6.", rows)


def series_of(measured: dict[str, list[Run]]) -> level_plot.Series:
    base = measured[GZIP]
    found: level_plot.Series = {}
    for name, runs in measured.items():
        program, level, *rest = name.split(" ", 2)
        label = program if program == "gzip" else " ".join([program, *rest])
        time = median(run.packing for run in runs) / median(run.packing for run in base)
        if "isal" not in name:
            found.setdefault(label, []).append(
                level_plot.Point(int(level), time, runs[0].size / base[0].size)
            )
    return found


def main() -> None:
    options = parse_options()
    files = ensure("web", options.quick)
    count = options.records if not options.quick else 3 * QUICK_PAGES + 1
    test, other = (
        records_of(path, limit) for path, limit in zip(files, (count, max(count, 12_000)), strict=True)
    )
    measured = {kind: as_kind(kind, test, files[0].name) for kind in KINDS}
    held = dictionaries({kind: samples_of(as_kind(kind, other, files[1].name)) for kind in KINDS})
    levels = [1, 3] if options.quick else range(1, 23)
    head = [*machine.describe(), f"Medians of {options.runs} alternating runs; levels from {_SLOW} on once."]
    print("\n".join(head), flush=True)
    passages, panels = [], {}
    for kind, records in measured.items():
        found = measure_kind(kind, all_ways(held[kind], levels, kind != "WET"), records, options.runs)
        plain = sum(map(len, records))
        facts = (f"{len(records):,} records of {plain / len(records):,.0f} bytes; a dictionary of {len(held[kind]) >> 10} KiB"
                 " that was trained on another file. Columns without a unit are ratios to the first row.")  # fmt: skip
        passages.append(Passage(kind, facts, make_rows(found)))
        panels[kind] = series_of(found)
        print(passages[-1].as_text(), flush=True)
    passages[:0] = [compare(measured, held), compare_sizes(test, samples_of(other))]
    print("\n".join(one.as_text() for one in passages[:2]), flush=True)
    if options.markdown:
        lines = [f"Measured on {date.today()}.", "\n".join(f"- {line}" for line in head)]
        write_markdown(
            options.markdown, "\n\n".join([*lines, *(one.as_markdown() for one in for_page(passages))])
        )
    if options.plot:
        options.plot.write_text(level_plot.draw(panels))


if __name__ == "__main__":
    main()
