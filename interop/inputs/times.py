"""How long the first picture takes: 24 inputs, one at a time, as nothing else may run meanwhile."""

import time

from . import catalogue, judge, make, play
from .processes import Home
from .tools import Film, ratio

NAMES = [
    "x264-default", "x264-bf0", "x264-bf8", "x264-pyramid-normal", "x264-open-gop", "x264-vfr", "rate-5", "rate-24", "rate-60",
    "size-96x64", "size-1920x1080", "size-3840x2160-60M", "x265-default", "vp8-default", "vp9-default", "av1-mp4", "mpeg2-ts", "mpeg4-avi-bf2",
    "mjpeg-avi", "prores-mov", "container-fragmented", "container-flv", "sound-late", "interlaced-mpeg2",
]  # fmt: skip
# From the start of `namecast publish`, besides the frames that reordering holds back, in seconds.
LIMIT = 1.0
# Octets of a recording beyond its header, which holds no more than parameter sets.
HEADER = 1_500


def first_picture(home, case, source):
    """Seconds from the start of `publish` until a watcher that was there before writes a picture; None if there is none."""
    home.start_forwarder()
    written, path = play.output(home, "nut")
    watcher = home.start("watch", play.watch_command(home, written, case.rung, "--no-audio"))
    play.wait_until_running(watcher)
    time.sleep(0.5)
    publisher = play.file_publisher(home, case, source)()
    took = None
    while time.monotonic() - publisher.begun < 10 and publisher.is_running:
        if path.exists() and path.stat().st_size > HEADER:
            took = time.monotonic() - publisher.begun
            break
        time.sleep(0.002)
    publisher.end()
    watcher.end()
    return took


def run(tools, namecast):
    """Measures all, prints a line for each, and returns their results."""
    results = []
    found = {case.name: case for case in catalogue.CASES}
    for name in NAMES:
        case = found[name]
        path = make.make(tools, case)
        source = Film(tools, path)
        depth = source.video.get("has_b_frames", 0)
        rate = ratio(source.video.get("avg_frame_rate"), 25.0) or 25.0
        limit = LIMIT + (depth + 1) / rate
        verdict = judge.Judgement()
        with Home(namecast) as home:
            took = first_picture(home, case, path)
        verdict.measured |= {"first": took and round(took, 2), "limit": round(limit, 2), "depth": depth}
        if took is None:
            verdict.fault("first", "no picture")
        elif took > limit:
            verdict.fault("first", f"the first picture comes after {took:.2f} s instead of {limit:.2f}")
        what = verdict.faults[0][1] if verdict.faults else f"{took:.2f} s of {limit:.2f}"
        print(f"{'ok  ' if verdict.is_ok else 'FAIL'} {name}: {what}", flush=True)
        kinds = [kind for kind, _ in verdict.faults]
        results.append({"name": name, "group": "first picture", "out": "nut", "ok": verdict.is_ok, "kinds": kinds, "what": what, "measured": verdict.measured})
    return results
