"""A table that Spark writes has the bytes, the failures and the errors of the local engine, in a directory and in S3."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from bench.cdx_corpus import make_lines
from cdxmill.cli.main import main
from cdxmill.commands.exporting.export import export
from cdxmill.errors import InputError, UsageError
from cdxmill.options.exports import Exporting
from cdxmill.running.failures import Failures
from cdxmill.spark.engine import Engine
from cdxmill.spark.exporting import TableRunner
from cdxmill.storage.location import locate
from tests.material.cdx_files import write_plain
from tests.spark.conftest import hashes


@pytest.fixture
def clusters(tmp_path: Path, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with a corrupt block in the working directory, a copy in S3, and a truncated file."""
    monkeypatch.chdir(tmp_path)
    write_plain(tmp_path / "c.cdxj", sorted({line.rstrip() for line in make_lines(Random(7), 3000)}))
    assert main(["zipnum", "-q", "-p", "1", "-s", "2", "--numlines", "100", "-o", "c", "c.cdxj"]) == 0
    _, shard, offset, size, _ = (tmp_path / "c/cluster.idx").read_bytes().splitlines()[12].split(b"\t")
    with (tmp_path / "c" / shard.decode()).open("r+b") as file:
        file.seek(int(offset) + int(size) // 2)
        file.write(bytes(20))
    for path in (tmp_path / "c").iterdir():
        with locate(f"{s3}/c/{path.name}").write_atomic() as copy:
            copy.write(path.read_bytes())
    (tmp_path / "cut.cdxj.gz").write_bytes((tmp_path / "c" / shard.decode()).read_bytes()[:3000])


def exported(run: TableRunner | None, cluster: str, output: str, **options: Any) -> tuple[Any, ...]:
    """The hashes of the files, what failed and the summary; or the error."""
    failures = Failures(printed=False)
    asked = Exporting(cluster, format="parquet", output=output, file_lines=1000, processes=1, **options)
    try:
        summary = export(asked, failures, run)
    except (InputError, UsageError) as error:
        return type(error), str(error)
    return hashes(output), sorted(failures.items), str(summary)


@pytest.mark.usefixtures("clusters")
def test_a_table_is_that_of_the_local_engine(engine: Engine, s3: str) -> None:
    run, some = TableRunner(engine), {"filter": "=status:200", "partition": True}
    local = exported(None, "c", "local")
    assert len(local[0]) == 5 and "missing" in local[1][0].reason
    assert exported(run, "c", "spark") == local
    (there,) = exported(run, f"{s3}/c", f"{s3}/table")[1]
    assert there == local[1][0]._replace(path=local[1][0].path.replace("c/", f"{s3}/c/", 1))
    assert hashes(f"{s3}/table") == local[0]
    assert exported(run, "c", f"{s3}/table") == (UsageError, f"{s3}/table: already exists; use --replace to replace it, or choose another output directory")  # fmt: skip
    found = exported(run, "c", f"{s3}/table", replace=True, **some)
    assert found == exported(None, "c", "some", **some) and len(found[0]) == 5
    damaged = exported(run, "cut.cdxj.gz", "cut")
    assert damaged == exported(None, "cut.cdxj.gz", "cut") and damaged[0] is not UsageError
    assert not Path("cut").exists()
