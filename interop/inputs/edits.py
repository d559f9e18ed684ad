"""Changes to files that ffmpeg made, for what it does not write by itself. Each takes the file's path and replaces the file."""

import struct

from . import captions

# Counted up where an edit changes, so that files are made again.
VERSION = 2


def turn(_tools, path, degrees, mirrored=None):
    """Sets the display matrix of an MP4's first video track: a clockwise turn, or a picture that is mirrored along `x` or `y`."""
    octets = bytearray(path.read_bytes())
    one = 1 << 16
    cosine, sine = {0: (one, 0), 90: (0, one), 180: (-one, 0), 270: (0, -one)}[degrees]
    matrix = [cosine, sine, 0, -sine, cosine, 0, 0, 0, 1 << 30]
    if mirrored:
        place = {"x": 0, "y": 4}[mirrored]
        matrix[place] = -matrix[place]
    at = -1
    while (at := octets.find(b"tkhd", at + 1)) >= 0:
        # Version 0: ISO/IEC 14496-12, section 8.3.2; width and height follow the matrix, and only pictures have them.
        begin = at + 4 + 40
        if any(octets[begin + 36 : begin + 44]):
            octets[begin : begin + 36] = struct.pack(">9i", *matrix)
            break
    else:
        raise RuntimeError(f"{path.name} has no video track")
    path.write_bytes(octets)


def again(tools, path, arguments):
    """Runs ffmpeg from the file to itself."""
    other = path.with_name("other-" + path.name)
    tools.run(["-y", *arguments, other])
    other.rename(path)


def trim(tools, path, begin):
    """Cuts away the beginning by an edit list: packets from the key frame before it on stay in the file."""
    again(tools, path, ["-ss", begin, "-i", path, "-c", "copy"])


def cover(tools, path):
    """Attaches a picture, as shops do for songs."""
    drawn = ["-f", "lavfi", "-i", "color=red:size=200x200:duration=1:rate=1"]
    maps = ["-map", "0", "-map", "1:v", "-c", "copy"]
    place = 0 if path.suffix == ".flac" else 1
    again(tools, path, ["-i", path, *drawn, *maps, f"-c:v:{place}", "png", "-frames:v:1", "1", f"-disposition:v:{place}", "attached_pic"])


def attach_cover(tools, path):
    """Attaches a picture as Matroska does."""
    picture = path.with_name("cover-" + path.stem + ".png")
    tools.run(["-y", "-f", "lavfi", "-i", "color=red:size=200x200", "-frames:v", "1", picture])
    again(tools, path, ["-i", path, "-map", "0", "-c", "copy", "-attach", picture, "-metadata:s:t", "mimetype=image/png", "-metadata:s:t", "filename=cover.png"])
    picture.unlink()


def subtitle(tools, path, cue, codec):
    """Adds a track of subtitles with two cues."""
    text = path.with_name("cues-" + path.stem + ".srt")
    text.write_text(f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n\n2\n00:00:02,500 --> 00:00:03,500\nSECOND CUE\n")
    again(tools, path, ["-i", path, "-i", text, "-map", "0", "-map", "1", "-c", "copy", "-c:s", codec])
    text.unlink()


def raw(tools, path):
    """The H.264 of a file as Annex B."""
    return tools.run(["-i", path, "-map", "0:v:0", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", "-"])


def replaced(tools, path, octets, rate):
    """Puts other H.264 in the place of the file's, with the times of a constant rate; there must be no B-frames."""
    bare = path.with_name("bare-" + path.stem + ".h264")
    bare.write_bytes(octets)
    again(tools, path, ["-r", rate, "-i", bare, "-i", path, "-map", "0:v", "-map", "1:a", "-c", "copy"])
    bare.unlink()


def caption(tools, path, cue):
    """Adds CEA-608 captions, which H.264 carries as user data."""
    replaced(tools, path, captions.with_captions(raw(tools, path), cue), "30000/1001")


def strip_timing(_tools, path):
    """Leaves the frame rate out of the parameter sets of a Matroska file, in place."""
    octets = path.read_bytes()
    path.write_bytes(captions.without_timing(octets))
