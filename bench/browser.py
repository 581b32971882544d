"""Chromium without a window: the page as a browser shows it. Programs are installed by apt if they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
)
DARK = "--blink-settings=preferredColorScheme=0"
"""For people who like pages dark."""
SECONDS = 120


def find_chromium() -> str:
    """The command of Chromium. Raises RuntimeError as `find_program`."""
    return find_program(NAMES, "chromium")


def find_program(names: Iterable[str], package: str) -> str:
    """The first of these commands that is installed. Raises RuntimeError if none is, and its package cannot be installed."""
    if (found := _on_path(names)) is not None:
        return found
    advice = f"no {package} found; install it (Debian: apt-get install {package})"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise RuntimeError(advice)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
        done = subprocess.run(
            ["apt-get", "-q", *command], env=env, capture_output=True, text=True, check=False
        )
    if (found := _on_path(names)) is None:
        raise RuntimeError(f"{advice}; apt-get: {done.stdout[-500:]}{done.stderr[-500:]}")
    return found


def _on_path(names: Iterable[str]) -> str | None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


def dump_dom(chromium: str, url: str, directory: Path) -> str:
    """The page at `url` as HTML, after its scripts have run."""
    return _run(chromium, directory, "--dump-dom", url)


def screenshot(
    chromium: str,
    url: str,
    picture: Path,
    directory: Path,
    size: tuple[int, int] = (1000, 700),
    *more: str,
) -> None:
    """Write a picture of the page at `url`. `more` are options of Chromium."""
    window = f"--window-size={size[0]},{size[1]}"
    _run(chromium, directory, window, "--hide-scrollbars", *more, f"--screenshot={picture}", url)


def print_pdf(chromium: str, url: str, pdf: Path, directory: Path) -> None:
    """Write the page at `url` as it is printed."""
    _run(chromium, directory, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", url)


def _run(chromium: str, directory: Path, *arguments: str) -> str:
    command = [chromium, *OPTIONS, f"--user-data-dir={directory}/profile", *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"{chromium} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
