"""What scripts that try the command on this machine have in common."""

import os
import socket
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def binary(named):
    """Path of the binary under test: `named`, else NAMECAST_BIN, else what cargo built last."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    named = named or os.environ.get("NAMECAST_BIN")
    candidates = [Path(named)] if named else [target / "debug/namecast", target / "release/namecast"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise SystemExit(f"no binary at {' or '.join(map(str, candidates))}: build it with cargo build -p namecast-cli, or name it with --namecast")


def free_port():
    """A UDP port that nobody listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(home):
    """Environment of a program that keeps its files in `home`."""
    names = ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
    return {**os.environ, **{name: str(home) for name in names}}


def wait_for(condition, seconds, otherwise):
    """Waits until a condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(otherwise)
        time.sleep(0.1)
