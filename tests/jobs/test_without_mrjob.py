"""mrjob is an extra. Without it, every start script that needs it says in one line what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "mrjob is not installed; pip install './cdxmill[jobs]', with a checkout in ./cdxmill\n"
NEED_IT = ("indexwarcsjob", "samplecdxjob", "dosample", "zipnumclusterjob")
HIDE = """import sys
class Hide:
    def find_spec(name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Hide)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_without(tmp_path: Path) -> Run:
    """Runs a Python script in which one module cannot be imported."""

    def run(missing: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        (tmp_path / "sitecustomize.py").write_text(HIDE.format(missing=missing))
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, *args], env=env, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    return run


@pytest.mark.parametrize("name", NEED_IT)
def test_a_job_names_the_extra(name: str, run_without: Run) -> None:
    done = run_without("mrjob", ROOT / f"jobs/{name}.py", "--help")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", INSTALL)


def test_a_module_that_mrjob_needs_is_named_too(run_without: Run) -> None:
    done = run_without("pipes", ROOT / "jobs/samplecdxjob.py", "--help")
    assert done.returncode == 2
    assert done.stderr.startswith("mrjob cannot be imported (")
    assert "pipes" in done.stderr
    assert done.stderr.endswith("); pip install './cdxmill[jobs]', with a checkout in ./cdxmill\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["jobs/seqfileutils.py", "bin/build_local_zipnum.py"])
def test_other_scripts_do_not_need_it(name: str, run_without: Run) -> None:
    assert run_without("mrjob", ROOT / name, "--help").returncode == 0
