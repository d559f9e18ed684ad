"""ffmpeg and ffprobe: what they say of a file, and the pictures and sound that they decode of it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from . import strip, tone

# No decoding of eight seconds takes this long, however loaded the machine is, in seconds.
LIMIT = 240


class Tools:
    """The two programs, by `NAMECAST_FFMPEG` or on the path."""

    def __init__(self, ffmpeg=None):
        named = ffmpeg or os.environ.get("NAMECAST_FFMPEG") or "ffmpeg"
        found = shutil.which(named)
        if found is None:
            raise SystemExit(f"no ffmpeg at {named}: install it, or name it with --ffmpeg")
        self.ffmpeg = found
        beside = Path(found).with_name("ffprobe")
        # Static builds come without.
        self.ffprobe = str(beside) if beside.exists() else shutil.which("ffprobe")
        if self.ffprobe is None:
            raise SystemExit(f"no ffprobe beside {found} or on the path: install it")

    def run(self, arguments, limit=LIMIT, check=True):
        """Runs ffmpeg; returns its standard output, and raises what it said if it failed."""
        command = [self.ffmpeg, "-hide_banner", "-nostdin", "-v", "error", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, timeout=limit)
        if check and done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise RuntimeError(f"ffmpeg: {said[-1] if said else done.returncode}")
        return done.stdout

    def probe(self, path, *more):
        """What ffprobe says of the file's streams, as a dictionary."""
        command = [self.ffprobe, "-v", "error", "-of", "json", "-show_streams", "-show_format", *more, str(path)]
        done = subprocess.run(command, capture_output=True, timeout=LIMIT)
        return json.loads(done.stdout or b"{}")


def stream(probed, kind):
    """The first stream of the kind that is no attached picture, and whose codec ffmpeg knows; None if there is none. Its `place` is how ffmpeg
    names it: streams of other kinds have other numbers in other versions."""
    of_kind = [found for found in probed.get("streams", []) if found.get("codec_type") == kind]
    for number, found in enumerate(of_kind):
        is_poster = found.get("disposition", {}).get("attached_pic") == 1
        if "codec_name" in found and not is_poster:
            return found | {"place": f"{kind[0]}:{number}"}
    return None


def ratio(text, unless=0.0):
    """A fraction as ffprobe writes it."""
    try:
        above, below = text.replace(":", "/").split("/")
        return int(above) / int(below)
    except (AttributeError, ValueError, ZeroDivisionError):
        return unless


class Film:
    """A file as it is decoded: numbers and times of its pictures, and the runs of its tone."""

    def __init__(self, tools, path):
        self.path = Path(path)
        self.probed = tools.probe(path, "-show_programs") if self.path.exists() else {}
        self.video, self.audio = stream(self.probed, "video"), stream(self.probed, "audio")
        self.numbers, self.times, self.runs = [], [], []
        if self.video or self.audio:
            self._read(tools)

    @property
    def video_map(self):
        """The stream's specifier for ffmpeg."""
        return f"0:{self.video['place']}"

    def _read(self, tools):
        # One process for both: of streams that it does not read, ffmpeg leaves the times out of the file's beginning.
        cells, sound = (self.path.with_name(f"{self.path.name}.{os.getpid()}-{id(self)}.{kind}") for kind in ("cells", "sound"))
        arguments = ["-y", "-i", self.path]
        if self.video:
            filters = f"[{self.video_map}]{strip.reading()},settb=1/1000000,split[cells][times]"
            shared = ["-fps_mode", "passthrough", "-enc_time_base", "1:1000000", "-c:v", "rawvideo"]
            arguments += ["-filter_complex", filters, "-map", "[times]", *shared, "-f", "framecrc", "-"]
            arguments += ["-map", "[cells]", *shared, "-f", "rawvideo", cells]
        if self.audio:
            # Gaps become silence, so that the place of a sample is its time.
            filters = f"aresample={tone.RATE}:async=1:min_hard_comp=0.02:first_pts=0"
            arguments += ["-map", f"0:{self.audio['place']}", "-af", filters, "-ac", "1", "-ar", tone.RATE]
            arguments += ["-c:a", "pcm_s16le", "-f", "s16le", sound]
        lines = tools.run(arguments, check=False).decode().splitlines()
        self.times = [int(line.split(",")[2]) / 1e6 for line in lines if line and line[0] != "#"]
        octets, each = taken(cells), strip.OCTETS
        self.numbers = [strip.number(octets[at : at + each]) for at in range(0, len(octets) - each + 1, each)]
        self.runs = tone.runs(taken(sound))

    @property
    def span(self):
        """From the first picture to the last, in seconds."""
        return max(self.times) - min(self.times) if len(self.times) > 1 else 0.0


def taken(path):
    """Octets of a file, which is deleted."""
    octets = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    return octets


def payloads(tools, path, specifier, codec):
    """Digests of a stream's packets without parameter sets and delimiters, which may be repeated or left out."""
    filters = {
        "h264": "h264_mp4toannexb,filter_units=remove_types=7-9",
        "hevc": "hevc_mp4toannexb,filter_units=remove_types=32-35",
        "av1": "filter_units=remove_types=1-2",
    }.get(codec, "null")
    arguments = ["-i", path, "-map", specifier, "-c", "copy", "-bsf:v", filters, "-copyinkf", "-f", "framemd5", "-"]
    lines = tools.run(arguments, check=False).decode().splitlines()
    return [line.split(",")[5].strip() for line in lines if line and line[0] != "#"]


def similarity(tools, source, film, pairs, filters):
    """PSNR in dB of each pair of pictures (place in the source, place in the film), the source through `filters`."""
    size = f"{film.video['width']}:{film.video['height']}"
    log = film.path.with_name(film.path.name + ".psnr")

    def chosen(places):
        return f"select='{'+'.join(ranges(places))}',settb=1/1000000,setpts=N"

    first, second = chosen([pair[1] for pair in pairs]), chosen([pair[0] for pair in pairs])
    graph = (
        f"[0:{film.video['place']}]{first},format=yuv420p[film];"
        f"[1:{source.video['place']}]{filters}{second},scale={size}:flags=bilinear,setsar=1,format=yuv420p[source];"
        f"[film][source]psnr=stats_file={escaped(log)}[out]"
    )
    arguments = ["-i", film.path, "-i", source.path, "-filter_complex", graph, "-map", "[out]", "-fps_mode", "passthrough"]
    tools.run([*arguments, "-f", "null", "-"], check=False)
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [float(field(line, "psnr_avg")) for line in lines]


def field(line, name):
    """Value of `name:` in a line of psnr's statistics."""
    return line.split(f"{name}:")[1].split()[0]


def escaped(path):
    """A path as a filter graph takes it."""
    return str(path).replace("\\", "\\\\").replace(":", "\\:").replace("'", "\\'")


def ranges(places):
    """Conditions on the frame's number that hold for these places."""
    found, begin = [], None
    for at, place in enumerate(places):
        begin = place if begin is None else begin
        if at + 1 == len(places) or places[at + 1] != place + 1:
            found.append(f"between(n,{begin},{place})")
            begin = None
    return found
