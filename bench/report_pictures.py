"""The pictures in docs/report.md: reports of three made-up collections, as Chromium shows them.

    python -m bench.report_pictures [DIRECTORY]

A national collection has many sites over many years, an institution's has few, and Common Crawl's is a sample of some days. Equal runs
write equal lines; pictures depend on the fonts of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.browser import DARK, find_chromium, find_program, print_pdf, screenshot
from bench.cdx_corpus import make_lines
from bench.words import ascii_words
from cdxmill.cli.main import main
from cdxmill.formats.lines.surt import surt

IMAGES = Path(__file__).parents[1] / "docs/images"
LINES = 30_000
MIMES = (
    "text/html",
    "image/jpeg",
    "image/png",
    "application/pdf",
    "text/css",
    "application/javascript",
    "image/gif",
)


class Shape(NamedTuple):
    """What a collection is like. `hosts` are drawn by their `weights`; `mimes` by the order of MIMES."""

    hosts: Sequence[str]
    weights: Sequence[float]
    years: Sequence[int]
    mimes: Sequence[float]
    revisits: float


def national(rng: Random) -> list[str]:
    """Many sites of one country: a few are large, and each crawl is larger than the one before."""
    words = ascii_words()
    names = [
        f"www.{word}.{rng.choice(('is', 'is', 'is', 'is', 'com', 'net'))}" for word in rng.sample(words, 4000)
    ]
    years = [year for year in range(2004, 2025) for _ in range(year - 2002)]
    return made(
        rng,
        Shape(names, [1 / (rank + 12) for rank in range(len(names))], years, (40, 22, 9, 4, 5, 8, 12), 0.2),
    )


def institution(rng: Random) -> list[str]:
    """A university: few hosts, with many documents, in each year but two."""
    names = [
        f"{name}.university.example"
        for name in ("www", "library", "repository", "news", "physics", "law", "archive")
    ]
    years = [year for year in range(2012, 2025) if year not in (2015, 2020)]
    return made(rng, Shape(names, (30, 14, 25, 9, 4, 3, 1), years, (30, 12, 8, 34, 4, 5, 1), 0.45))


def common_crawl(rng: Random) -> list[str]:
    """A sample of some days: nearly all are pages."""
    return [line.decode() for line in make_lines(rng, LINES)]


def made(rng: Random, shape: Shape) -> list[str]:
    """Lines of a shape."""
    hosts = rng.choices(shape.hosts, shape.weights, k=LINES)
    return [
        one_line(rng, host, rng.choice(shape.years), rng.choices(MIMES, shape.mimes)[0], shape)
        for host in hosts
    ]


def one_line(rng: Random, host: str, year: int, mime: str, shape: Shape) -> str:
    url = f"http://{host}/{rng.choice(ascii_words())}/{rng.randrange(400)}"
    fields = {
        "url": url,
        "mime": "warc/revisit" if rng.random() < shape.revisits else mime,
        "status": str(rng.choices((200, 301, 302, 404, 403, 500), (85, 5, 3, 6, 1, 0.5))[0]),
        "digest": f"{rng.randrange(20_000):032d}",
        "length": str(int(rng.lognormvariate(9 + 2 * (mime == "application/pdf"), 1.5))),
        "offset": str(rng.randrange(10**9)),
        "filename": f"{year}-{rng.randrange(12):05d}.warc.gz",
    }
    time = f"{year}{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}{rng.randrange(24):02d}0000"
    return f"{surt(url.encode()).decode()} {time} {json.dumps(fields)}\n"


COLLECTIONS: dict[str, Callable[[Random], list[str]]] = {
    "national": national,
    "institution": institution,
    "common-crawl": common_crawl,
}
VIEWS = {"national": (1100, 1300), "institution": (420, 1500), "common-crawl": (1100, 1300)}
"""The size of each picture. That of the institution is as a phone shows it."""

MORE = {"common-crawl": [DARK]}
"""That one is in the dark theme."""

PRINTED = "national"
"""That one is also shown as its first page on paper."""


def take_pictures(directory: Path, work: Path) -> None:
    """Write report-NAME.png of each collection."""
    chromium = find_chromium()
    for number, (name, make) in enumerate(COLLECTIONS.items()):
        cdx, page = work / f"{name}.cdxj", work / f"{name}.html"
        cdx.write_text("".join(sorted(make(Random(number)))))
        if main(["report", "-q", str(cdx), "--html", str(page)]):
            raise RuntimeError(f"{cdx}: no report was made")
        text = page.read_text().replace(str(work) + "/", "")
        page.write_text(text)
        screenshot(
            chromium, page.as_uri(), directory / f"report-{name}.png", work, VIEWS[name], *MORE.get(name, ())
        )
        if name == PRINTED:
            print_pdf(chromium, page.as_uri(), work / "r.pdf", work)
            first_page(work / "r.pdf", directory / "report-print.png")


def first_page(pdf: Path, picture: Path) -> None:
    """The first page of a PDF as a picture."""
    to_ppm = find_program(("pdftoppm",), "poppler-utils")
    command = [to_ppm, "-png", "-singlefile", "-r", "80", str(pdf), str(picture.with_suffix(""))]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        take_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES, Path(scratch))
