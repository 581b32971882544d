"""Access rules and embargoes: pywb's answers for the same rules, and nothing that is hidden shows in any endpoint."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.lookup_query import KeyRange
from cdxmill.server.access import Access, AccessRule, parse_embargo, read_rules
from cdxmill.storage.location import locate

from ..material.cdx_server import cdx_server
from .conftest import CAPTURES, MANY

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")  # pywb imports it

NOW = datetime(2024, 3, 31, 12, tzinfo=UTC)
KEYS = ("org,", "org,a", "org,a)/", "org,a)/x", "org,a)/x###", "org,ab)/", "com,", "org,a,b)/")
"""Not `*,`: pywb does not reach it if there are rules for domains before the URL's."""
URLKEYS = ("org,a)/", "org,a)/x", "org,a)/xy", "org,ab)/", "org,a,b)/x", "com,z)/", "net,q)/")
ACCESS = ("allow", "exclude", "allow_ignore_embargo")


def rules_of(tmp_path: Path, rules: dict[str, dict[str, Any]]) -> Path:
    """A file of rules, sorted as pywb needs it."""
    path = tmp_path / "rules.aclj"
    lines = [f"{key} - {json.dumps(fields)}\n" for key, fields in sorted(rules.items(), reverse=True)]
    path.write_text("".join(lines))
    return path


def url_of(urlkey: str) -> str:
    host, _, path = urlkey.partition(")")
    return f"http://{'.'.join(reversed(host.split(',')))}{path}"


@given(
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ACCESS), max_size=5),
    st.sampled_from(["", "before", "after"]),
)
def test_the_same_captures_are_hidden_as_by_pywb(
    tmp_path_factory: pytest.TempPathFactory, rules: dict[str, str], kind: str
) -> None:
    from pywb.warcserver.access_checker import AccessChecker
    from pywb.warcserver.index.cdxobject import CDXObject

    tmp_path = tmp_path_factory.mktemp("rules")
    fields = {key: {"access": access} | ({kind: "2020"} if kind else {}) for key, access in rules.items()}
    path = rules_of(tmp_path, fields)
    lines = [
        f'{key} {year}0601000000 {{"url": "{url_of(key)}"}}'.encode()
        for key in URLKEYS
        for year in (2019, 2021)
    ]
    checker = AccessChecker(str(path)) if rules else None
    theirs = [line for line in lines if checker is None or list(checker.wrap_iter([CDXObject(line)], None))]
    visible = Access(read_rules([locate(path)])).visible()
    assert list(filter(visible, lines)) == theirs


def test_a_rule_for_everything_holds_where_no_other_does(tmp_path: Path) -> None:
    path = rules_of(tmp_path, {"*,": {"access": "exclude"}, "com,": {"access": "allow"}})
    visible = Access(read_rules([locate(path)])).visible()
    assert visible(b"com,a)/ 2020 {}")
    assert not visible(b"org,a)/ 2020 {}")


@pytest.mark.parametrize(
    ("embargo", "hidden"),
    [
        ("newer:1m", "20240301000000"),
        ("newer:1m1d", "20240229000000"),
        ("older:1y", "20230330000000"),
        ("before:2020", "20191231235959"),
        ("after:2020", "20200101000000"),
        ("newer:2w", "20240320000000"),
    ],
)
def test_an_embargo_hides_what_is_in_its_period(embargo: str, hidden: str) -> None:
    access = Access({}, parse_embargo(embargo), lambda: NOW)
    line = f"org,a)/ {hidden} {{}}".encode()
    other = {"newer": "20200101000000", "older": "20240301000000", "before": "2021", "after": "20191231"}
    assert not access.visible()(line)
    assert access.visible()(f"org,a)/ {other[embargo.partition(':')[0]]} {{}}".encode())


@pytest.mark.parametrize(
    ("embargo", "moment"),
    [
        ("before:20200101000000", "20200101000000"),
        ("after:20200101000000", "20200101000000"),
        ("newer:1y", "20230331120000"),
        ("older:1m", "20240229120000"),
        ("newer:1y2m3w4d", "20230106120000"),
        ("older:2d", "20240329120000"),
    ],
)
def test_the_moment_itself_is_in_no_period(embargo: str, moment: str) -> None:
    visible = Access({}, parse_embargo(embargo), lambda: NOW).visible()
    step = -1 if embargo.startswith(("before", "older")) else 1
    assert visible(f"org,a)/ {moment} {{}}".encode())
    assert not visible(f"org,a)/ {int(moment) + step} {{}}".encode())


@pytest.mark.parametrize(
    ("kind", "period", "hidden", "shown"),
    [
        ("newer", {"years": 1, "weeks": 1}, "20230325000000", "20230320000000"),
        ("older", {"months": 1, "days": 1}, "20240220000000", "20240301000000"),
        ("older", {"years": 9999}, "00001231000000", "00010102000000"),
        ("older", {"days": 10**12}, "00001231000000", "00010102000000"),
    ],
)
def test_a_rule_may_hold_for_a_period(
    kind: str, period: dict[str, int], hidden: str, shown: str, tmp_path: Path
) -> None:
    path = rules_of(tmp_path, {"org,a)/": {"access": "exclude", kind: period}})
    visible = Access(read_rules([locate(path)]), now=lambda: NOW).visible()
    assert not visible(f"org,a)/ {hidden} {{}}".encode())
    assert visible(f"org,a)/ {shown} {{}}".encode())


@pytest.mark.parametrize("period", ["1y", {"year": 1}, {"years": "x"}, 7, [1], ["years"]])
def test_a_rule_with_a_wrong_period_is_refused(period: object, tmp_path: Path) -> None:
    path = rules_of(tmp_path, {"org,a)/": {"access": "exclude", "newer": period}})
    with pytest.raises(InputError, match="line 1 is no access rule"):
        read_rules([locate(path)])


@pytest.mark.parametrize("text", ["", "newer", "newer:", "newer:1", "sooner:1y", "before:x", "older:1y 2m"])
def test_a_wrong_embargo_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid embargo"):
        parse_embargo(text)


@pytest.mark.parametrize(
    "line", ["org,a)/", "org,a)/ - {", 'org,a)/ - {"access": "hide"}', 'org,a)/ - ["access"]']
)
def test_a_line_that_is_no_rule_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.aclj").write_text('com,a)/ - {"access": "allow"}\n' + line + "\n")
    with pytest.raises(InputError, match="line 2 is no access rule"):
        read_rules([locate(tmp_path / "bad.aclj")])


@pytest.mark.parametrize(
    ("low", "high", "touched"),
    [
        (b"org,b)/", b"org,b)/!", False),
        (b"org,a)/", b"org,b)/", False),
        (b"org,a)/", b"org,b)/c", False),
        (b"org,a)/", b"org,b)/d", True),
        (b"org,b)/c", b"org,b)/c!", True),
        (b"org,b)/cd", b"org,b)/cd!", True),
        (b"org,b)/d", b"org,c)/", False),
        (b"org,d)/", b"org,d)/!", True),
        (b"org,d)/x", b"org,d)/x!", False),
        (b"org,z)/", b"org,zz)/", False),
    ],
)
def test_ranges_that_no_rule_touches_are_counted_by_blocks(low: bytes, high: bytes, touched: bool) -> None:
    """The end of a range is not in it. A rule for one key hides nothing below it."""
    rules = {b"org,b)/c": AccessRule("exclude", None), b"org,d)/###": AccessRule("exclude", None)}
    assert Access(rules).touches(KeyRange(low, high, False)) == touched
    assert Access(rules, parse_embargo("before:2020")).touches(KeyRange(low, high, False))
    assert not Access({}).touches(KeyRange(low, high, False))


def test_nothing_that_is_hidden_shows_in_any_answer(many_cluster: Path, tmp_path: Path) -> None:
    path = rules_of(tmp_path, {"example,many)/###": {"access": "exclude"}})
    with cdx_server(many_cluster, "--access", path, "--replay", "http://replay/") as server:
        assert server.ask("/many/cdx", url=MANY).body == b""
        assert server.ask("/many-index", url=MANY).status == 404
        assert server.ask("/many", url=MANY).body == b""
        assert server.ask("/cdx/search/cdx", url=MANY).body == b""
        assert "Resource Not In Archive" in server.ask("/many", q=f"type:urlquery url:{MANY}").text
        assert json.loads(server.ask("/wayback/available", url=MANY).body)["archived_snapshots"] == {}
        assert server.get(f"/many/timemap/link/{MANY}").status == 404
        assert server.get(f"/many/timegate/{MANY}").status == 404
        assert server.get("/many/report").status == 404
        assert "report" not in server.get("/collinfo.json").text
        assert json.loads(server.ask("/many/cdx", url=MANY, showNumPages="true").body)["pages"] == 0
        assert server.ask("/cdx/search/cdx", url=MANY, showNumPages="true").text == "0\n"
        prefix = server.ask("/many/cdx", url=MANY, matchType="prefix")
        assert prefix.body.count(b"\n") == 5
        pages = json.loads(server.ask("/many/cdx", url=MANY, matchType="prefix", showNumPages="true").body)
        assert (pages["pages"], pages["blocks"]) == (1, 1)
        assert server.ask("/many/cdx", url=MANY, matchType="prefix", page=0).body == prefix.body
        assert server.ask("/many/cdx", url=MANY, matchType="prefix", page=1).status == 400
        assert server.ask("/many/cdx", url=MANY, closest="2020", limit=3).body == b""


def test_an_embargo_holds_in_pages_and_counts(many_cluster: Path) -> None:
    with cdx_server(many_cluster, "--embargo", "after:20200101000959") as server:
        found = server.ask("/many/cdx", url=MANY, output="text", fl="timestamp").text.split()
        assert found[-1] == "20200101000959"
        assert len(found) == 600 < CAPTURES
        pages = json.loads(server.ask("/many/cdx", url=MANY, showNumPages="true", pageSize=1).body)
        assert pages == {"pages": 2, "pageSize": 1, "blocks": 2}
        pages = json.loads(server.ask("/many/cdx", url=MANY, showNumPages="true", pageSize=5).body)
        assert pages == {"pages": 1, "pageSize": 5, "blocks": 2}
        assert "etag" in server.ask("/many/cdx", url=MANY).headers
    with cdx_server(many_cluster, "--embargo", "newer:1y") as server:
        assert "etag" not in server.ask("/many/cdx", url=MANY).headers
