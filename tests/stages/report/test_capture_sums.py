"""The compiled sums of a report are those of Python, whatever the lines are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.stages import native
from cdxmill.stages.report.capture_sums import DictSample, DictSums, Large, Totals, new_sums, take_text
from cdxmill.stages.report.tables import HLL_ERROR, Table
from tests.material.sanitizers import run_sanitized

KEYS = (
    "com,a)/",
    "com,a:8080)/x",
    "com,a,)/",
    "org,b,c)/?x=1",
    "urn:x",
    "dns:a.com",
    "http://(com,a,)/",
    "9.8.7.6)/",
    "x" * 300 + ")/",
    "",
)
TIMES = (
    "20200102030405",
    "202013",
    "202012",
    "202001",
    "202000",
    "2020",
    "20201",
    "-",
    "",
    "19990131000000",
    "999912",
)
VALUES = (
    '"0"', "0", '"00"', '"text/html"', '"warc/revisit"', '"-"', '""', "12", "007", "1.5", "-3", "null", "true", '"a\\"b"', '"\\u00e9"', '"\\ud800"',
    '"é"', '"a\\qb"', '"\t"', '"123456789012345678"', '"1234567890123456789"', '"eng,fra"', "[1]", '{"a": 1}', '"' + "y" * 250 + '"',
)  # fmt: skip
NAMES = (
    "url",
    "mime",
    "m",
    "status",
    "statuscode",
    "digest",
    "d",
    "length",
    "l",
    "filename",
    "languages",
    "x",
    "urlkey",
    "a\\\\b",
)

members = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=8)
objects = st.builds(
    lambda found, comma, end: "{" + comma.join(f'"{name}": {value}' for name, value in found) + end,
    members, st.sampled_from((", ", ",", " , ", ",,")), st.sampled_from(("}", "}", "}", " }", "", "}}", "} \r")),
)  # fmt: skip
columns = st.lists(
    st.sampled_from(("a", "200", "-", "", "warc/revisit", "77", "é")), min_size=1, max_size=14
).map(" ".join)
lines = st.builds(
    lambda key, time, rest: f"{key} {time} {rest}".encode(),
    st.sampled_from(KEYS),
    st.sampled_from(TIMES),
    objects | columns,
)
texts = st.lists(
    lines | st.sampled_from((b"", b" CDX N b a", b"com,a)/", b"com,a)/ 2020", b'com,a)/ 2020 {"mime": "\xff"}', b"\xff)/ 2020 a a a a")),
    max_size=12,
).map(b"\n".join)  # fmt: skip


@pytest.mark.skipif(native.CaptureSums is None, reason="not compiled")
@settings(max_examples=200, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.sampled_from((0, 12, 200)))
def test_the_compiled_sums_are_those_of_python(given_texts: list[bytes], floor: int) -> None:
    check_same_sums(given_texts, floor)


@pytest.mark.skipif(native.CaptureSums is None, reason="not compiled")
def test_every_value_of_every_field_counts_as_in_python() -> None:
    ends = [', "mime": "a/b"', ', "length": "77"', ""]
    lines = [
        f'{key} {time} {{"{name}": {value}{end}}}'
        for key, time in [(key, TIMES[0]) for key in KEYS[:2]] + [(KEYS[0], time) for time in TIMES]
        for name in NAMES
        for value in VALUES
        for end in (ends if time == TIMES[0] else ends[2:])
    ]
    check_same_sums([line.encode() for line in lines], 0)
    lines += [f"{key} {time} a b c d e 9" for key in KEYS for time in TIMES]
    for floor in (0, 77, 78):
        check_same_sums(["\n".join(sorted(lines)).encode(errors="surrogatepass")], floor)


def usual_lines() -> list[bytes]:
    """Lines with strings of every length up to 150, as a value, in a name and with an escape somewhere, and with columns."""
    lines = [f'com,a)/ {TIMES[0]} {{"mime": "{"m" * size}", "length": "{size}"}}' for size in range(150)]
    lines += [f'com,a)/ {TIMES[0]} {{"{"n" * size}": "x", "status": "{size}"}}' for size in range(150)]
    for size in (3, 15, 16, 17, 79, 80, 81, 145):
        lines += [
            f'com,a)/ {TIMES[0]} {{"x": "{"u" * at}\\"{"v" * (size - at)}", "length": "7"}}'
            for at in range(size)
        ]
    lines += [
        f'com,a)/ {TIMES[0]} {{{blank}"mime"{blank}:{blank}"a/b"{blank},{blank}"l"{blank}:{blank}9{blank}}}'
        for blank in ("", " ", "   ")
    ]
    lines += [f"com,a)/ {TIMES[0]}{' 7' * (columns - 2)}" for columns in (6, 7, 9, 10, 11, 12, 13, 14)]
    return [line.encode() for line in lines]


@pytest.mark.skipif(native.CaptureSums is None, reason="not compiled")
def test_compiled_code_takes_usual_lines_itself() -> None:
    """Alone, with no byte behind the line that may be read, and among others. Python would give the same sums, slowly."""
    lines, sums = usual_lines(), new_sums(True)
    check_same_sums([b"\n".join(lines)], 0)
    check_same_sums([b"\n".join(lines[::-1])], 0)
    for line in lines:
        for text in (line, line + b"\n", line + b"\n" + bytes(200)):
            taken = sums.take(bytearray(text), 0, 10, [])
            assert taken == (len(text) if len(text) < len(line) + 2 else len(line) + 1), text
    for line in lines[::7]:
        check_same_sums([line], 0)


@pytest.mark.skipif(native.CaptureSums is None, reason="not compiled")
@pytest.mark.parametrize("odd", ["\u00e9", "\t", "\\u00e9", "\\q", "\x7f"])
def test_odd_characters_anywhere_in_a_string_are_found(odd: str) -> None:
    """The first line has no known opening, the others have the one before. Strings are read in pieces of 16 and 64 bytes."""
    lines = [
        f'com,a)/ {TIMES[0]} {{"{name}": "{"v" * at}{odd}{"w" * (size - at)}"}}'.encode()
        for size in (1, 17, 85, 150)
        for at in (*range(min(size, 20)), *range(20, size, 9))
        for name in ("mime", "x")
    ]
    check_same_sums([b"\n".join(lines)], 0)


@pytest.mark.skipif(native.CaptureSums is None, reason="not compiled")
@pytest.mark.parametrize("is_known", [False, True])
def test_a_line_with_any_byte_changed_counts_as_in_python(is_known: bool) -> None:
    """The line before it may have the same members: then their names are compared only."""
    line = b'com,a)/ 2020 { "mime" : "a/b" , "l":77,"x":"\\"" , "f": "w.gz"}'
    before = [line] * is_known
    for at in range(len(line)):
        for size, other in (
            (1, b""),
            (0, b" "),
            (0, b'"'),
            (1, b'"'),
            (1, b"x"),
            (1, b","),
            (1, b":"),
            (1, b"\\"),
            (1, b"}"),
        ):
            check_same_sums([b"\n".join([*before, line[:at] + other + line[at + size :]])], 0)


def check_same_sums(given_texts: list[bytes], floor: int) -> None:
    compiled, plain = new_sums(True), DictSums(True)
    for text in given_texts:
        large: tuple[list[Large], list[Large]] = [], []
        assert take_text(compiled, bytearray(text), floor, large[0]) == take_text(
            plain, text, floor, large[1]
        )
        assert large[0] == large[1]
        groups, expected = compiled.groups(), plain.groups()
        assert {kind: sorted(found) for kind, found in groups.items()} == {
            kind: sorted(found) for kind, found in expected.items()
        }
    assert Totals(*compiled.totals()) == plain.totals()
    for which in ("digests", "urls"):
        assert compiled.sampled(which) == plain.sampled(which)


_SANITIZED = """
import random, sys, _native
random = random.Random(5)
pieces = [piece.encode("utf-8", "surrogateescape") for piece in sys.argv[1:]]
sums = _native.CaptureSums(True)
for number in range(6_000):
    fields = b", ".join(b'"%b": %b' % (random.choice(pieces), random.choice(pieces)) for _ in range(random.randrange(6)))
    line = b'com,%b)/ 2020%b {%b}' % (random.choice(pieces), random.choice(pieces), fields)
    text = b"\\n".join([line] * random.randrange(1, 40))
    data = bytearray(text[: len(text) - random.randrange(3)])
    sums.take(data, random.randrange(len(data)), 10, [])
    if number % 50 == 0:
        sums.groups()
many = b'a)/ 2020 {%b}\\n' % b", ".join([b'"x": "y"'] * 30)
sums.take(bytearray(many * 2), 0, 10, [])
other = _native.CaptureSums(True)
for which in ("digests", "urls"):
    other.absorb(which, sums.pack(which))
assert other.sampled("urls") == sums.sampled("urls")
"""


def test_no_byte_outside_of_a_text_is_touched(tmp_path: Path) -> None:
    words = [f'"{name}"' for name in NAMES]
    run_sanitized(_SANITIZED, tmp_path, *NAMES, *words, *(value.replace("\0", "") for value in VALUES))


def test_sums_of_two_processes_are_joined() -> None:
    text = b"".join(
        b'com,a)/%d 2020 {"digest": "%d", "length": "10"}\n' % (number, number % 40) for number in range(100)
    )
    for kind in (DictSums, new_sums):
        both = kind(True)
        for half in (text[: len(text) // 2], text[len(text) // 2 :]):  # a line that is cut is left out
            own = kind(True)
            take_text(own, b"\n".join(line for line in half.split(b"\n") if line.count(b'"') == 8), 0, [])
            both.absorb("digests", own.pack("digests"))
        level, values, repeated, saved = both.sampled("digests")
        assert (level, values) == (0, 40)
        assert saved == repeated * 10


def test_short_digests_of_different_lengths_are_not_mixed_up() -> None:
    sums = new_sums(False)
    take_text(sums, b"".join(b"a)/ 2020 a b c %d 1\n" % one for one in range(20_000)), 9, [])
    assert sums.sampled("digests") == (0, 20_000, 0, 0)


def test_a_sample_without_compiled_code_is_bounded_too() -> None:
    halves = DictSample(1000), DictSample(1000)
    for number in range(20_000):
        halves[number % 2].add(b"%d" % number, 5)
        halves[0].add(b"%d" % number, 7)
    assert all(half.sampled()[1] < 1000 for half in halves)
    whole = DictSample(1000)
    for half in halves:
        whole.absorb(half.pack())
    level, values, repeated, saved = whole.sampled()
    assert level > 4
    assert abs((values << level) / 20_000 - 1) < 5 * values**-0.5
    assert (repeated, saved) == (values, 5 * values)


@pytest.mark.skipif(native.CaptureSums is None, reason="takes half a minute")
def test_many_digests_are_sampled() -> None:
    sums, number = new_sums(False), 1_500_000
    for start in range(0, number, 100_000):
        take_text(
            sums, b"".join(b"a)/ 2020 a b c d%d 1\n" % one for one in range(start, start + 100_000)), 9, []
        )
    level, values, _, _ = sums.sampled("digests")
    assert level == 2
    assert values < 1 << 19
    assert abs((values << level) / number - 1) < 5 * values**-0.5


def test_many_names_are_sketched() -> None:
    table, other = Table(1000), Table(1000)
    for number in range(20_000):
        (table if number % 2 else other).add([(b"host%d\xff" % number, 1, 1, 10)])
    table.add([(b"large", 5000, 1, 7)])
    other.add([(b"large", 5000, 1, 7)])
    table.absorb(other.pack())
    assert not table.is_exact
    assert abs(table.distinct() / 20_001 - 1) < 5 * HLL_ERROR
    (name, captures, urls, size), *_ = table.top(1)
    assert (name, urls, size) == (b"large", None, 14)
    assert abs(captures - 10_000) <= table.captures_error()


def test_public_suffixes_are_those_of_the_library() -> None:
    from publicsuffixlist import PSLFILE, PublicSuffixList, encode_idn

    with open(PSLFILE, encoding="utf-8") as file:  # noqa: PTH123 - a text of the library
        rules = file.read().splitlines()
    library, own = PublicSuffixList(), PublicSuffixes(rules)
    lists = [PublicSuffixList(accept_unknown=False, only_icann=only) for only in (True, False)]
    names = [encode_idn(rule.lstrip("!*.")) for rule in rules if rule and not rule.startswith("//")]
    for host in [f"{more}{name}" for name in names[::7] for more in ("", "a.", "a.b.")]:
        reversed_host = ",".join(host.split(".")[::-1]).encode()
        found = own.registered(reversed_host)
        assert (found and ".".join(found.decode().split(",")[::-1])) == library.privatesuffix(host), host
        suffixes = [found and found.count(".") + 1 for found in (one.publicsuffix(host) for one in lists)]
        assert [depth or None for depth in own.depths(reversed_host)] == suffixes, host
