"""The command line."""

import argparse
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import bad, catalogue, judge, make, own, page, play, processes, real, times, ways
from .processes import Home
from .tools import Film, Tools

ROOT = make.ROOT

USAGE = """\
scripts/inputs list                 names of all inputs, a line each
scripts/inputs make                 make all inputs, and stop
scripts/inputs [NAME…]              judge these, or all; a name may end in *
scripts/inputs quick                judge a third
scripts/inputs ways [NAME…]         judge twelve kinds by each way in: all, or those of a way or whose name begins so
scripts/inputs times                measure how long the first picture of 24 inputs takes, one at a time
scripts/inputs real DIRECTORY       judge files of public collections, as interop/inputs/real.json lists them
scripts/inputs bad                  judge how inputs are refused that cannot be played
scripts/inputs judge                test the judge itself with films that have one fault each
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


# Cases that `quick` plays once more.
MAX_REPEATED = 3


class Runner:
    """Runs cases, some at a time, and prints a line for each."""

    def __init__(self, options):
        self.options, self.tools, self.namecast = options, Tools(options.ffmpeg), binary(options.namecast)
        self.results = []
        self.browser = page.Browser()
        os.environ["NAMECAST_FFMPEG"] = self.tools.ffmpeg

    def run(self, cases):
        """Judges all cases; returns the exit status."""
        begun = time.monotonic()
        pages = [case for case in cases if self.way(case) == "page"]
        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(self.one, [case for case in cases if case not in pages]))
        # A page plays live: on a machine that encodes and decodes other cases it passes over what comes late, as it should.
        for case in pages:
            self.one(case)
        if self.options.names == ["quick"]:
            self.repeat(cases)
        self.browser.close()
        return self.finish(f", {time.monotonic() - begun:.0f} s")

    def repeat(self, cases):
        """Plays up to three failed cases once more, each by itself: other work on the machine takes pictures from live playback."""
        failed = [result["name"] for result in self.results if not result["ok"]]
        if len(failed) > MAX_REPEATED:
            return
        self.results = [result for result in self.results if result["ok"]]
        for case in cases:
            if case.name in failed:
                print(f"once more, by itself: {case.name}", flush=True)
                self.one(case)

    def way(self, case):
        """The case's way out."""
        return self.options.out or case.out

    def finish(self, took=""):
        """Prints and writes what came of all; returns the exit status."""
        failed = sum(not result["ok"] for result in self.results)
        self.table()
        print(f"{len(self.results) - failed} of {len(self.results)} are right{took}")
        if self.options.json:
            self.options.json.write_text(json.dumps(self.results, indent=1))
        return 1 if failed else 0

    def table(self):
        """Prints how many of each group are right, and of what the others suffer."""
        groups = {}
        for result in self.results:
            groups.setdefault(result["group"], []).append(result)
        for group, results in groups.items():
            kinds = [kind for result in results for kind in result["kinds"]]
            counted = ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))
            print(f"{group:16} {sum(result['ok'] for result in results):3} of {len(results):3}   {counted}")

    def one(self, case, name=None, begin=None):
        """Judges one case; `begin` makes what starts publishing, if it is no file."""
        way, name = self.way(case), name or case.name
        try:
            verdict = self.verdict(case, name, way, begin or self.file)
        except Exception as error:
            verdict = judge.Judgement()
            verdict.fault("judge", f"{type(error).__name__}: {error}")
        what = "; ".join(sentence for _, sentence in verdict.faults)
        kinds = sorted({kind for kind, _ in verdict.faults})
        result = {"name": name, "group": case.group, "out": way, "ok": verdict.is_ok, "kinds": kinds, "what": what, "measured": verdict.measured}
        self.results.append(result)
        figures = " ".join(f"{key} {value}" for key, value in verdict.measured.items())
        print(f"{'ok  ' if verdict.is_ok else 'FAIL'} {name} ({way}): {what or figures}", flush=True)

    @staticmethod
    def file(home, case, source):
        """A function that publishes the source as a file."""
        return play.file_publisher(home, case, source.path)

    def verdict(self, case, name, way, begin):
        """Plays a case and judges it."""
        source = Film(self.tools, make.make(self.tools, case))
        keep = self.options.keep and self.options.keep / name
        with Home(self.namecast, keep) as home:
            started = begin(home, case, source)
            if way == "page":
                result, answer = page.played(self.browser, home, case, started)
                verdict = judge.Judgement()
                page.judge(case, source, result, answer, verdict)
                return verdict
            played = play.played(home, case, way, started)
            return judge.judge(self.tools, case, source, Film(self.tools, played.output), played)

    def by_ways(self, names):
        """Judges kinds of input by all ways in; returns the exit status."""
        begun = time.monotonic()

        def one(run):
            begin = lambda home, case, source: ways.begin(self.tools, self.browser, home, run, source)
            run.case.group = f"by {run.way}"
            self.one(run.case, run.name, begin)

        runs = [run for run in ways.runs() if not names or any(run.name.startswith(name.rstrip("*")) or run.way == name for name in names)]
        # Tabs play and push in real time: on a machine that encodes and decodes other cases they leave pictures out.
        of_tabs = [run for run in runs if run.way == "whip" or self.way(run.case) == "page"]
        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(one, [run for run in runs if run not in of_tabs]))
        for run in of_tabs:
            one(run)
        self.browser.close()
        return self.finish(f", {time.monotonic() - begun:.0f} s")


def main(arguments=None):
    """Runs what the command line says; returns the exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    for interrupt in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interrupt, processes.end_all)
    if options.names == ["list"]:
        for case in catalogue.CASES:
            print(f"{case.name:32} {case.group:14} {case.out:7}{'quick' if case.is_quick else ''}")
        return 0
    if options.names == ["make"]:
        failures = make.make_all(Tools(options.ffmpeg), catalogue.CASES, options.jobs)
        for name, why in failures.items():
            print(f"FAIL {name}: {why}")
        return 1 if failures else 0
    if options.names == ["judge"]:
        return 1 if own.run(Tools(options.ffmpeg)) else 0
    runner = Runner(options)
    if options.names == ["bad"]:
        runner.results = bad.run(runner.tools, runner.namecast, options.jobs, options.keep)
        return runner.finish()
    if options.names[:1] == ["real"]:
        if len(options.names) != 2:
            raise SystemExit("scripts/inputs real takes one directory")
        runner.results = real.run(runner.tools, runner.namecast, options.names[1], options)
        return runner.finish()
    if options.names == ["times"]:
        runner.results = times.run(runner.tools, runner.namecast)
        return runner.finish()
    if options.names[:1] == ["ways"]:
        return runner.by_ways(options.names[1:])
    return runner.run(chosen(options.names))
