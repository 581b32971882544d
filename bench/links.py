"""How often links and hosts are those of pywhatwgurl, the URL Standard in Python alone: the table of docs/scan-quality.md.

python -m bench.links ARCHIVE...          needs: pip install pywhatwgurl

The elements of pages are those that html5lib finds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.pages import LARGEST, by_html5lib, records_of, scanned
from cdxmill.stages.pages.web_hosts import host_of
from cdxmill.stages.pages.web_urls import LinkBase

CASES = Path(__file__).parents[1] / "tests/stages/pages/web_url_cases.json"
NOWHERE = "about:blank"


def other_links(base: str, hrefs: list[str | None]) -> list[str]:
    """The links that pywhatwgurl finds, but for those that lead to the page itself."""
    from pywhatwgurl import URL  # type: ignore[import-not-found, unused-ignore]

    links = []
    for href in hrefs:
        try:
            link = str(URL(href or "", base).href).partition("#")[0]
        except Exception:  # it has several kinds of errors
            continue
        is_elsewhere = (href or "").strip("".join(map(chr, range(33))))[:1] not in ("", "#")
        if is_elsewhere and link.startswith(("http://", "https://")):
            links.append(link)
    return links


def main() -> None:
    cases = json.loads(CASES.read_text())["joins"]
    same = [
        LinkBase(base).absolute([href]) == other_links(base or NOWHERE, [href]) for href, base, _ in cases
    ]
    print(f"cases of the standard: {sum(same)} of {len(same)} have the same link")
    count = links = hosts = 0
    for record in map(scanned, records_of(list(map(Path, sys.argv[1:])))):
        page = record and record.page
        if not page or len(page.html) > LARGEST:
            continue
        node = page.tree.css_first("base[href]")
        base = (other_links(page.url, [node.attrs.get("href")]) if node else []) or [page.url]
        others = other_links(base[0], by_html5lib(page.html, "utf-8").hrefs)
        count, links = count + 1, links + (page.links == others)
        hosts += list(map(host_of, page.links)) == list(map(host_of, others))
    print(f"pages: {links} of {count} have the same links, {hosts} the same hosts of links")


if __name__ == "__main__":
    main()
