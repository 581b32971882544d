"""HTML-like pages made of ready pieces. They compress about as well as the web's pages (4 to 5 times)."""

from __future__ import annotations

from functools import cache
from random import Random

from bench.words import ascii_words, pick, rank_weights, vocabulary

THEMES = 24
PIECES = 1500
MENU = 200
TOPIC_WORDS = 600  # so few that pages repeat themselves as real pages do
TEMPLATES = [
    '<li id="menu-item-{n}" class="menu-item menu-item-type-post_type {a} {b}-item">'
    '<a href="/{p}/{q}" class="{a}__link" title="{t}">{t}</a></li>\n',
    '<div class="{a} {a}--{b}" id="{b}-{n}"><p class="{a}__text">{s}</p></div>\n',
    '<p class="wp-block-paragraph has-text-align-left" data-id="{n}">{s} {s}</p>\n',
    '<article class="{a}-card"><a href="/{p}/{n}"><img src="/static/{a}/{n}.jpg" alt="{t}" '
    'width="320" height="180" loading="lazy"></a><h3 class="{a}-card__title">{t}</h3>'
    '<span class="{a}-card__meta">{n}</span></article>\n',
    '<tr class="{b}"><td class="{a}-cell">{t}</td><td class="{a}-cell {a}-cell--num">{n}</td></tr>\n',
    '<script>window.{b}=window.{b}||[];{b}.push({{"event":"{a}","id":{n},"label":"{q}"}});</script>\n',
    '<meta property="og:{b}" content="{t}"/><link rel="stylesheet" href="/assets/{a}/{b}.css?v={n}"/>\n',
]


def sentence(rng: Random, words: list[str], length: int) -> str:
    text = " ".join(rng.choices(words, cum_weights=rank_weights(len(words)), k=length))
    return text.capitalize()


def make_piece(rng: Random, classes: list[str], words: list[str]) -> bytes:
    return (
        TEMPLATES[int(rng.random() * len(TEMPLATES))]
        .format(
            a=pick(rng, classes),
            b=pick(rng, classes),
            n=rng.getrandbits(13),
            p=pick(rng, classes),
            q=pick(rng, classes),
            t=sentence(rng, words, 2 + int(rng.random() * 3)),
            s=sentence(rng, words, 10 + int(rng.random() * 16)) + ".",
        )
        .encode()
    )


@cache
def theme(number: int) -> list[bytes]:
    """The pieces of the pages of one site. They share class names."""
    rng = Random(100 + number)
    classes = [pick(rng, ascii_words()) for _ in range(8)]
    words = [pick(rng, vocabulary()) for _ in range(TOPIC_WORDS)]
    return [make_piece(rng, classes, words) for _ in range(PIECES)]


@cache
def menu(number: int) -> list[bytes]:
    """Links of the pages of one site, each in a list item: most of them relative, some to other hosts."""
    rng = Random(200 + number)
    names = [f"{pick(rng, ascii_words())}/{pick(rng, ascii_words())}" for _ in range(MENU)]
    starts = ("../", "/", "../../", "", f"https://www.{names[0].replace('/', '.')}.org/")
    hrefs = [f"{starts[place % len(starts)]}{name}.html" for place, name in enumerate(names)]
    return [
        f'<li class="nav-{place}"><a href="{href}">{href[-20:]}</a></li>\n'.encode()
        for place, href in enumerate(hrefs)
    ]


def make_page(rng: Random, title: str, size: int, links: int = 0) -> bytes:
    """A page of about `size` bytes, of pieces of one theme. No piece is used twice before all were used.

    `links` more links are in front of them. Two thirds are the same on all pages of the theme.
    """
    number = int(rng.random() * THEMES)
    pieces = theme(number)
    average = sum(map(len, pieces[:64])) / 64
    wanted = max(1, int(size / average))
    start = int(rng.random() * len(pieces))
    head = f'<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n'
    parts = [b"<!DOCTYPE html>\n", head.encode()]
    parts += menu(number)[: links * 2 // 3]
    parts += (
        b'<p><a href="%x/p%x.html#s">%x</a>\n' % (n % 9, rng.getrandbits(20), n)
        for n in range(links - links * 2 // 3)
    )
    while wanted > 0:
        parts += pieces[start : start + wanted]
        wanted -= len(pieces) - start
        start = 0
    parts.append(b"</body>\n</html>\n")
    return b"".join(parts)
