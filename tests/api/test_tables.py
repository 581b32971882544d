"""`cdxmill.export`, and the tables of a `Cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from tests.material.cdx_files import cdxj, write_plain


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    lines = [
        cdxj(f"com,host{number})/", rest=f'{{"url": "http://host{number}.com/"}}') for number in range(5)
    ]
    write_plain(tmp_path / "a.cdxj", lines)
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "c", shards=1, processes=1)
    return tmp_path / "c"


def test_a_cluster_is_a_table(cluster: Path) -> None:
    domains = [f"host{number}.com" for number in range(5)]
    with cdxmill.Cluster(cluster) as opened:
        batches = list(opened.to_arrow())
        assert [batch.num_rows for batch in batches] == [5]
        assert str(batches[0].schema.field("url_host_registered_domain").type) == "string"
        assert batches[0].column("url_host_registered_domain").to_pylist() == domains
        assert opened.to_arrow("http://host1.com/").read_all().num_rows == 1
        assert list(opened.to_pandas("*.com")["url_host_registered_domain"]) == domains
        assert opened.to_polars(limit=2)["url_host_registered_domain"].to_list() == domains[:2]


def test_export_returns_what_it_wrote(cluster: Path, tmp_path: Path) -> None:
    done = cdxmill.export(cluster, format="parquet", output=tmp_path / "t")
    assert (done.captures, done.missing, done.failures) == (5, {}, [])
    with pytest.raises(cdxmill.UsageError, match="already exists"):
        cdxmill.export(cluster, format="parquet", output=tmp_path / "t")


def test_a_cluster_that_changes_while_it_is_exported_gives_no_table(cluster: Path, tmp_path: Path) -> None:
    write_plain(tmp_path / "b.cdxj", [cdxj("com,host9)/", rest='{"url": "http://host9.com/"}')])

    def change(step: cdxmill.Step) -> None:
        if not changes:
            changes.append(cdxmill.add(cluster, tmp_path / "b.cdxj", cdx=True, processes=1))

    output, changes = tmp_path / "t", list[object]()
    with pytest.raises(cdxmill.StoppedError, match="c: it was changed while it was exported; run it again"):
        cdxmill.export(cluster, format="parquet", output=output, processes=1, progress=change)
    assert not list(output.glob("*.parquet"))
    assert cdxmill.export(cluster, format="parquet", output=output, processes=1).captures == 6
