"""A command that fails before it writes anything leaves no empty directory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cdxmill.cli.main import main


@pytest.mark.parametrize("source", ["absent", "corrupt.cdxj.gz"])
@pytest.mark.parametrize(
    "command",
    [
        "export --to csv -o out/x/t.csv SOURCE",
        "export --to cdxj -o out/x/t.cdxj.gz SOURCE",
        "export --to parquet -o out/x/t SOURCE",
        "export --to wacz -o out/x/t.wacz SOURCE",
        "copy -o out/x SOURCE example.com",
        "merge -o out/x SOURCE SOURCE",
        "zipnum -o out/x --shards 2 SOURCE",
        "sample -o out/x/splits --shards 2 SOURCE",
        "split-points -o out/x/splits --from-cluster SOURCE",
        "report --html out/x/r.html SOURCE",
        "prefix-index build -o out/x/t.tree SOURCE",
        "publish SOURCE out/x",
        "index -o out/x/t.cdxj SOURCE",
        "reindex -o out/x --offsets SOURCE SOURCE",
        "count tags -o out/x/t SOURCE",
        "train-dictionary -o out/x/d SOURCE",
        "serve SOURCE --write-config out/x",
    ],
)
def test_what_cannot_be_read_leaves_no_directory(
    command: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corrupt.cdxj.gz").write_bytes(gzip.compress(b"com,example)/ 20200101000000 {}\n")[:15])
    assert main(command.replace("SOURCE", source).split()) in (1, 2)
    assert not (tmp_path / "out").exists(), capsys.readouterr().err
