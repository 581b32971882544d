"""build_local_zipnum.py takes the arguments of webarchive-indexing and writes the same files."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.jobs.conftest import HardInputs, RunJob


def test_the_known_command_line_writes_the_known_files(
    tmp_path: Path, hard_inputs: HardInputs, run_script: RunJob
) -> None:
    sound = [path for path in hard_inputs.paths if path not in hard_inputs.bad]
    done = run_script("bin/build_local_zipnum.py", tmp_path / "out", "-s", "25", "-p", *sound)
    assert done.returncode == 0, done.stderr
    directory = tmp_path / "out"
    shards = [f"cdx-{number:05d}.gz" for number in range(25)]
    assert sorted(path.name for path in directory.glob("cdx-*")) == shards
    assert sorted(path.name for path in directory.glob("part-*")) == [
        f"part-{number:05d}" for number in range(25)
    ]
    lines = b"".join(gzip.decompress((directory / name).read_bytes()) for name in shards)
    assert lines == b"".join(line + b"\n" for line in sorted(hard_inputs.lines))
    summary = (directory / "cluster.summary").read_bytes().splitlines()
    parts = b"".join((directory / f"part-{number:05d}").read_bytes() for number in range(25)).splitlines()
    assert summary == [b"%b\t%d" % (line, number) for number, line in enumerate(parts, 1)]
    locations = [f"{name}\t{directory / name}" for name in shards]
    assert (directory / "cluster.loc").read_text().splitlines() == locations


def test_one_process_ten_shards_and_3000_lines_a_block_are_the_defaults(
    tmp_path: Path, hard_inputs: HardInputs, run_script: RunJob
) -> None:
    done = run_script("bin/build_local_zipnum.py", "out", str(hard_inputs.paths[0]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out").glob("part-*"))) == 10
    assert b'"numlines": 3000' in (tmp_path / "out/cluster.json").read_bytes()


def test_numlines_convert_and_globs_are_passed_on(tmp_path: Path, run_script: RunJob) -> None:
    for name in "ab":
        (tmp_path / f"{name}.cdx").write_text(f"com,{name})/ 2020 http://{name}.com/ 12 0 {name}.warc.gz\n")
    options = ["-l", "1", "-s", "2", "--convert"]
    done = run_script("bin/build_local_zipnum.py", *options, "out", "*.cdx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shard = gzip.decompress((tmp_path / "out/cdx-00000.gz").read_bytes())
    assert (
        shard
        == b'com,a)/ 2020 {"url": "http://a.com/", "length": "12", "offset": "0", "filename": "a.warc.gz"}\n'
    )
    assert b'"numlines": 1,' in (tmp_path / "out/cluster.json").read_bytes()


def test_a_missing_input_is_reported_and_the_rest_is_built(tmp_path: Path, run_script: RunJob) -> None:
    (tmp_path / "a.cdx").write_text("com,a)/ 2020 {}\n")
    done = run_script("bin/build_local_zipnum.py", "out", "-s", "1", "a.cdx", "absent.cdx", cwd=tmp_path)
    assert done.returncode == 1
    assert b"absent.cdx: cannot be read" in done.stderr
    assert gzip.decompress((tmp_path / "out/cdx-00000.gz").read_bytes()) == b"com,a)/ 2020 {}\n"
