"""One wheel, built from the sdist, works in a fresh environment of every Python of this machine that cdxmill supports."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ..material.cdx_server import cdx_server

ROOT = Path(__file__).resolve().parents[2]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
TOO_OLD = ("3.9", "3.10")
EXTRA = re.compile(r"""cdxmill\[([a-z0-9,]+)\]|install_extra\(["']([a-z0-9]+)["']\)""")

ANSWERS = {
    "/a/cdx?url=iana.org": "org,iana)/ 20140126200624 {",
    "/b/timemap/link/http://iana.org/": 'datetime="Sun, 26 Jan 2014 20:06:24 GMT"',
    "/c/available?url=iana.org": "20140126200624",
}
"""A question for each way to answer, and a part of the answer."""

pytestmark = pytest.mark.xdist_group("install")


def found(version: str) -> Path | None:
    """A Python of this version: on the PATH, or of pyenv."""
    roots = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    ours = [Path(sys.executable)] if sys.version_info[:2] == tuple(map(int, version.split("."))) else []
    on_path = [Path(path) for path in (shutil.which(f"python{version}"),) if path]
    for python in (*ours, *sorted(roots.glob(f"{version}.*/bin/python")), *on_path):
        # a command of pyenv exists for a version that is not chosen, too
        if not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
            return python
    return None


PYTHONS = {version: python for version in SUPPORTED if (python := found(version)) is not None}
OLD_PYTHONS = {version: python for version in TOO_OLD if (python := found(version)) is not None}


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed. Returns its output and its messages."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_TARGET"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**env, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sdist")
    source = directory / "checkout"
    ours = ("build", ".*", "*.egg-info", "__pycache__", "*.so", "tests", "quickstart-cluster*")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*ours))
    run(sys.executable, "-m", "build", "-q", "-n", "--sdist", "-o", directory, source, cwd=directory)
    (path,) = directory.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, which every Python can use."""
    directory = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q")
    run(*pip, "wheel", "--no-deps", "-w", directory, sdist, cwd=directory)
    (path,) = directory.glob("cdxmill-*-cp311-abi3-*.whl")
    return path


@pytest.fixture(scope="module")
def environments(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each Python, a new environment with cdxmill[jobs,server]."""
    directories = {version: tmp_path_factory.mktemp(f"python{version}") for version in PYTHONS}

    def install(version: str) -> Path:
        directory = directories[version]
        run(PYTHONS[version], "-m", "venv", "--without-pip", directory / "env", cwd=directory)
        pip = (
            sys.executable,
            "-m",
            "pip",
            "--python",
            directory / "env/bin/python",
            "--disable-pip-version-check",
            "--no-input",
            "-q",
        )
        run(
            *pip,
            "install",
            "--no-compile",
            "-c",
            ROOT / "constraints.txt",
            f"{wheel}[jobs,server]",
            cwd=directory,
        )
        return directory / "env"

    with ThreadPoolExecutor() as threads:  # most of the time they wait for the network
        return dict(zip(PYTHONS, threads.map(install, PYTHONS), strict=True))


@pytest.fixture(params=PYTHONS)
def env(request: pytest.FixtureRequest, environments: dict[str, Path]) -> Path:
    """An environment with cdxmill[jobs,server]."""
    return environments[request.param]


@pytest.fixture(scope="module")
def own_env(environments: dict[str, Path]) -> Path:
    """The environment with the same version of Python as that of the tests."""
    return environments[f"{sys.version_info.major}.{sys.version_info.minor}"]


def test_the_wheel_works(env: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    cdxmill = env / "bin/cdxmill"
    assert "(compiled; Python " in run(cdxmill, "--version", cwd=tmp_path)
    run(cdxmill, "index", "-o", "cdx", pywb_warcs / "iana.warc.gz", cwd=tmp_path)
    run(cdxmill, "zipnum", "-s", "2", "-o", "zipnum", "cdx", cwd=tmp_path)
    run(cdxmill, "build", "-s", "2", "-o", "cluster", pywb_warcs / "iana.warc.gz", cwd=tmp_path)
    lines = run(cdxmill, "lookup", "cluster", "http://www.iana.org/*", cwd=tmp_path)
    assert lines.startswith("org,iana)/ 2014")
    assert lines == run(cdxmill, "lookup", "zipnum", "http://www.iana.org/*", cwd=tmp_path)
    split = ("--splitfile", "cluster/splits.txt", "--zipnum-dir", "job", "cdx")
    job = (
        env / "bin/python",
        "-W",
        "error::SyntaxWarning",
        env / "share/cdxmill/jobs/zipnumclusterjob.py",
        "--no-conf",
        "-q",
    )
    run(*job, "-r", "local", "--num-cores", "1", *split, cwd=tmp_path)
    for shard in (tmp_path / "cluster").glob("cdx-*.gz"):
        assert (tmp_path / "job" / shard.name).read_bytes() == shard.read_bytes()


def test_the_server_answers(env: Path, pywb_warcs: Path, tmp_path: Path) -> None:
    """The first question to each collection waits until it is open."""
    cdxmill = env / "bin/cdxmill"
    run(cdxmill, "build", "-q", "-o", "web", pywb_warcs / "iana.warc.gz", cwd=tmp_path)
    collections = (f"{name}={tmp_path / 'web'}" for name in "abc")
    with cdx_server(*collections, "--replay", "http://replay.example/", cdxmill=cdxmill) as server:
        for question, part in ANSWERS.items():
            for answer in (server.get(question), server.get(question)):
                assert answer.status == 200, answer
                assert part in answer.text
        assert server.stop() == (0, "")


def test_the_wheel_has_what_the_pages_name(own_env: Path) -> None:
    share = own_env / "share/cdxmill"
    names = {str(path.relative_to(ROOT)) for path in (ROOT / "conf").glob("*.conf")}
    names |= {
        "bootstrap.sh",
        "jobs/dosample.py",
        "conf/pywb/config.yaml",
        "conf/openwayback/ZipNumCollection.xml",
    }
    for name in names:
        assert (share / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_links_of_the_package_page_are_urls(own_env: Path) -> None:
    (path,) = own_env.glob("lib/python*/site-packages/cdxmill-*.dist-info")
    header, _, text = (path / "METADATA").read_text().partition("\n\n")
    assert "\nLicense-Expression: Apache-2.0\n" in header
    assert header.count("\nProject-URL: ") == header.count(", https://") == 3
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_pipx_installs_it(wheel: Path, tmp_path: Path) -> None:
    variables = {f"PIPX_{name}": str(tmp_path / name.lower()) for name in ("HOME", "BIN_DIR", "MAN_DIR")}
    run(sys.executable, "-m", "pipx", "install", "-q", wheel, cwd=tmp_path, **variables)
    assert "(compiled; " in run(tmp_path / "bin_dir/cdxmill", "--version", cwd=tmp_path)


@pytest.fixture
def package_index(sdist: Path) -> Iterator[str]:
    """The URL of a package index that has only the sdist."""
    (sdist.parent / "cdxmill").mkdir(exist_ok=True)
    link = f'<a href="../{sdist.name}" data-requires-python="&gt;=3.11">{sdist.name}</a>'
    (sdist.parent / "cdxmill/index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(sdist.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def refusal(python: Path, directory: Path, *arguments: str | Path) -> str:
    """The messages of a pip that refuses to install."""
    done = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "download", "-d", directory, *arguments],
        cwd=directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("PIP_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_pip_refuses_an_old_python(package_index: str, own_env: Path, tmp_path: Path) -> None:
    (metadata,) = own_env.glob("lib/python*/site-packages/cdxmill-*.dist-info/METADATA")
    assert "\nRequires-Python: >=3.11\n" in metadata.read_text()
    for python in OLD_PYTHONS.values():
        said = refusal(python, tmp_path, "-i", package_index, "cdxmill")
        assert "Requires-Python >=3.11" in said
        assert said.splitlines()[-1] == "ERROR: No matching distribution found for cdxmill"


def test_an_old_python_of_a_node_does_not_load_the_compiled_module() -> None:
    """Python 3.10 could: it has all functions that the module calls, but it is not made for it."""
    for python in OLD_PYTHONS.values():
        show = "from cdxmill.stages import native; print(native.Merger)"
        assert run(python, "-B", "-c", show, cwd=ROOT) == "None\n"


def test_a_checkout_refuses_an_old_python(sdist: Path, tmp_path: Path) -> None:
    for version, python in OLD_PYTHONS.items():
        said = refusal(python, tmp_path, "--no-deps", "--no-build-isolation", sdist)
        assert f"cdxmill needs Python 3.11 or later; this is Python {version}." in said


def sources() -> Iterator[Path]:
    for directory in ("cdxmill", "bin", "jobs", "docs", "conf"):
        yield from (
            path
            for path in (ROOT / directory).rglob("*")
            if path.suffix in ("", ".py", ".md", ".sh", ".conf")
        )
    yield from ROOT.glob("*.md")


def test_every_extra_that_is_named_exists() -> None:
    exist = set(importlib.metadata.metadata("cdxmill").get_all("Provides-Extra") or [])
    texts = [path.read_text() for path in sources() if path.is_file()]
    named = {
        name for text in texts for found in EXTRA.findall(text) for name in ",".join(found).split(",") if name
    }
    assert {"jobs", "s3", "serve"} <= named
    assert named <= exist
