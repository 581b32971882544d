"""Run processes in a network namespace that has only loopback. They share files, pids and users with all others.

A network is identified by a mark: a variable NAME=VALUE in the environment of its processes. All processes in the
namespace of a marked process belong to it, whoever started them. No file has to be kept up to date for this.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40  # <linux/sockios.h>, <linux/if.h>


class Process(NamedTuple):
    """A process: its pid, and its arguments with a NUL after each."""

    pid: int
    command: bytes


class _Seen(NamedTuple):
    process: Process
    namespace: str
    is_marked: bool


def _look(pid: int, mark: str) -> _Seen:
    directory = Path(f"/proc/{pid}")
    is_marked = mark.encode() in (directory / "environ").read_bytes().split(b"\0")
    return _Seen(
        Process(pid, (directory / "cmdline").read_bytes()), str((directory / "ns/net").readlink()), is_marked
    )


def members(mark: str) -> list[Process]:
    """All processes in the network with this mark; none if this process is in it."""
    seen = []
    for pid in [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]:
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            seen.append(_look(pid, mark))
    marked = {one.namespace for one in seen if one.is_marked} - {str(Path("/proc/self/ns/net").readlink())}
    return [one.process for one in seen if one.namespace in marked]


def end(mark: str) -> None:
    """Kill all members, which ends the network. Raises TimeoutError if one still runs after 20 s."""
    deadline = time.monotonic() + 20
    while alive := members(mark):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes did not end: {' '.join(str(one.pid) for one in alive)}")
        for one in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        time.sleep(0.02)


def new() -> list[str]:
    """The prefix of a command that makes it run in a new network. Raises OSError."""
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        raise OSError("no unshare or nsenter found; install util-linux")
    for options in ([], ["--map-root-user"]):
        prefix = ["unshare", "--net", "--uts", *options, "--"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
            return prefix
    raise OSError("cannot create a network namespace; run as root, or allow user namespaces for your user")


def joined(pid: int) -> list[str]:
    """The prefix of a command that makes it run in the network of process `pid`."""
    namespaces = Path(f"/proc/{pid}/ns")
    prefix = ["nsenter", f"--net={namespaces}/net", f"--uts={namespaces}/uts"]
    if (namespaces / "user").readlink() != Path("/proc/self/ns/user").readlink():
        prefix += [f"--user={namespaces}/user", "--preserve-credentials"]
    return [*prefix, "--"]


def raise_loopback() -> None:
    """Inside a new network: do `ip link set lo up`, and set a host name that can be resolved."""
    socket.sethostname("localhost")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
