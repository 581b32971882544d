"""The scripts in bin/ and .ci/run work on a fresh machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAKE_PYTHON = """#!/bin/sh
# A Python that cdxmill runs on. Its venv contains this same script, and its pip only writes notes.
echo "$*" >>"$NOTES"
case "$*" in
    *"-m venv"*) for last; do :; done
        mkdir -p "$last/bin" && cp "$0" "$last/bin/python"
        echo "VIRTUAL_ENV=$last" >"$last/bin/activate" ;;
    *"pip install"*) echo "pip says why"; exit "${PIP_STATUS:-0}" ;;
esac
"""


def too_old(version: str) -> str:
    """A Python that says that it is of this version, and runs only what setup-env asks it."""
    number = tuple(map(int, version.split(".")))
    code = f"import sys; sys.version_info = {number}; exec(sys.argv[1])"
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$2"\n'


class Checkout:
    """A copy of the files that bin/setup-env and .ci/run read, and a PATH with a fake Python."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.directory, self.path, self.notes = (
            directory / "a checkout",
            directory / "path",
            directory / "notes",
        )
        for name in (
            "bin/setup-env",
            "bin/hashed-packages.sh",
            ".ci/run",
            "setup.py",
            "pyproject.toml",
            "hashes.txt",
            "cdxmill/version.py",
            "cdxmill/native/text.h",
        ):
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self.directory / name)
        self.compiled = self.directory / "cdxmill/stages/_native.so"
        self.compiled.parent.mkdir()
        self.compiled.touch()
        self.path.mkdir()
        for tool in (
            "awk",
            "bash",
            "cat",
            "cmp",
            "cp",
            "dirname",
            "flock",
            "grep",
            "mkdir",
            "mktemp",
            "rm",
            "sh",
        ):
            if found := shutil.which(tool):
                (self.path / tool).symlink_to(found)

    def add_python(self, script: str = FAKE_PYTHON, name: str = "python3") -> None:
        (self.path / name).write_text(script)
        (self.path / name).chmod(0o755)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.path), "NOTES": str(self.notes), **variables}
        bash = shutil.which("bash") or "bash"
        # As build servers start scripts: a write to a closed pipe is an error, which has a message.
        return subprocess.run(
            [bash, *command],
            cwd="/",
            env=env,
            capture_output=True,
            text=True,
            check=False,
            restore_signals=False,
        )

    def set_up(self, *extras: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self.run(str(self.directory / "bin/setup-env"), *extras, **variables)

    def installs(self) -> int:
        return self.notes.read_text().count("--require-hashes")


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Checkout:
    return Checkout(root, tmp_path)


@pytest.mark.parametrize("name", [None, "python3", "python3.10"])
def test_without_a_python_that_fits_one_line_says_what_to_install(
    checkout: Checkout, name: str | None
) -> None:
    if name is not None:
        checkout.add_python(too_old("3.10"), name)
    done = checkout.set_up("serve")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"setup-env: no Python 3\.11 to 3\.14 found .*apt install python3 python3-venv\)\n", done.stderr
    )


@pytest.mark.parametrize(
    "name", ["python3", "python3.11", "python3.12", "python3.13", "python3.14", "python"]
)
def test_any_python_that_fits_is_used(checkout: Checkout, name: str) -> None:
    if name != "python3":
        checkout.add_python(too_old("3.10"), "python3")
    checkout.add_python(name=name)
    assert checkout.set_up("serve").returncode == 0
    assert checkout.installs() == 1


def test_without_the_venv_module_one_line_says_what_to_install(checkout: Checkout) -> None:
    checkout.add_python('#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\n')
    done = checkout.set_up("serve")
    assert done.returncode == 1
    assert re.fullmatch(r"setup-env: .*apt install python3-venv\)\n", done.stderr)


def test_the_second_set_up_installs_and_prints_nothing(checkout: Checkout) -> None:
    checkout.add_python()
    assert checkout.set_up("serve", "test").returncode == 0
    assert "--require-hashes -r " in checkout.notes.read_text()
    assert "--no-deps --no-build-isolation -e ." in checkout.notes.read_text()
    again = checkout.set_up("test")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert checkout.installs() == 1


def test_one_more_extra_is_installed_without_a_message_about_pipes(checkout: Checkout) -> None:
    (checkout.directory / "cdxmill/native/text.h").write_text("line\n" * 100_000)  # more than a pipe holds
    checkout.add_python()
    checkout.set_up("serve")
    more = checkout.set_up("serve", "test")
    assert (more.returncode, checkout.installs()) == (0, 2)
    assert re.fullmatch(r"setting up .*\n", more.stderr)


@pytest.mark.parametrize("changed", ["setup.py", "hashes.txt", "cdxmill/native/text.h"])
def test_a_changed_dependency_is_installed(checkout: Checkout, changed: str) -> None:
    checkout.add_python()
    checkout.set_up("serve")
    with (checkout.directory / changed).open("a") as file:
        file.write("# changed\n")
    assert checkout.set_up("serve").returncode == 0
    assert checkout.installs() == 2


def test_without_a_compiler_one_line_is_printed_once(checkout: Checkout) -> None:
    checkout.add_python()
    checkout.compiled.unlink()
    done = checkout.set_up("serve")
    assert done.returncode == 0
    assert done.stderr.splitlines()[1:] == [
        "setup-env: no C compiler or no Python headers found; cdxmill is slower"
    ]
    assert checkout.set_up("serve").stderr == ""


def test_the_compiled_part_is_rebuilt_if_it_is_missing_or_a_compiler_was_installed(
    checkout: Checkout,
) -> None:
    checkout.add_python()
    checkout.set_up("serve")
    checkout.compiled.unlink()
    checkout.set_up("serve")
    (checkout.path / "cc").write_text("#!/bin/sh\n")
    (checkout.path / "cc").chmod(0o755)
    checkout.set_up("serve")
    assert checkout.installs() == 3


def test_a_missing_extra_is_installed(checkout: Checkout) -> None:
    checkout.add_python()
    checkout.set_up("serve")
    checkout.set_up("serve", "bench")
    assert checkout.installs() == 2


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout) -> None:
    checkout.add_python()
    checkout.set_up("serve")
    checkout.directory = checkout.directory.rename(checkout.directory.with_name("moved"))
    assert checkout.set_up("serve").returncode == 0
    assert checkout.notes.read_text().count("-m venv") == 2


def test_a_failed_install_shows_the_output_of_pip_and_is_tried_again(checkout: Checkout) -> None:
    checkout.add_python()
    failed = checkout.set_up("serve", PIP_STATUS="1")
    assert failed.returncode == 1
    assert "pip says why\nsetup-env: pip could not install" in failed.stderr
    assert checkout.set_up("serve").returncode == 0
    assert checkout.installs() == 2


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_runs" />
<testcase classname="tests.test_a" name="test_needs_root"><skipped message="not root" /></testcase>
</testsuite></testsuites>"""


def run_ci(checkout: Checkout, report: str, allowed: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/run with a bin/test that writes this report."""
    (checkout.directory / "bin/test").write_text(
        f"mkdir -p build; echo {shlex.quote(report)} >build/test-report.xml\n"
    )
    (checkout.directory / "bin/test").write_text(
        "#!/usr/bin/env bash\n" + (checkout.directory / "bin/test").read_text()
    )
    (checkout.directory / "bin/test").chmod(0o755)
    (checkout.directory / ".ci/allowed-skips.txt").write_text(allowed)
    return checkout.run(str(checkout.directory / ".ci/run"), PATH=os.environ["PATH"], CDXMILL_VENV=sys.prefix)


def test_ci_fails_on_a_skip_that_is_not_allowed_and_names_it(checkout: Checkout) -> None:
    done = run_ci(checkout, REPORT, "")
    assert done.returncode == 1
    assert (
        done.stderr == "skipped, and not in .ci/allowed-skips.txt: tests.test_a::test_needs_root\tnot root\n"
    )


def test_ci_passes_with_a_skip_that_is_allowed(checkout: Checkout) -> None:
    assert run_ci(checkout, REPORT, "tests.test_a::test_needs_root\tneeds root\n").returncode == 0


def test_ci_fails_if_no_test_ran(checkout: Checkout) -> None:
    assert run_ci(checkout, "<testsuites />", "").returncode == 1


def quickstart(root: Path, cwd: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run bin/quickstart as a person does, in the environment of the tests."""
    env = {**os.environ, "CDXMILL_VENV": sys.prefix}
    return subprocess.run(
        [root / "bin/quickstart", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def typed_commands(output: str) -> list[list[str]]:
    return [shlex.split(line[2:]) for line in output.splitlines() if line.startswith("$ ")]


def test_quickstart_without_files_builds_a_cluster_of_pywb_s_archives_for_pywb(
    root: Path, tmp_path: Path
) -> None:
    done = quickstart(root, tmp_path)
    assert done.returncode == 0, done.stderr
    build, exact, prefix = typed_commands(done.stdout)
    assert build[1:] == ["build", "-o", "quickstart-cluster", "-s", "3", f"{sys.prefix}/sample_archive/warcs"]
    assert exact[1:] == ["lookup", "quickstart-cluster", "http://www.iana.org/"]
    assert prefix[1:] == ["lookup", "quickstart-cluster", "http://www.iana.org/domains/*"]
    assert "\norg,iana)/ 20140126200624 {" in done.stdout
    assert "\norg,iana)/domains/" in done.stdout
    assert "exit status 1: the inputs reported above failed" in done.stdout
    assert (
        f"\nStart it:  {shlex.quote(f'{sys.prefix}/bin/cdxmill')} serve quickstart-cluster\n" in done.stdout
    )


def test_quickstart_accepts_files_with_any_name_and_can_be_run_again(
    root: Path, pywb_warcs: Path, tmp_path: Path
) -> None:
    directory = tmp_path / 'it\'s a "folder" & more'
    directory.mkdir()
    archive = shutil.copy(pywb_warcs / "example2.warc.gz", directory / "my archive.warc.gz")
    first = quickstart(root, tmp_path, "-o", "my cluster/", archive)
    assert first.returncode == 0, first.stderr
    again = quickstart(root, tmp_path, "-o", "my cluster", archive)
    assert again.returncode == 0, again.stderr
    assert ["lookup", "my cluster", "http://example.com/"] in [
        command[1:] for command in typed_commands(again.stdout)
    ]
    assert '\ncom,example)/ 20160225042329 {"url": "http://example.com/"' in again.stdout
    assert "cdxmill serve 'my cluster'\n" in again.stdout
    assert (tmp_path / "my cluster/archives.tsv").read_text() == f"my archive.warc.gz\t{archive}\n"


def test_quickstart_returns_the_exit_status_of_the_build_for_own_files(
    root: Path, pywb_warcs: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes((pywb_warcs / "iana.warc.gz").read_bytes()[:-1000])
    done = quickstart(root, tmp_path, cut)
    assert done.returncode == 1
    assert "cut.warc.gz@" in done.stderr
    assert "Start it:" in done.stdout


def test_quickstart_stops_if_there_is_nothing_to_serve(root: Path, tmp_path: Path) -> None:
    done = quickstart(root, tmp_path, "absent.warc.gz")
    assert done.returncode == 1
    assert done.stderr.endswith("quickstart: there is no cluster; there is nothing to look up or to serve\n")


@pytest.mark.parametrize("args", [["-o"], ["--no-such-option"]])
def test_quickstart_points_to_its_help_on_wrong_usage(root: Path, tmp_path: Path, args: list[str]) -> None:
    done = quickstart(root, tmp_path, *args)
    assert done.returncode == 2
    assert done.stderr.endswith("see bin/quickstart --help\n")
    assert not list(tmp_path.iterdir())
