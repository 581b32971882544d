"""What is added up without compiled code, against plain counts of the same lines."""

from __future__ import annotations

import pickle
from collections import Counter
from hashlib import blake2b
from typing import Any

import pytest

from cdxmill.stages import native
from cdxmill.stages.report.capture_sums import (
    LONGEST_NAME,
    DictSample,
    DictSums,
    Large,
    PackedSamples,
    absorb_samples,
    host_of,
    name_text,
    new_sums,
    read_line,
    take_text,
    tld_of,
)

KINDS = [DictSums, new_sums]


def line(key: str = "com,a)/", time: str = "20200102030405", **fields: object) -> bytes:
    shown = ", ".join(f'"{name}": "{value}"' for name, value in fields.items())
    return f"{key} {time} {{{shown}}}".encode()


def summed(kind: Any, *lines: bytes, with_urls: bool = False) -> Any:
    sums = kind(with_urls)
    assert take_text(sums, b"\n".join(lines), 1 << 60, []) == []
    return sums


def total(sums: Any, name: str) -> Any:
    names = ("captures", "urls", "size", "undated", "unsized", "revisits", "revisit_bytes", "is_sorted", "first", "last", "key")  # fmt: skip
    return dict(zip(names, sums.totals(), strict=True))[name]


@pytest.mark.parametrize("kind", KINDS)
def test_lines_that_are_no_captures_are_left_out_and_bad_ones_returned(kind: Any) -> None:
    bad = [b'com,a)/ 2020 {"mime": }', b"com,a)/ 2020", b" 2020 a b c d 9", b"[" * 5000, b"com,b)/ 2020 " + b"[" * 99]  # fmt: skip
    for end in (b"", b"\n"):
        sums, text = kind(False), b"\n".join([b" CDX N b a", b"", line(), *bad, line(length="7"), b""]) + end
        large: list[Large] = []
        assert take_text(sums, text, 6, large) == bad
        assert (total(sums, "captures"), total(sums, "size"), large) == (2, 7, [(7, line(length="7"))])
        assert take_text(sums, text, 7, large := []) != []
        assert large == []


@pytest.mark.parametrize(
    ("length", "size", "unsized"),
    [("0", 0, 0), ("7", 7, 0), ("9" * 18, int("9" * 18), 0), ("9" * 19, 0, 1), ("", 0, 1), ("-", 0, 1), ("1.5", 0, 1), ("\u0663", 0, 1)],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_the_length_of_a_line(kind: Any, length: str, size: int, unsized: int) -> None:
    sums = summed(kind, line(length=length), line(key="com,b)/", length="1"))
    assert (total(sums, "size"), total(sums, "unsized")) == (size + 1, unsized)


@pytest.mark.parametrize(
    ("time", "month"),
    [
        ("20200102030405", "202001"), ("202001", "202001"), ("202012", "202012"), ("202013", None),
        ("202000", None), ("20201", None), ("2020", None), ("-", None), ("2020ab", None), ("20200102030405x", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_the_month_of_a_line(kind: Any, time: str, month: str | None) -> None:
    sums = summed(kind, line(time=time, mime="a/b"))
    groups = {name: [one[0] for one in found] for name, found in sums.groups().items()}
    name = (month or "-").encode()
    assert (groups[b"t"], groups[b"y"]) == ([name], [name[:4]])
    assert groups.get(b"x") == ([name + b"a/b"] if month else None)
    assert total(sums, "undated") == (month is None)
    is_whole = month is not None and len(time) == 14
    assert total(sums, "first") == total(sums, "last") == (time.encode() if is_whole else b"")


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_last_are_those_of_all_lines(kind: Any) -> None:
    times = ("20200102030405", "20190102030405", "202112", "20200302030405")
    sums = summed(kind, *(line(time=time) for time in times))
    assert (total(sums, "first"), total(sums, "last")) == (b"20190102030405", b"20200302030405")


@pytest.mark.parametrize(
    ("keys", "urls", "is_sorted"),
    [("a", 1, 1), ("aa", 1, 1), ("ab", 2, 1), ("aab", 2, 1), ("ba", 2, 0), ("aba", 3, 0), ("abc", 3, 1), ("bac", 3, 0)],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_urls_are_counted_where_the_key_changes(kind: Any, keys: str, urls: int, is_sorted: int) -> None:
    sums = summed(kind, *(line(key=f"com,{key})/", mime="x") for key in keys))
    assert (total(sums, "urls"), total(sums, "is_sorted")) == (urls, is_sorted)
    assert total(sums, "key") == f"com,{keys[-1]})/".encode()
    ((_, captures, count, _),) = sums.groups()[b"m"]
    assert (captures, count) == (len(keys), urls)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_that_are_taken_are_empty_and_the_last_url_counts_once(kind: Any) -> None:
    sums = summed(kind, line(mime="old"), line(key="com,b)/", mime="x", length="5"))
    assert {one[0]: one[1:] for one in sums.groups()[b"m"]} == {b"old": (1, 1, 0), b"x": (1, 1, 5)}
    assert sums.groups() == {}
    take_text(sums, line(key="com,b)/", mime="x", length="2"), 99, [])
    take_text(sums, line(key="com,b)/", mime="old"), 99, [])
    assert {one[0]: one[1:] for one in sums.groups()[b"m"]} == {b"x": (1, 0, 2), b"old": (1, 1, 0)}
    take_text(sums, line(key="com,c)/", mime="x"), 99, [])
    assert sums.groups()[b"m"] == [(b"x", 1, 1, 0)]


@pytest.mark.parametrize("kind", KINDS)
def test_revisits_are_counted_and_only_other_captures_have_contents(kind: Any) -> None:
    sums = summed(
        kind,
        line(mime="warc/revisit", digest="A", length="3"),
        line(mime="warc/revisit", length="4"),
        line(mime="warc/revisit"),
        line(digest="A", length="10"),
        line(digest="A", length="30"),
        line(digest="A"),
        line(digest="-"),
        line(digest=""),
        line(),
        line(digest="B", length="5"),
    )
    assert (total(sums, "revisits"), total(sums, "revisit_bytes")) == (3, 7)
    assert sums.sampled("digests") == (0, 2, 2, 10)
    assert sums.sampled("urls") == (0, 0, 0, 0)
    assert summed(kind, *[line()] * 3, with_urls=True).sampled("urls") == (0, 1, 2, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_groups_are_cut_and_missing_ones_have_a_row(kind: Any) -> None:
    long = "x" * (LONGEST_NAME + 1)
    sums = summed(kind, line(mime=long, status=long, languages="eng,fra", filename="f"), line())
    groups = {name: sorted(one[0] for one in found) for name, found in sums.groups().items()}
    cut = long[:-1].encode()
    assert (groups[b"m"], groups[b"s"]) == ([b"-", cut], [b"-", cut])
    assert (groups[b"l"], groups[b"a"]) == ([b"-", b"eng"], [b"-", b"f"])
    assert (groups[b"h"], groups[b"d"]) == ([b"com,a"], [b"com"])
    assert groups[b"x"] == [b"202001-", (b"202001" + cut)[:LONGEST_NAME]]


def test_hosts_and_domains_of_odd_keys() -> None:
    hosts = {
        b"com,a)/x)": b"com,a", b"com,a:80)/": b"com,a", b"com,a:)/": b"com,a", b"com,a:8x)/": b"",
        b"com,a/)x": b"", b"com,a": b"", b")": b"", b",)/": b"", b"a,,)/": b"a",
    }  # fmt: skip
    assert {key: host_of(key) for key in hosts} == hosts
    assert [tld_of(host) for host in (b"com,a", b"com,", b"com", b"1,2", b"", b"1x,a")] == [b"com", b"-", b"-", b"-", b"-", b"1x"]  # fmt: skip
    assert name_text(b"\xff" * 300) == "\\xff" * LONGEST_NAME
    assert name_text(b"abc", 2) == "ab"


def test_a_line_without_a_key_cannot_be_read() -> None:
    assert read_line(line(mime="a", status="2"))[2] == (b"a", b"2", b"", b"", b"", b"")
    with pytest.raises(ValueError, match="the line has no key"):
        read_line(b' 2020 {"mime": "a"}')


def hashed(value: bytes) -> int:
    return int.from_bytes(blake2b(value, digest_size=8).digest())


@pytest.mark.parametrize("most", [2, 50, 1000])
def test_a_sample_has_all_values_with_the_lowest_hashes(most: int) -> None:
    values = [b"%d" % (number // 3) for number in range(900)]
    parts = [DictSample(most) for _ in range(3)]
    for number, value in enumerate(values):
        parts[number % 3].add(value, number % 3)
    parts[1].add(b"only here", 100)
    joined = DictSample(most)
    for part in parts:
        joined.absorb(part.pack())
    level, count, repeated, size = joined.sampled()
    kept = [value for value in {*values, b"only here"} if hashed(value) >> (64 - level) == 0]
    assert count == len(kept) < most
    above = [value for value in {*values, b"only here"} if hashed(value) >> (64 - max(level - 1, 0)) == 0]
    assert level == 0 or len(above) >= most
    times = Counter(values)
    assert repeated == sum(times[value] - 1 for value in kept if value != b"only here")
    assert size == sum(0 + 1 + 2 - 2 for value in kept if value != b"only here")


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_another_process_come_as_their_samples(kind: Any) -> None:
    lines = [line(key=f"com,{number % 7})/", digest=number % 5, length=3) for number in range(35)]
    sums = summed(kind, *lines, with_urls=True)
    packed = pickle.loads(pickle.dumps(sums))
    assert isinstance(packed, PackedSamples)
    other = summed(kind, *lines[:5], with_urls=True)
    absorb_samples(other, packed)
    assert (other.sampled("digests")[:2], other.sampled("urls")[:2]) == ((0, 5), (0, 7))
    assert other.sampled("digests")[2:] == (35, 105)
    assert other.sampled("urls")[2:] == (33, 99)


def test_without_compiled_code_python_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "CaptureSums", None)
    sums = new_sums(True)
    assert isinstance(sums, DictSums)
    assert len(sums) == 0
    take_text(sums, line(), 0, [])
    assert len(sums) == 9
    assert sums.sampled("urls")[1] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_may_start_with_an_empty_line(kind: Any) -> None:
    assert total(summed(kind, b"", line(), line(key="com,b)/")), "captures") == 2


def test_a_sample_has_fewer_values_than_its_limit() -> None:
    sample = DictSample(4)
    for number in range(3):
        sample.add(b"%d" % number, 7)
    assert sample.sampled()[:2] == (0, 3)
    sample.add(b"3", 7)
    assert sample.sampled()[0] > 0
