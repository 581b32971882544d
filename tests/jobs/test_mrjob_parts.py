"""What the jobs need of mrjob's private names: all are in jobs/launcher/mrjob_parts.py, and each does what is said here.

If one of these tests fails with another version of mrjob, that file is the one to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "cdxmill/jobs/launcher/mrjob_parts.py"
PRIVATE = re.compile(
    r"\._(?:opts|upload_mgr|log_interpretations|python_bin|ls_task_logs|hadoop_tmp_dir|runner_class|runner_kwargs|should_cat_output"
    r"|job_key|wd_mgr|steps|env|conf)\b"
)


def test_no_other_module_uses_a_private_name_of_mrjob() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cdxmill/jobs").rglob("*.py")
        if path != PARTS
        and any(not match[0].startswith("self._") for match in PRIVATE.finditer(path.read_text()))
    }
    assert users == set()
    overridden = {
        path.name
        for path in (ROOT / "cdxmill/jobs").rglob("*.py")
        if path != PARTS and re.search(r"\b_(?:cat_file|hadoop_version)\b", path.read_text())
    }
    assert overridden == set()
    imports = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cdxmill").rglob("*.py")
        if path != PARTS and re.search(r"^\s*(?:from|import) mrjob\b", path.read_text(), re.M)
    }
    assert imports == set()


def job(*words: str) -> object:
    from cdxmill.jobs.zipnum_job import ZipNumClusterJob

    return ZipNumClusterJob(["--no-conf", "--splitfile", "s", "--zipnum-dir", "d", *words, "a.cdx"])


def test_the_runner_of_the_options_is_made_from_its_arguments() -> None:
    from cdxmill.jobs.launcher import mrjob_parts

    asked = job(
        "-r", "hadoop", "--python-bin", "/x/python -I", "--jobconf", "a.b=c", "--hadoop-tmp-dir", "hdfs:///t"
    )
    arguments = mrjob_parts.arguments_of(asked)
    runner = mrjob_parts.runner_class_of(asked)(**arguments)
    assert runner.alias == "hadoop"
    assert mrjob_parts.python_of(runner) == ["/x/python", "-I"]
    mrjob_parts.settings_of(runner)["d.e"] = "f"
    assert mrjob_parts.settings_of(runner) == {"a.b": "c", "d.e": "f"}, "what is set is passed on"
    assert mrjob_parts.value_of(runner, "hadoop_tmp_dir") == "hdfs:///t"
    assert mrjob_parts.temporary_directory(runner) == f"hdfs:///t/{runner.get_job_key()}"
    assert mrjob_parts.found_in_logs(runner) == {}


def test_an_uploaded_file_has_a_url_below_the_temporary_directory(tmp_path: Path) -> None:
    from cdxmill.jobs.launcher import mrjob_parts

    asked = job("-r", "hadoop", "--hadoop-tmp-dir", "hdfs:///t")
    runner = mrjob_parts.runner_class_of(asked)(**mrjob_parts.arguments_of(asked))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.cdx").touch()
    urls = [mrjob_parts.uploaded(runner, str(tmp_path / name / "same.cdx")) for name in ("a", "b")]
    assert len(set(urls)) == 2, "files of one name stay apart"
    assert all(url.startswith(f"{mrjob_parts.temporary_directory(runner)}/") for url in urls)


@pytest.mark.parametrize(
    ("words", "prints"), [((), True), (("--no-cat-output",), False), (("--output-dir", "x"), False)]
)
def test_a_job_prints_its_output_unless_it_has_a_directory(words: tuple[str, ...], prints: bool) -> None:
    from cdxmill.jobs.launcher import mrjob_parts

    assert mrjob_parts.prints_output(job(*words)) is prints


def test_the_logs_of_tasks_are_read_for_their_errors(tmp_path: Path) -> None:
    from mrjob.fs.local import LocalFilesystem

    from cdxmill.jobs.launcher import mrjob_parts

    (tmp_path / "stderr").write_text("cdxmill: the reason\n")
    (tmp_path / "syslog").write_text(
        "2026-01-01 00:00:00,000 WARN [main] org.apache.hadoop.mapred.YarnChild: Exception running child : x.Error: y\n"
        "\tat org.x.Y.z(Y.java:1)\n"
    )
    syslog = {"path": str(tmp_path / "syslog"), "container_id": "container_1_0001_01_000002"}
    log = {"path": str(tmp_path / "stderr"), "container_id": "container_1_0001_01_000002", "syslog": syslog}
    found = mrjob_parts.interpret_task_logs(LocalFilesystem(), [log], partial=False)
    (error,) = found["errors"]
    assert error["task_error"]["message"].strip() == "cdxmill: the reason"
    assert "x.Error: y" in error["hadoop_error"]["message"]


def test_an_access_of_our_own_to_hdfs_is_asked_for_files_and_for_the_version() -> None:
    from cdxmill.jobs.launcher import mrjob_parts

    class Own(mrjob_parts.OwnFilesystem):
        def read(self, path: str) -> Iterator[bytes]:
            yield path.encode()

        def ls(self, path_glob: str) -> Iterator[str]:
            yield f"{path_glob}/part-0"

    own = Own(["no-such-hadoop"], "3.4.2")
    assert own.get_hadoop_version() == "3.4.2", "no command is started"
    assert list(own._cat_file("hdfs:///a")) == [b"hdfs:///a"]
