"""Tests of the judge: films with one fault each, made by ffmpeg of an input, and the kind of fault that has to be found."""

import tempfile
from pathlib import Path

from . import catalogue, judge, make, play
from .tools import Film

COPY = ["-c", "copy"]
ENCODED = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "15", "-c:a", "flac"]

# Of user data that says nothing to anybody.
UUID = "086f3693-b7b3-4f2c-9653-21492feee5b8"

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
    "a copy with another packet": (["-bsf:v", f"h264_metadata=sei_user_data={UUID}+x", *COPY], ["octets"]),
    "another rate": (["-vf", "fps=20", *ENCODED], ["lost", "rate"]),
}  # fmt: skip


# Kinds whose reference takes filters or what a container says, encoded as a publisher should.
RIGHT = ["hdr10", "hlg", "interlaced-mpeg2", "interlaced-mpeg2-bottom", "mirror", "rotation-90", "edit-list", "anamorphic-16-11", "x264-full-range", "gif", "sound-late-ts"]


def run(tools):
    """Judges all films, prints a line for each, and returns how many were judged wrong."""
    found = {case.name: case for case in catalogue.CASES}
    wrong = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, (arguments, kinds) in FAULTS.items():
            case = found["x264-bf0"]
            wrong += not is_judged(tools, case, name, arguments, kinds, Path(directory) / "film.mkv")
        for name in RIGHT:
            case = found[name]
            filters = f"{case.reference}scale='trunc(iw*sar/2)*2':ih:flags=bilinear,setsar=1,format=yuv420p"
            tags = ["-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-color_range", "tv"]
            encoder = ["-c:v", "libx264", "-preset", "veryfast", "-b:v", "3M", "-c:a", "libopus", "-fps_mode", "passthrough"]
            arguments = ["-vf", filters, *encoder, *(tags if case.is_hdr else [])]
            wrong += not is_judged(tools, case, name, arguments, [], Path(directory) / "film.mkv")
    return wrong


def is_judged(tools, case, name, arguments, kinds, path):
    """Makes a film of the case's input, and returns whether the judge finds faults of these kinds in it, or none."""
    source = Film(tools, make.make(tools, case))
    tools.run(["-y", "-i", source.path, *arguments, path])
    film = Film(tools, path)
    rung = {"name": "copy" if "copy" in arguments else "1M", "bitrate": 1}
    if film.video:
        rung |= {"width": film.video["width"], "height": film.video["height"]}
    played = play.Played(output=path, catalogue={"streams": [{"kind": "video", "codec": "h264", "rungs": [rung]}]})
    verdict = judge.judge(tools, case, source, film, played)
    found = [kind for kind, _ in verdict.faults]
    is_right = set(kinds) <= set(found) and bool(kinds) == bool(found)
    sentences = "; ".join(sentence for _, sentence in verdict.faults) or "right"
    print(f"{'ok  ' if is_right else 'FAIL'} {name}: {sentences}", flush=True)
    return is_right
