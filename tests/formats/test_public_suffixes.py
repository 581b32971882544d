"""Rules of the public suffix list that are not ASCII are those of hosts as they are in keys."""

from __future__ import annotations

import pytest

from cdxmill.formats.lines.public_suffixes import Depths, PublicSuffixes

LIST = [
    "// a comment",
    "",
    "// ===BEGIN ICANN DOMAINS===",
    "cn",
    "com.cn",
    "公司.cn",
    "рф",
    "*.ck",
    "!www.ck",
    "// ===END ICANN DOMAINS===",
    "рус.рф  // more words",
    "blogspot.com",
]
HOSTS = [
    ("cn,xn--55qx5d,a,b", (2, 2), "cn,xn--55qx5d,a"),
    ("cn,xn--55qx5d", (2, 2), None),
    ("cn,com,a", (2, 2), "cn,com,a"),
    ("cn,comx", (1, 1), "cn,comx"),
    ("cn,xn--x,a", (1, 1), "cn,xn--x"),
    ("xn--p1ai,a,b", (1, 1), "xn--p1ai,a"),
    ("xn--p1ai,xn--p1acf,a", (1, 2), "xn--p1ai,xn--p1acf,a"),
    ("xn--p1ai", (1, 1), None),
    ("ck,a,b,c", (2, 2), "ck,a,b"),
    ("ck,www,c", (1, 1), "ck,www"),
    ("com,blogspot,a", (0, 2), "com,blogspot,a"),
    ("com,a,b", (0, 0), "com,a"),
]


@pytest.mark.parametrize(("host", "depths", "registered"), HOSTS)
def test_a_list_that_is_new_knows_a_host(host: str, depths: tuple[int, int], registered: str | None) -> None:
    assert PublicSuffixes(LIST).depths(host.encode()) == Depths(*depths)
    assert PublicSuffixes(LIST).registered(host.encode()) == (registered and registered.encode())


def test_hosts_that_came_before_change_nothing() -> None:
    suffixes = PublicSuffixes(LIST)
    for _ in range(2):
        for host, depths, registered in (*HOSTS, *reversed(HOSTS)):
            assert suffixes.depths(host.encode()) == Depths(*depths)
            assert suffixes.registered(host.encode()) == (registered and registered.encode())
