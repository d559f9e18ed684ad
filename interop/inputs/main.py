"""The command line."""

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import catalogue, judge, make, page, play
from .processes import Gate, Home
from .tools import Film, Tools

ROOT = make.ROOT

USAGE = """\
scripts/inputs list                 names of all inputs, a line each
scripts/inputs make                 make all inputs, and stop
scripts/inputs [NAME…]              judge these, or all; a name may end in *
scripts/inputs quick                judge a third
"""


def parse(arguments):
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="scripts/inputs", description=__doc__, usage=USAGE)
    parser.add_argument("names", nargs="*", help="names of inputs, or one of the words above")
    parser.add_argument("--namecast", help="binary under test; without it NAMECAST_BIN, or what cargo built last")
    parser.add_argument("--ffmpeg", help="ffmpeg, with ffprobe beside it; without it NAMECAST_FFMPEG, or the one on the path")
    parser.add_argument("--jobs", type=int, default=4, help="cases at a time")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    parser.add_argument("--keep", type=Path, help="keep outputs and logs in this directory")
    parser.add_argument("--out", help="way out of all cases: mkv, mp4, hls, nut, rewind or page")
    return parser.parse_args(arguments)


def binary(named):
    """Path of the binary under test."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    candidates = [named or os.environ.get("NAMECAST_BIN")] if named or os.environ.get("NAMECAST_BIN") else [target / "debug/namecast", target / "release/namecast"]
    for candidate in candidates:
        if Path(candidate).is_file():
            return Path(candidate)
    raise SystemExit(f"no binary at {' or '.join(map(str, candidates))}: build it with cargo build -p namecast-cli, or name it with --namecast")


def chosen(names):
    """The cases that are named."""
    if not names:
        return catalogue.CASES
    if names == ["quick"]:
        return [case for case in catalogue.CASES if case.is_quick]
    found = []
    for name in names:
        matching = [case for case in catalogue.CASES if case.name == name or (name.endswith("*") and case.name.startswith(name[:-1]))]
        if not matching:
            raise SystemExit(f"no input '{name}': scripts/inputs list shows them")
        found += matching
    return found


class Runner:
    """Runs cases, some at a time, and prints a line for each."""

    def __init__(self, options):
        self.options, self.tools, self.namecast = options, Tools(options.ffmpeg), binary(options.namecast)
        self.gate, self.results = Gate(options.jobs), []
        self.browser = page.Browser()
        os.environ["NAMECAST_FFMPEG"] = self.tools.ffmpeg

    def run(self, cases):
        """Judges all cases; returns how many failed."""
        begun = time.monotonic()
        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(self.one, cases))
        self.browser.close()
        failed = sum(not result["ok"] for result in self.results)
        print(f"{len(self.results) - failed} of {len(self.results)} inputs are right, {time.monotonic() - begun:.0f} s")
        self.table()
        if self.options.json:
            self.options.json.write_text(json.dumps(self.results, indent=1))
        return failed

    def table(self):
        """Prints how many of each group are right, and of what the others suffer."""
        groups = {}
        for result in self.results:
            groups.setdefault(result["group"], []).append(result)
        for group, results in groups.items():
            kinds = [kind for result in results for kind in result["kinds"]]
            counted = ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))
            print(f"{group:16} {sum(result['ok'] for result in results):3} of {len(results):3}   {counted}")

    def one(self, case):
        """Judges one case."""
        way = self.options.out or case.out
        try:
            verdict = self.verdict(case, way)
        except Exception as error:
            verdict = judge.Judgement()
            verdict.fault("judge", f"{type(error).__name__}: {error}")
        what = "; ".join(sentence for _, sentence in verdict.faults)
        kinds = sorted({kind for kind, _ in verdict.faults})
        result = {"name": case.name, "group": case.group, "out": way, "ok": verdict.is_ok, "kinds": kinds, "what": what, "measured": verdict.measured}
        self.results.append(result)
        figures = " ".join(f"{key} {value}" for key, value in verdict.measured.items())
        print(f"{'ok  ' if verdict.is_ok else 'FAIL'} {case.name} ({way}): {what or figures}", flush=True)

    def verdict(self, case, way):
        """Plays a case and judges it."""
        path = make.make(self.tools, case)
        keep = self.options.keep and self.options.keep / case.name
        with Home(self.namecast, keep) as home:
            if way == "page":
                result, answer = page.played(self.browser, home, case, play.file_publisher(home, case, path))
                verdict = judge.Judgement()
                page.judge(case, Film(self.tools, path), result, answer, verdict)
                return verdict
            played = play.from_file(home, case, path, way)
            source, film = Film(self.tools, path), Film(self.tools, played.output)
            return judge.judge(self.tools, case, source, film, played)


def main(arguments=None):
    """Runs what the command line says; returns the exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if options.names == ["list"]:
        for case in catalogue.CASES:
            print(f"{case.name:32} {case.group:14} {case.out:7}{'quick' if case.is_quick else ''}")
        return 0
    if options.names == ["make"]:
        failures = make.make_all(Tools(options.ffmpeg), catalogue.CASES, options.jobs)
        for name, why in failures.items():
            print(f"FAIL {name}: {why}")
        return 1 if failures else 0
    return 1 if Runner(options).run(chosen(options.names)) else 0
