"""Publishes an input as a file and writes what a watcher gets of it."""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path

# After the end of the input, what is on its way still arrives, in seconds.
SETTLE = 1.5
# Time over the input's own length that publishing may take before it is ended, in seconds.
OVER = 10


@dataclass
class Played:
    """What came of an input."""

    # The file that was written; a playlist where the way out is HLS.
    output: Path | None = None
    catalogue: dict = field(default_factory=dict)
    # What the programs said, for people.
    said: str = ""
    error: str | None = None
    # What was published took so long, in seconds.
    took: float = 0.0
    # What data streams and the subtitles of HLS say.
    text: str = ""
    # Final figures of the watcher.
    stats: dict = field(default_factory=dict)


def output(home, way):
    """Argument of `--output`, and the path of what is written."""
    if way == "hls":
        return f"hls:{home.path / 'live'}", home.path / "live/index.m3u8"
    ending = {"rewind": "mkv", "page": "mkv"}.get(way, way)
    path = home.path / f"out.{ending}"
    return str(path), path


def file_publisher(home, case, source):
    """A function that starts `namecast publish` of the file."""
    command = ["--input", source, *case.publish]
    return lambda: home.start("publish", publish_command(home, command))


def publish_command(home, options):
    """`namecast publish` of the case's name."""
    return home.namecast_command("publish", "/x", *options, *home.connect, "--json", "--stats", home.path / "publish.stats")


def watch_command(home, written, rung, *more):
    """`namecast watch` of the case's name."""
    chosen = ["--rung", rung] if rung else []
    stats = home.path / "watch.stats"
    return home.namecast_command("watch", "/x", "--output", written, *chosen, *home.connect, "--json", "--stats", stats, *more)


def played(home, case, way, begin):
    """Starts forwarder and watcher, has `begin` start what publishes, and returns what came when that has ended."""
    result = Played()
    home.start_forwarder()
    written, result.output = output(home, way)
    if way == "rewind":
        watcher = home.start("archive", home.namecast_command("archive", "/x", "--store", home.path / "store", *home.connect, "--json"))
    else:
        watcher = home.start("watch", watch_command(home, written, case.rung))
    wait_until_running(watcher)
    asked_at = time.time()
    publish(home, case, lambda: with_reader(home, case, watcher, begin), result)
    if way == "rewind":
        watcher = rewind(home, case, written, asked_at, watcher)
    status = watcher.end()
    result.text = shown_text(home, way)
    result.catalogue = catalogue(watcher)
    result.stats = next((line["stats"] for line in reversed(watcher.lines()) if "stats" in line), {})
    if not result.error and status != 0:
        result.error = f"watch ended with {status}: {watcher.said()}"
    return result


def with_reader(home, case, watcher, begin):
    """Starts what publishes; where there are captions, also a watcher of the data streams that the catalogue names."""
    publisher = begin()
    deadline = time.monotonic() + 5
    while case.cue and publisher.is_running and time.monotonic() < deadline:
        streams = catalogue(watcher).get("streams", [])
        if streams:
            names = [stream["name"] for stream in streams if stream["kind"] == "data"]
            for name in names:
                home.start(f"data-{name}", home.namecast_command("watch", "/x", "--stream", name, "--quiet", *home.connect))
            break
        time.sleep(0.02)
    return publisher


def shown_text(home, way):
    """The subtitles of HLS, or what watchers of data streams printed."""
    files = home.path.glob("live/**/*.vtt") if way == "hls" else home.path.glob("data-*.out")
    return "\n".join(file.read_text(errors="replace") for file in files)


def publish(home, case, begin, result=None):
    """Has `begin` start what publishes, and waits for its end; what it says goes into the result, which is returned."""
    result = result or Played()
    publisher = begin()
    limit = case.seconds + OVER
    has_ended = publisher.wait(limit)
    result.took = time.monotonic() - publisher.begun
    if has_ended:
        time.sleep(SETTLE)
    else:
        result.error = f"publishing did not end within {limit:.0f} s"
    status = publisher.end()
    result.said = publisher.said()
    if has_ended and status != 0:
        result.error = f"publish ended with {status}: {result.said}"
    return result


# Seconds behind the beginning that the archive names from which is watched, one after the other; fractions of a second lose up to a microsecond.
REWINDS = (0.000002, 0.1, 0.5)


def rewind(home, case, written, asked_at, archive):
    """Watches from the archive what was published since `asked_at`, with the archive still running. Where it names a later beginning,
    which is when the input was open, that is used; where it has nothing of that, what is a little later."""
    times = [(asked_at, "early")]
    for begin, attempt in times:
        command = watch_command(home, written, case.rung, "--from", f"{begin:.6f}")
        watcher = home.start(attempt, command)
        watcher.wait(case.seconds + SETTLE + 3)
        later = re.search(r"kept begins at (\d+\.\d+)", watcher.out.read_text(errors="replace"))
        if not later:
            break
        if len(times) == 1:
            times += [(float(later[1]) + offset, f"watch-{offset}") for offset in REWINDS]
    archive.end()
    return watcher


def wait_until_running(watcher):
    """Waits until the watcher has printed that it is there, or for a moment."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline and watcher.is_running and not watcher.out.stat().st_size:
        time.sleep(0.02)


def catalogue(watcher):
    """The last catalogue that the watcher printed."""
    return next((line["catalogue"] for line in reversed(watcher.lines()) if "catalogue" in line), {})
