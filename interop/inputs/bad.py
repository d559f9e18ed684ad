"""Inputs that cannot be played: each is refused within seconds, by one sentence with its name and the reason, and by the exit status."""

import os
import signal
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .processes import Home

# How long a refusal may take, in seconds.
LIMIT = 5.0
# Words of a sentence that names the reason; one of them suffices.
REASONS = {
    "truncated": ["truncated", "cut", "incomplete", "moov", "index"],
    "empty": ["empty", "0 bytes", "no data", "nothing"],
    "encrypted": ["encrypted", "protected", "DRM", "key"],
    "zero-size": ["0x0", "0 × 0", "size"],
    "too-large": ["16384", "large", "size"],
    "many-streams": ["streams"],
    "endless-header": ["header", "silent", "no media", "nothing", "within", "recogni"],
    "extreme-times": ["time"],
    "text": ["text", "media", "format", "recogni", "Invalid data"],
    "folder": ["directory", "folder"],
    "missing": ["no file", "not exist", "No such", "there is no", "no such"],
    "pipe-that-goes": ["ended", "gone", "left", "closed", "end"],
}


def small(tools, target, *options):
    """A film of two seconds."""
    source = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2", "-f", "lavfi", "-i", "sine=duration=2"]
    tools.run(["-y", *source, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf", "0", "-c:a", "aac", *options, target])
    return target


def truncated(tools, path):
    """An MP4 whose index, at its end, is missing."""
    octets = small(tools, path / "truncated.mp4").read_bytes()
    (path / "truncated.mp4").write_bytes(octets[: len(octets) * 2 // 3])
    return path / "truncated.mp4"


def empty(_tools, path):
    """A file of no octets."""
    (path / "empty.mp4").touch()
    return path / "empty.mp4"


def encrypted(tools, path):
    """An MP4 with common encryption, whose key nobody has."""
    key = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "00112233445566778899aabbccddeeff", "-encryption_kid", "112233445566778899aabbccddeeff00"]
    return small(tools, path / "encrypted.mp4", *key)


def patched_sizes(tools, target, width, height):
    """A film whose sample entry states another size; raw pictures, so that nothing else states one."""
    source = ["-f", "lavfi", "-i", "testsrc2=size=64x64:rate=25:duration=1"]
    tools.run(["-y", *source, "-c:v", "rawvideo", "-pix_fmt", "yuyv422", target])
    octets = bytearray(target.read_bytes())
    at = octets.index(b"stsd")
    # The sample entry begins 12 octets behind, and its width 32 behind that: ISO/IEC 14496-12, section 12.1.3.
    octets[at + 12 + 32 : at + 12 + 36] = struct.pack(">HH", width, height)
    target.write_bytes(octets)
    return target


def zero_size(tools, path):
    """Pictures without pixels."""
    return patched_sizes(tools, path / "zero.mov", 0, 0)


def too_large(tools, path):
    """Pictures of 16384 × 16384."""
    return patched_sizes(tools, path / "large.mov", 16384, 16384)


def many_streams(_tools, path):
    """An MPEG transport stream whose tables name 10⁴ streams, in 40 programs."""
    target = path / "many.ts"
    with open(target, "wb") as file:
        programs = 40
        pat = b"".join(struct.pack(">HH", number + 1, 0xE000 | (0x100 + number)) for number in range(programs))
        write_section(file, 0, 0, 1, pat)
        pid = 0x200
        for number in range(programs):
            entries = b""
            for _ in range(200):
                entries += struct.pack(">BHH", 0x1B, 0xE000 | pid, 0xF000)
                pid = pid + 1 if pid < 0x1FF0 else 0x200
            write_section(file, 0x100 + number, 2, number + 1, struct.pack(">HH", 0xE200, 0xF000) + entries)
        # 10⁴ in all: further ones are elementary streams without any content.
        for at in range(2000):
            file.write(bytes([0x47, 0x40 | (0x200 + at) >> 8, (0x200 + at) & 255, 0x10]) + b"\x00\x00\x01\xe0\x00\x00\x80\x00\x00" + b"\xff" * 175)
    return target


def write_section(file, pid, table, number, content):
    """One section of a table in as many packets as it needs: ISO/IEC 13818-1, section 2.4.4."""
    head = struct.pack(">HBBB", number, 0xC1, 0, 0)
    section = struct.pack(">BH", table, 0xB000 | (len(head) + len(content) + 4)) + head + content
    section += struct.pack(">I", crc32(section))
    payload, counter = b"\x00" + section, 0
    while payload:
        part, payload = payload[:184], payload[184:]
        start = 0x40 if counter == 0 else 0
        file.write(bytes([0x47, start | pid >> 8, pid & 255, 0x10 | counter & 15]) + part + b"\xff" * (184 - len(part)))
        counter += 1


def crc32(octets):
    """CRC-32/MPEG-2."""
    crc = 0xFFFFFFFF
    for octet in octets:
        crc ^= octet << 24
        for _ in range(8):
            crc = ((crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


class Endless(BaseHTTPRequestHandler):
    """Answers with an MP4 whose first box never ends."""

    def do_GET(self):
        """Sends a header, and then zeros for as long as somebody reads."""
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4")
        self.end_headers()
        try:
            self.wfile.write(struct.pack(">I4sI4sI", 20, b"ftyp", 0x69736F6D, b"\x00\x00\x02\x00", 0x69736F6D))
            self.wfile.write(struct.pack(">I4sQ", 1, b"moov", 1 << 60))
            while True:
                self.wfile.write(b"\x00" * 4096)
                time.sleep(0.05)
        except OSError:
            pass

    def log_message(self, *_):
        """Prints nothing."""


def endless_header(_tools, _path):
    """An address whose header never ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/film.mp4"


def extreme_times(tools, path):
    """A Matroska file whose clusters are at the ends of what a time can be."""
    target = small(tools, path / "times.mkv", "-cluster_time_limit", "200")
    octets = bytearray(target.read_bytes())
    at = octets.index(b"\x1f\x43\xb6\x75")
    count = 0
    while at >= 0:
        # Cluster, its size in eight octets or fewer, Timestamp (0xE7).
        stamp = octets.index(b"\xe7", at, at + 16)
        length = octets[stamp + 1] & 0x7F
        extreme = (1 << (8 * length)) - 1 if count % 2 else 1 << (8 * length - 1)
        octets[stamp + 2 : stamp + 2 + length] = extreme.to_bytes(length, "big")
        count += 1
        at = octets.find(b"\x1f\x43\xb6\x75", at + 4)
    # Ticks of the largest unit, so that the products leave 63 bits.
    scale = octets.index(b"\x2a\xd7\xb1")
    length = octets[scale + 3] & 0x7F
    octets[scale + 4 : scale + 4 + length] = b"\xff" * length
    target.write_bytes(octets)
    return target


def text(_tools, path):
    """A letter with the ending of a film."""
    (path / "letter.mp4").write_text("Dear reader, this is no film.\n" * 100)
    return path / "letter.mp4"


def folder(_tools, path):
    """A directory with the ending of a film."""
    (path / "folder.mp4").mkdir()
    return path / "folder.mp4"


def missing(_tools, path):
    """A file that does not exist."""
    return path / "missing.mp4"


def pipe_that_goes(_tools, path):
    """A named pipe whose writer leaves after a few octets, as a device does that is unplugged."""
    target = path / "camera.ts"
    os.mkfifo(target)

    def write():
        with open(target, "wb") as pipe:
            pipe.write(b"\x47\x40\x00\x10" + b"\xff" * 184)

    threading.Thread(target=write, daemon=True).start()
    return target


CASES = {
    "truncated": truncated,
    "empty": empty,
    "encrypted": encrypted,
    "zero-size": zero_size,
    "too-large": too_large,
    "many-streams": many_streams,
    "endless-header": endless_header,
    "extreme-times": extreme_times,
    "text": text,
    "folder": folder,
    "missing": missing,
    "pipe-that-goes": pipe_that_goes,
}


def judge(tools, namecast, name, keep=None):
    """Publishes one bad input; returns what is wrong, or nothing, and what was said."""
    with Home(namecast, keep and keep / f"bad-{name}") as home:
        home.start_forwarder()
        source = CASES[name](tools, home.path)
        command = home.namecast_command("publish", "/x", "--input", source, "--quiet", *home.connect)
        process = home.start("publish", command)
        has_ended = process.wait(LIMIT)
        took = time.monotonic() - process.begun
        status = process.end(signal.SIGKILL)
        said = [line for line in process.err.read_text(errors="replace").replace("\r", "\n").splitlines() if line.strip()]
        faults = []
        if not has_ended:
            faults.append(f"goes on for more than {LIMIT:.0f} s")
        elif status == 0:
            faults.append("ends with status 0")
        if len(said) != 1:
            faults.append(f"says {len(said)} lines instead of one")
        whole = " ".join(said)
        shown = str(source).rsplit("/", 1)[-1]
        if shown not in whole:
            faults.append(f"does not name {shown}")
        if not any(word.lower() in whole.replace(shown, "").lower() for word in REASONS[name]):
            faults.append("does not name the reason")
        if any(word in whole for word in ("panicked", "0x55", "0x56", "0x7f")):
            faults.append("shows pointers or a panic")
        return faults, f"{took:.1f} s: {whole[:300]}"


def run(tools, namecast, jobs, keep=None):
    """Judges all bad inputs, prints a line for each, and returns their results."""

    def one(name):
        try:
            faults, said = judge(tools, namecast, name, keep)
        except Exception as error:
            faults, said = [f"{type(error).__name__}: {error}"], ""
        what = f"{'; '.join(faults)} ({said})" if faults else said
        print(f"{'FAIL' if faults else 'ok  '} bad-{name}: {what}", flush=True)
        return {"name": f"bad-{name}", "group": "bad inputs", "out": "", "ok": not faults, "kinds": ["refusal"] if faults else [], "what": what, "measured": {}}

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, CASES))
