"""What scripts that try the command on this machine have in common."""

import os
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


def wait_for(condition, seconds, otherwise):
    """Waits until a condition holds."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(otherwise)
        time.sleep(0.1)
