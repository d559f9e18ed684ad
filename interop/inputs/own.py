"""Tests of the judge: films with one fault each, made by ffmpeg of an input, and the kind of fault that has to be found."""

import dataclasses
import tempfile
from pathlib import Path

from . import catalogue, judge, make, play
from .tools import Film

COPY = ["-c", "copy"]
ENCODED = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "15", "-c:a", "flac"]

# Name: arguments of ffmpeg between the input and the output, the kinds of faults, of which at least the first has to be found.
FAULTS = {
    "copy": (COPY, []),
    "encoded": (ENCODED, []),
    "half-speed": (["-vf", "setpts=2*PTS", *ENCODED], ["length"]),
    "a picture is missing": (["-vf", "select='not(eq(n,40))'", "-fps_mode", "vfr", *ENCODED], ["lost"]),
    "a picture twice": (["-vf", "select='not(eq(n,40))',fps=25", *ENCODED], ["lost"]),
    "the last second is missing": (["-t", "3", *ENCODED], ["lost"]),
    "grey": (["-vf", "drawbox=y=ih/6:t=fill:color=gray", *ENCODED], ["likeness"]),
    "mirrored": (["-vf", "hflip", *ENCODED], ["pictures"]),
    "upside down": (["-vf", "vflip", *ENCODED], ["pictures"]),
    "turned": (["-vf", "transpose=clock", *ENCODED], ["pictures"]),
    "out of order": (["-vf", "random=frames=5:seed=1", *ENCODED], ["order"]),
    "stretched": (["-vf", "scale=320:360,setsar=1", *ENCODED], ["aspect"]),
    "lowered pitch": (["-af", "asetrate=44100*0.918,aresample=44100,atempo=1/0.918", *ENCODED], ["pitch"]),
    "late sound": (["-af", "adelay=100:all=1", *ENCODED], ["sync"]),
    "no sound": (["-an", "-c", "copy"], ["sound"]),
    "a second without sound": (["-af", "volume=0:enable='between(t,1.9,3.1)'", *ENCODED], ["sound"]),
    "no pictures": (["-vn", "-c", "copy"], ["pictures"]),
    "other channels": (["-ac", "2", *ENCODED], ["sound"]),
    "a copy with another packet": (["-bsf:v", "noise=amount='if(eq(n,60),50,0)'", *COPY], ["octets"]),
    "another rate": (["-vf", "fps=20", *ENCODED], ["lost", "rate"]),
}  # fmt: skip


def run(tools):
    """Judges all films, prints a line for each, and returns how many were judged wrong."""
    case = next(case for case in catalogue.CASES if case.name == "x264-bf0")
    case = dataclasses.replace(case, cue=None)
    source = Film(tools, make.make(tools, case))
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, (arguments, kinds) in FAULTS.items():
            path = Path(directory) / f"{name}.mkv".replace(" ", "-")
            tools.run(["-y", "-i", source.path, *arguments, path])
            rung = {"name": "copy" if COPY[0] in arguments and "-c" in arguments else "1M", "bitrate": 1, "width": 640, "height": 360}
            played = play.Played(output=path, catalogue={"streams": [{"kind": "video", "codec": "h264", "rungs": [rung]}]})
            film = Film(tools, path)
            if film.video:
                rung |= {"width": film.video["width"], "height": film.video["height"]}
            verdict = judge.judge(tools, case, source, film, played)
            found = [kind for kind, _ in verdict.faults]
            is_right = set(kinds) <= set(found) and bool(kinds) == bool(found)
            wrong += not is_right
            sentences = "; ".join(sentence for _, sentence in verdict.faults) or "right"
            print(f"{'ok  ' if is_right else 'FAIL'} {name}: {sentences}", flush=True)
    return wrong
