"""Clusters of CDX lines: the fields are those that pywb's reader sees, in all outputs and filters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cdxmill.options.queries import Query
from cdxmill.search.lookup import lookup

if TYPE_CHECKING:
    from tests.conftest import BuildCluster

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")  # pywb imports it

PARAMS: list[dict[str, Any]] = [
    {},
    {"filter": ["=status:200"]},
    {"filter": ["!~mime:text/.*", "url:iana"]},
    {"resolveRevisits": "true"},
    {"resolveRevisits": "true", "fields": "url,orig.filename"},
    {"fields": "urlkey,status,method"},
    {"collapseTime": "8", "limit": "5"},
    {"filter": ["~offset:[0-9]{4}$"], "from": "2014"},
    {"closest": "2014", "limit": "7"},
]


def by_pywb(directory: Path, output: str, params: dict[str, Any]) -> bytes:
    """The answer of pywb's reader and operations, in this process."""
    from pywb.warcserver.index.cdxops import process_cdx
    from pywb.warcserver.index.query import CDXQuery
    from pywb.warcserver.index.zipnum import ZipNumIndexSource

    query = CDXQuery({"url": "*.org", "pageSize": "1000", **params})
    lines = process_cdx(ZipNumIndexSource(str(directory / "cluster.idx")).load_index(query.params), query)
    made = [getattr(line, f"to_{output}")(query.fields) for line in lines]
    return "".join(made).encode()


@pytest.fixture(scope="module", params=["--cdx11", "--cdx9"])
def directory(
    request: pytest.FixtureRequest,
    build_cluster: BuildCluster,
    pywb_archives: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    directory = tmp_path_factory.mktemp("cdx") / "cluster"
    return build_cluster(directory, pywb_archives, 2, "--numlines", "20", request.param).directory


@pytest.mark.parametrize("output", ["cdxj", "json", "text"])
@pytest.mark.parametrize("params", PARAMS, ids=str)
def test_answers_are_those_of_pywb(directory: Path, output: str, params: dict[str, Any]) -> None:
    fields = params.get("fields")
    query = Query(
        from_ts=params.get("from"),
        filter=tuple(params.get("filter", ())),
        collapse=params.get("collapseTime"),
        resolve_revisits="resolveRevisits" in params,
        closest=params.get("closest"),
        limit=int(params["limit"]) if "limit" in params else None,
        fields=tuple(fields.split(",")) if fields else None,
        output=output,
    )
    ours = b"".join(line + b"\n" for line in lookup(directory, "*.org", query))
    assert ours == by_pywb(directory, output, params) != b""
