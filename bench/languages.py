"""How well languages are detected, and how much of a page's text is kept: the tables of bench/measured/languages.md.

    python -m bench.languages DIRECTORY [ARCHIVE...]      writes them into the page

DIRECTORY has the content of packages whose pages have a known language, for example

    for l in de en es fr it ja pt zh-cn; do apt-get download debian-reference-$l; done
    for f in *.deb; do dpkg-deb -x $f DIRECTORY; done

The pages are DIRECTORY/**/*.LANGUAGE.html. Archives are compared with what their pages declare (`<html lang>`).
Other detectors are optional: pip install py3langid lingua-language-detector langdetect beautifulsoup4.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import Passage
from bench.run import write_markdown
from cdxmill.capture import Record
from cdxmill.stages.counting.counters import BadRecord, NotWanted, html_of
from cdxmill.stages.pages.decode_text import detect_language
from cdxmill.stages.pages.parse_page import Page
from cdxmill.stages.records.read_records import read_records

LENGTHS = (100, 300, 1000, 10_000)
EXCERPTS = 5
SHORT = 100
"""Characters of the shortest text whose declared language is compared."""
THRESHOLDS = (0.0, 0.2, 0.3, 0.4, 0.5, 0.6)
_HIDDEN = ["script", "style", "noscript", "template", "textarea", "iframe"]
_NAME = re.compile(r"\.([a-z]{2})(-[a-z]+)?\.html$")
_DECLARED = re.compile(rb"<html\b[^>]*?\slang=[\"']?([a-z]{2})\b", re.I)
_WORD = re.compile(r"\w+")


class Found(NamedTuple):
    """A code of two letters, and a confidence from 0 to 1 if the detector has one."""

    code: str
    confidence: float = 1.0


class Excerpt(NamedTuple):
    language: str
    text: str


@cache
def lingua() -> Any:
    from lingua import LanguageDetectorBuilder  # type: ignore[import-not-found, unused-ignore]

    return LanguageDetectorBuilder.from_all_languages().with_low_accuracy_mode().build()


def by_lingua(text: str) -> Found:
    found = lingua().detect_language_of(text)
    return Found(found.iso_code_639_1.name.lower() if found else "")


def by_py3langid(text: str) -> Found:
    import py3langid  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return Found(py3langid.classify(text)[0])


def by_langdetect(text: str) -> Found:
    from langdetect import DetectorFactory, LangDetectException, detect  # type: ignore[import-untyped, unused-ignore]

    DetectorFactory.seed = 0
    try:
        return Found(str(detect(text))[:2])
    except LangDetectException:
        return Found("")


def by_resiliparse(text: str) -> Found:
    from resiliparse.parse.lang import detect_fast

    return Found(detect_fast(text)[0])


DETECTORS: dict[str, Callable[[str], Found]] = {
    "cdxmill: script, then resiliparse": lambda text: Found(*detect_language(text)),
    "resiliparse detect_fast": by_resiliparse,
    "py3langid": by_py3langid,
    "lingua, low accuracy": by_lingua,
    "langdetect": by_langdetect,
}
SLOW = {"langdetect": 4, "lingua, low accuracy": 2}
"""Detectors that are tried with every n-th excerpt only."""


def pages_in(directory: Path) -> Iterator[tuple[str, bytes]]:
    """The pages of known language in a directory."""
    for path in sorted(directory.rglob("*.html")):
        if found := _NAME.search(path.name):
            yield found[1], path.read_bytes()


def pages_of(archives: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """The pages of archives that declare a language."""
    for path in archives:
        data = path.read_bytes()
        for item in read_records(lambda at, size, data=data: data[at : at + size]):  # type: ignore[misc]
            try:
                html = html_of(item).data if isinstance(item, Record) else b""
            except (BadRecord, NotWanted):
                continue
            if found := _DECLARED.search(html[:4096]):
                yield found[1].decode().lower(), html


def excerpts(pages: Iterable[tuple[str, str]], length: int) -> list[Excerpt]:
    """Parts of the texts, evenly distributed; whole texts have LENGTHS[-1] characters at most."""
    found = []
    for language, text in pages:
        parts = max(1, min(EXCERPTS, len(text) // length))
        step = len(text) // parts
        found += [Excerpt(language, text[n * step : n * step + length]) for n in range(parts)]
    return [excerpt for excerpt in found if excerpt.text.strip()]


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def accuracy(
    title: str, texts: list[tuple[str, str]], lengths: tuple[int, ...], names: Iterable[str]
) -> Passage:
    """Accuracy by length, and time for the longest texts."""
    header = ["detector", *(f"{length} characters" for length in lengths), f"ms per {lengths[-1]} characters"]
    rows = []
    for name in names:
        row, spent = [name], 0.0
        for length in lengths:
            some = excerpts(texts, length)[:: SLOW.get(name, 1)]
            DETECTORS[name]("Only to load the models.")
            start = time.process_time()
            right = sum(DETECTORS[name](text).code == language for language, text in some)
            spent = (time.process_time() - start) / len(some) * 1000
            row.append(share(right, len(some)))
        rows.append([*row, f"{spent:.2f}"])
    return Passage(title, f"{len(texts)} pages, up to {EXCERPTS} excerpts of each.", [header, *rows])


def thresholds(title: str, texts: list[tuple[str, str]], lengths: tuple[int, ...]) -> Passage:
    """For each least confidence: the share of the excerpts that pass, and how many of these are right."""
    header = ["least confidence"]
    found = {}
    for length in lengths:
        header += [f"{length} characters: pass", "right"]
        found[length] = [(lang, detect_language(text)) for lang, text in excerpts(texts, length)]
    rows = []
    for least in THRESHOLDS:
        row = [f"{least:.1f}"]
        for length in lengths:
            passed = [(lang, got) for lang, got in found[length] if got.code and got.confidence >= least]
            right = sum(lang == got.code for lang, got in passed)
            row += [share(len(passed), len(found[length])), share(right, len(passed))]
        rows.append(row)
    return Passage(title, f"{len(texts)} pages.", [header, *rows])


def by_language(texts: list[tuple[str, str]]) -> Passage:
    """Accuracy for each language."""
    rows = []
    for language in sorted({language for language, _ in texts}):
        own = [text for text in texts if text[0] == language]
        row = [language, str(len(own))]
        for length in LENGTHS:
            some = excerpts(own, length)
            row.append(share(sum(detect_language(text).code == language for _, text in some), len(some)))
        rows.append(row)
    header = ["language", "pages", *(f"{length} characters" for length in LENGTHS)]
    return Passage("Accuracy by language", "cdxmill.", [header, *rows])


def visible_words(html: bytes) -> Counter[str]:
    """The words between the tags, without scripts and the like, as BeautifulSoup finds them."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    for node in soup(_HIDDEN):
        node.decompose()
    body = soup.body or soup
    return Counter(_WORD.findall(body.get_text(" ")))


def resiliparse_text(html: bytes) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(Page("", html).html.decode("utf-8", "replace")))


def completeness(pages: dict[str, list[tuple[str, bytes]]]) -> Passage:
    """The share of the visible words that a text has, and the share of its words that are visible."""
    ways: dict[str, Callable[[bytes], str]] = {
        "cdxmill": lambda html: Page("", html).text,
        "resiliparse extract_plain_text": resiliparse_text,
    }
    rows = []
    for name, some in pages.items():
        expected = [visible_words(html) for _, html in some]
        for way, text_of in ways.items():
            kept = total = extra = 0
            for wanted, (_, html) in zip(expected, some, strict=True):
                got = Counter(_WORD.findall(text_of(html)))
                kept += (wanted & got).total()
                extra += (got - wanted).total()
                total += wanted.total()
            rows.append([name, way, str(len(some)), share(kept, total), share(extra, total)])
    return Passage(
        "Completeness of the text",
        "Compared with the words that BeautifulSoup finds in the elements of the body.",
        [["pages", "text by", "number", "words kept", "words added"], *rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, metavar="DIRECTORY")
    parser.add_argument("archives", type=Path, nargs="*", metavar="ARCHIVE")
    parser.add_argument("--markdown", type=Path, default="bench/measured/languages.md", metavar="PAGE")
    options = parser.parse_args()
    known = list(pages_in(options.directory))
    texts = [(language, Page("", html).text) for language, html in known]
    pages = {"of known language": known}
    passages = [
        accuracy("Accuracy", texts, LENGTHS, DETECTORS),
        by_language(texts),
        thresholds("Confidence", texts, (100, 1000, 10_000)),
    ]
    if options.archives:
        declared = list(dict.fromkeys(pages_of(sorted(options.archives))))
        others = [
            (language, text) for language, html in declared if len(text := Page("", html).text) >= SHORT
        ]
        names = [name for name in DETECTORS if name not in SLOW]
        passages.append(accuracy("Pages of archives, by what they declare", others, LENGTHS[-1:], names))
        pages["of archives"] = declared
    passages.append(completeness(pages))
    write_markdown(options.markdown, "\n\n".join(passage.as_markdown() for passage in passages))


if __name__ == "__main__":
    main()
