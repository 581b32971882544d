"""What `train-dictionary` and `recompress --estimate` promise, and what `recompress` then does, on five kinds of collections.

    python -m bench.estimates [--quick] [--markdown FILE]

Each collection has 8 archives. A dictionary is trained on 4 of them; the figures are of the other 4. The estimate packs a
tenth of the records.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bench import machine
from bench.extracted import wat_records
from bench.members import walk
from bench.report import Passage
from bench.run import write_markdown
from bench.running import show
from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.commands.per_archive import estimate as estimating
from cdxmill.commands.per_archive.ask import estimate_asked, recompress_asked
from cdxmill.commands.train_dictionary import train_dictionary
from cdxmill.inputs.archives import find_archives
from cdxmill.options.archives import ArchiveInputs
from cdxmill.options.packing import Recompressing, Training
from cdxmill.running.failures import Failures

ARCHIVES = 8
TENTH = 10
HEADER = ["collection", "before, MB", "promised by train-dictionary", "promised by --estimate", "achieved", "with a dictionary"]  # fmt: skip


def media(rng: Random, mime: bytes, size: int) -> bytes:
    """A member with an image or video: bytes that cannot be compressed, with a header that can."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n\r\n%b%b" % (
        mime,
        b"metadata " * 50,
        rng.randbytes(size),
    )
    head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.b/%d\r\n" % rng.getrandbits(40)
    date_and_size = b"WARC-Date: 2024-01-02T03:04:05Z\r\nContent-Length: %d\r\n\r\n" % len(block)
    return gzip.compress(head + date_and_size + block + b"\r\n\r\n", 6)


def images(rng: Random, number: int) -> Iterator[bytes]:
    """Many images of all sizes and a few videos."""
    for _ in range(number):
        yield media(rng, b"image/jpeg", int(rng.lognormvariate(10, 1)))
    for _ in range(number // 40):
        yield media(rng, b"video/mp4", int(rng.lognormvariate(14.5, 0.8)))


def pages(seed: int, number: int) -> list[bytes]:
    return list(make_records(WarcRecipe(seed, number, 12_000), f"{seed}.warc.gz"))


def wat(seed: int, number: int) -> list[bytes]:
    data = b"".join(pages(seed, number))
    records = [record for _, _, record in walk(memoryview(data))]
    return [gzip.compress(record, 6) for record in wat_records(records, f"{seed}.warc.gz")]


def collection(name: str, seed: int, size: int) -> bytes:
    rng = Random(seed)
    if name == "pages":
        members = pages(seed, size)
    elif name == "WAT files":
        members = wat(seed, size)
    elif name == "images and videos":
        members = list(images(rng, size))
    elif name == "small archives":
        members = pages(seed, max(size // 50, 3))
    else:
        members = pages(seed, size // 2 if seed % 2 else size // 8) + list(images(rng, size // 4))
    return b"".join(members)


COLLECTIONS = ("pages", "WAT files", "images and videos", "mixed", "small archives")


def measure(name: str, directory: Path, size: int) -> list[str]:
    for number in range(ARCHIVES):
        show(f"{name} {number}")
        (directory / f"{number}.warc.gz").write_bytes(collection(name, number, size))
    seen, others = (
        [directory / f"{number}.warc.gz" for number in numbers] for numbers in (range(4), range(4, 8))
    )
    failures = Failures(printed=False)
    training = Training(seen, output=directory / "d", size=256)
    trained = train_dictionary(find_archives(ArchiveInputs(seen), failures), training, failures)
    before = sum(path.stat().st_size for path in others)
    estimating.PACKED = before // TENTH
    asked = Recompressing(others, output=directory / "z", dictionary=directory / "d")
    promised = estimate_asked(asked, failures)
    done = recompress_asked(asked, failures)
    ratio = trained.promise.ratio if trained.promise else 1
    return [
        name,
        f"{before / 1e6:.1f}",
        f"{1 - ratio:.1%}",
        f"{1 - promised.after / promised.before:.1%}",
        f"{1 - done.after / done.before:.1%}",
        f"{sum(path.read_bytes()[:1] == b']' for path in (directory / 'z').glob('*.zst'))} of {len(others)}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny inputs, to test the benchmark")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="replace the table of a page")
    options = parser.parse_args()
    rows = [HEADER]
    for name in COLLECTIONS:
        with TemporaryDirectory() as directory:
            rows.append(measure(name, Path(directory), 60 if options.quick else 1500))
    show("")
    facts = (
        "What is saved of 4 archives, with a dictionary of 256 KiB that was trained on 4 others. `train-dictionary` knows"
        " the others only. `--estimate` packed a tenth of the records."
    )
    passage = Passage("Promised and achieved", facts, rows)
    print(passage.as_text())
    if options.markdown:
        head = [f"Measured on {date.today()}.", "\n".join(f"- {line}" for line in machine.describe())]
        write_markdown(options.markdown, "\n\n".join([*head, passage.as_markdown()]))


if __name__ == "__main__":
    main()
