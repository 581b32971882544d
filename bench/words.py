"""Made-up words, hosts and URLs that look like those of the web. The same seed gives the same ones.

Only `random()`, `choices()` and `getrandbits()` are used: their results are the same in every Python.
"""

from __future__ import annotations

from functools import cache
from itertools import accumulate
from random import Random
from typing import NamedTuple

ONSETS = "b c d f g h j k l m n p r s t v w br ch cl dr fl gr pl pr sh st th tr".split()  # noqa: SIM905
VOWELS = "a e i o u a e i o ai ea ou é ü".split()  # noqa: SIM905
CODAS = ["", "", "", "n", "r", "s", "t", "l", "m", "nd", "st", "ng"]
TLDS = "com com com com com com org org net de de ru fr co.uk it nl pl jp br es info io edu gov".split()  # noqa: SIM905
SUBDOMAINS = ["www.", "www.", "www.", "www.", "", "", "", "blog.", "shop.", "en.", "m."]
ENDINGS = ["", "", "/", "/", ".html", ".html", ".php", ".htm", ".aspx", ".jsp"]
PARAMETERS = ["id", "page", "q", "lang", "cat", "sort", "ref", "view", "tag", "utm_source", "p", "Itemid"]
HOSTS = 20_000


class Url(NamedTuple):
    """A URL with the parts that other lines need."""

    text: str
    host: str
    path: str
    key: str


def pick(rng: Random, items: list[str]) -> str:
    return items[int(rng.random() * len(items))]


@cache
def vocabulary(size: int = 6000) -> list[str]:
    """Distinct words, mostly the short ones first, as in a language."""
    rng = Random(1)
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = 1 + int(rng.random() * (2 + len(words) / size * 2.2))
        word = "".join(pick(rng, ONSETS) + pick(rng, VOWELS) + pick(rng, CODAS) for _ in range(syllables))
        words[word] = None
    return list(words)


@cache
def ascii_words() -> list[str]:
    return [word for word in vocabulary() if word.isascii() and len(word) > 2]


@cache
def rank_weights(size: int) -> list[float]:
    """Cumulative weights by rank (Zipf), for `choices`."""
    return list(accumulate(1 / (rank + 3) for rank in range(size)))


def host_key(host: str) -> str:
    """The host part of a SURT: labels reversed, without `www.`."""
    return ",".join(reversed(host.removeprefix("www.").split("."))) + ")"


@cache
def hosts() -> list[tuple[str, str, str]]:
    """(scheme and host, host, key) of every host, the popular ones first."""
    rng, words = Random(2), ascii_words()
    made = []
    for _ in range(HOSTS):
        name = pick(rng, words) + pick(rng, ["", "", "-", ""]) + pick(rng, words)
        host = f"{pick(rng, SUBDOMAINS)}{name}.{pick(rng, TLDS)}"
        scheme = "http" if rng.random() < 0.12 else "https"
        made.append((f"{scheme}://{host}", host, host_key(host)))
    return made


def make_segment(rng: Random, words: list[str]) -> str:
    chance = rng.random()
    if chance < 0.1:
        return str(int(rng.random() * 100_000))
    if chance < 0.55:
        return "-".join(pick(rng, words) for _ in range(2 + int(rng.random() * 4)))
    segment = pick(rng, words)
    if chance < 0.65:
        return segment.capitalize()
    return segment + "%C3%A9" if chance < 0.68 else segment


def make_query(rng: Random, words: list[str]) -> str:
    pairs = []
    for _ in range(1 + int(rng.random() * 3)):
        value = pick(rng, words) if rng.random() < 0.5 else str(rng.getrandbits(24))
        pairs.append(f"{pick(rng, PARAMETERS)}={value}")
    return "?" + "&".join(pairs)


@cache
def paths() -> list[tuple[str, str]]:
    """Pairs of (path, lower-case path) that all hosts share, as sites share their software."""
    rng, words = Random(3), ascii_words()
    made = [("/", "/")]
    for _ in range(60_000):
        path = "".join("/" + make_segment(rng, words) for _ in range(1 + int(rng.random() * 3))) + pick(
            rng, ENDINGS
        )
        made.append((path, path.lower()))
    return made


def sort_query(query: str) -> str:
    return "?" + "&".join(sorted(query[1:].lower().split("&")))


def make_urls(rng: Random, count: int) -> list[Url]:
    """`count` URLs. A few hosts have many pages; a quarter of the URLs has a query."""
    stock, words = paths(), ascii_words()
    urls = []
    for base, host, key in rng.choices(hosts(), cum_weights=rank_weights(HOSTS), k=count):
        path, low_path = stock[int(rng.random() * len(stock))]
        query = make_query(rng, words) if rng.random() < 0.25 else ""
        low_query = sort_query(query) if query else ""
        urls.append(Url(base + path + query, host, path + query, key + low_path + low_query))
    return urls
