"""Makes inputs, each once: the file's name has the digest of all that it is made from."""

import hashlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import edits

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "inputs"
_locks, _guard = {}, threading.Lock()


def path(case):
    """Where the case's file is, or will be."""
    recipe = json.dumps([case.command, case.ext, case.edits, edits.VERSION if case.edits else 0])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    return CACHE / f"{case.name}-{digest}.{case.ext}"


def make(tools, case):
    """Makes the file unless it is there; returns its path."""
    target = path(case)
    with _guard:
        lock = _locks.setdefault(target, threading.Lock())
    with lock:
        if not target.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            # Of another recipe.
            for old in CACHE.glob(f"{case.name}-{'?' * 12}.{case.ext}"):
                old.unlink()
            unfinished = target.with_name(f"{os.getpid()}-{target.name}")
            try:
                tools.run(["-y", *case.command, "-fflags", "+bitexact", unfinished])
                for name, arguments in case.edits:
                    getattr(edits, name)(tools, unfinished, *arguments)
                unfinished.rename(target)
            finally:
                unfinished.unlink(missing_ok=True)
    return target


def make_all(tools, cases, jobs):
    """Makes the files of all cases; returns what went wrong by name."""
    failures = {}

    def one(case):
        try:
            make(tools, case)
        except Exception as error:
            failures[case.name] = str(error)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, cases))
    return failures
