"""Make the corpora under bench/corpora/, once. They have the same bytes on every machine.

python -m bench.corpora [--quick] [NAME...]      NAME: one of the sets below; by default all of them
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench import cdx_corpus, warc_corpus
from bench.cdx_corpus import CdxRecipe
from bench.warc_corpus import WarcRecipe

DIRECTORY = Path(__file__).parent / "corpora"
RECIPE_VERSION = 1  # raised when a recipe changes; files of another version are made again
PAGES = 16_143  # 48,430 records
LINES_A_FILE = 250_000
QUICK_PAGES = 60
QUICK_LINES = 2_000

Recipe = WarcRecipe | CdxRecipe


class Corpus(NamedTuple):
    """A set of files with the recipe of each."""

    name: str
    files: dict[str, Recipe]


def warc_sets(pages: int) -> list[Corpus]:
    large = WarcRecipe(21, max(1, pages * 27 // 100), 84_000)
    return [
        Corpus("web", {f"web-{n}.warc.gz": WarcRecipe(11 + n, pages) for n in range(2)}),
        Corpus("web-large", {"web-large-0.warc.gz": large}),
        Corpus("web-links", {"web-links-0.warc.gz": WarcRecipe(31, pages, 9_000, links=70)}),
        Corpus("web-plain", {"web-plain-0.warc.gz": WarcRecipe(11, pages, payload_digests=False)}),
    ]


def cdx_sets(lines: int) -> list[Corpus]:
    """A million lines are 4 files, which are also the first of the 10 and 30 million lines.

    `single`: the same lines, in files of one gzip member.
    """
    many: dict[str, Recipe] = {f"cdxj-{n:02d}.cdx.gz": CdxRecipe(1000 + n, lines) for n in range(120)}
    one: dict[str, Recipe] = {f"single-{n:02d}.cdx.gz": CdxRecipe(1000 + n, lines, True) for n in range(40)}
    sizes = [("cdxj", 1), ("cdxj", 10), ("cdxj", 30), ("single", 1), ("single", 10)]
    files = {"cdxj": list(many.items()), "single": list(one.items())}
    return [Corpus(f"{name}-{millions}", dict(files[name][: 4 * millions])) for name, millions in sizes]


def corpora(quick: bool) -> dict[str, Corpus]:
    sets = warc_sets(QUICK_PAGES if quick else PAGES) + cdx_sets(QUICK_LINES if quick else LINES_A_FILE)
    return {corpus.name: corpus for corpus in sets}


def directory(quick: bool) -> Path:
    return DIRECTORY / ("quick" if quick else "full")


def make_members(recipe: Recipe, name: str) -> Iterable[bytes]:
    if isinstance(recipe, WarcRecipe):
        return warc_corpus.make_records(recipe, name)
    return cdx_corpus.make_file(recipe)


def is_made(path: Path, recipe: Recipe) -> bool:
    note = path.with_name(path.name + ".json")
    return path.exists() and note.exists() and json.loads(note.read_text()) == describe(recipe)


def describe(recipe: Recipe) -> dict[str, Any]:
    return {"version": RECIPE_VERSION, **recipe._asdict()}


def make(path: Path, recipe: Recipe) -> Path:
    """Write a file unless it exists. It is complete or absent."""
    if is_made(path, recipe):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.writelines(make_members(recipe, path.name))
    temporary.replace(path)
    path.with_name(path.name + ".json").write_text(json.dumps(describe(recipe)))
    return path


def ensure(name: str, quick: bool = False) -> list[Path]:
    """The files of the set `name`; missing files are made."""
    files = corpora(quick)[name].files
    paths = [directory(quick) / file for file in files]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(make, paths, files.values()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(corpora(False)))
    parser.add_argument("--quick", action="store_true", help="tiny corpora, to test the benchmark")
    options = parser.parse_args()
    for name in options.names or corpora(options.quick):
        for path in ensure(name, options.quick):
            print(f"{path} {path.stat().st_size}")


if __name__ == "__main__":
    main()
