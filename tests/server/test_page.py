"""The page for people, in Chromium: what it shows after its script has run."""

from __future__ import annotations

import os
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from bench.browser import DARK, dump_dom, find_chromium, screenshot

from ..material.cdx_server import CdxServer, cdx_server
from .conftest import REPLAY, line

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

IANA = "http://www.iana.org/"
PICTURES = {
    "cdx-server": ((900, 640), ()),
    "cdx-server-dark": ((900, 640), (DARK,)),
    "cdx-server-narrow": ((500, 800), ()),
}


def test_it_shows_the_captures_with_links_to_the_replay(server: CdxServer, tmp_path: Path) -> None:
    html = dump_dom(find_chromium(), f"{server.site}/?url={quote(IANA, safe='')}", tmp_path)
    assert "3 captures of 1 URL" in html
    assert f'<a href="{REPLAY}20140126200624/{IANA}">2014-01-26 20:06:24</a>' in html
    assert re.search(r'aria-label="2014: 3 captures"', html)
    assert '<option value="many">many</option>' in html
    assert f'<a href="{server.site}/many/report">report of many</a>' in html
    assert f"curl '{server.site}/web/cdx?url={quote(IANA, safe='')}&amp;output=json'" in html
    assert f'href="{server.site}/web/cdx?url={quote(IANA, safe="")}&amp;output=csv"' in html


def test_it_says_what_is_wrong(server: CdxServer, tmp_path: Path) -> None:
    html = dump_dom(find_chromium(), f"{server.site}/?url=a.com&from=2015&to=2014", tmp_path)
    assert re.search(r'id="message"[^>]*class="error"[^>]*>[^<]*ends before it begins', html)
    html = dump_dom(find_chromium(), f"{server.site}/?url=absent.example", tmp_path)
    assert "Nothing was found." in html


def test_markup_in_a_line_is_text_and_a_day_that_does_not_exist_is_digits(
    run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    url = 'http://many.example/<img src=x onerror=alert(1)>"'
    lines = [
        line("example,many)/x", date, url=url, mime="<b>") for date in ("20200101000000", "20200231000000")
    ]
    (tmp_path / "a.cdxj").write_text("".join(lines))
    run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "c", tmp_path / "a.cdxj")
    with cdx_server(tmp_path / "c") as server:
        html = dump_dom(find_chromium(), f"{server.site}/?url=many.example/x", tmp_path)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<img" not in html
    assert "&lt;b&gt;" in html
    assert re.findall(r"<td>(2020[-0-9: ]*)</td>", html) == ["2020-01-01 00:00:00", "20200231000000"]


def test_it_is_shown_wide_narrow_and_dark(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    """Set CDXMILL_SCREENSHOTS to a directory to get the pictures of the docs; `pngquant --nofs 32` makes them small."""
    pictures = Path(os.environ.get("CDXMILL_SCREENSHOTS") or tmp_path)
    pages = ("", "about", "contact", "news", "news/archive")
    lines = [
        line(
            f"example,many)/{page}",
            f"{year}{month:02}0{1 + number}120000",
            url=f"http://many.example/{page}",
            length=str(2000 + 37 * (year + month + number) % 9000),
            filename="many.warc.gz",
            offset=str(len(page) + 10 * year + month),
        )
        for (number, page), year in product(enumerate(pages), range(2005, 2025))
        for month in range(1, 2 + (year * 7 + number) % 6)
    ]
    (tmp_path / "a.cdxj").write_text("".join(lines))
    run_cdxmill("zipnum", "-q", "-s", "1", "-o", tmp_path / "c", tmp_path / "a.cdxj")
    with cdx_server(f"web={tmp_path / 'c'}", "--replay", REPLAY) as server:
        for name, (size, more) in PICTURES.items():
            url = f"{server.site}/?url=many.example&match=host"
            screenshot(find_chromium(), url, pictures / f"{name}.png", tmp_path, size, *more)
    shown = {(pictures / f"{name}.png").read_bytes() for name in PICTURES}
    assert len(shown) == len(PICTURES)
    assert min(map(len, shown)) > 20_000
