"""Twelve kinds of input by each way in, the ways out by rotation, so that each kind and each way in meets each way out."""

import dataclasses
import subprocess
import time

from . import catalogue, make, play, servers

# Names in the catalogue, made again with a length of eight seconds and key frames each two.
KINDS = [
    "x264-default",
    "x264-bf0",
    "x264-vfr",
    "rate-29.97",
    "size-360x640",
    "x265-default",
    "vp8-default",
    "vp9-default",
    "av1-mp4",
    "mpeg2-ts",
    "mjpeg-avi",
    "sound-ac3-5.1",
]
WAYS = ["stdin", "http", "hls", "rtmp", "rtmp-publish", "srt", "rtsp", "whip"]

# Codecs that a way carries as they are; others are encoded by the pusher, as people's encoders do.
CARRIES = {
    "stdin": None,
    "http": None,
    "hls": {"h264", "hevc", "mpeg2video", "aac", "mp3", "mp2", "ac3"},
    "rtmp": {"h264", "aac"},
    "rtmp-publish": {"h264", "aac"},
    "srt": {"h264", "hevc", "mpeg2video", "aac", "mp3", "mp2", "ac3", "opus"},
    "rtsp": {"h264", "hevc", "vp8", "mpeg4", "aac", "opus"},
    "whip": None,
}


@dataclasses.dataclass
class Run:
    """One kind by one way in and one way out."""

    case: catalogue.Case
    way: str

    @property
    def name(self):
        """For people."""
        return f"{self.case.name.removesuffix('-8s')}-by-{self.way}"


def runs():
    """All of them."""
    found = {case.name: case for case in catalogue.CASES}
    result = []
    for row, kind in enumerate(KINDS):
        for column, way in enumerate(WAYS):
            case = longer(found[kind], way)
            case.out = catalogue.OUTS[(row + column) % len(catalogue.OUTS)]
            result.append(Run(case, way))
    return result


def longer(case, way):
    """The case with eight seconds and a key frame each two."""
    command = [word.replace(f"duration={case.seconds}", "duration=8").replace(f":d={case.seconds}", ":d=8") for word in case.command]
    interval = ["-g", "50"]
    at = command.index("-c:a")
    command = command[:at] + interval + command[at:]
    more = {"name": f"{case.name}-8s", "is_live": way != "http"}
    if way == "whip":
        # What browsers capture, resample and encode is theirs.
        more |= {"is_encoded_by_pusher": True, "psnr": 20.0, "arrived": 0.97, "twice": 1000, "jitter": 0.5, "pitch": 5.0, "sync": 0.2, "length": 0.02, "lost_sound": 1.0}
    if way == "rtsp":
        # A camera goes on while it is opened, twice where its pictures are reordered, and from the next key frame on.
        more |= {"live_cut": 5.0, "live_tail": 4}
    return dataclasses.replace(case, command=command, seconds=8, publish=[], **more)


def codecs(tools, home, source, way):
    """Options of ffmpeg by kind of stream, and whether the pictures are those of the source: where the way does not carry a codec, the input is
    encoded before, as an encoder that is fed by a file hands over its last second at once, which no live encoder does."""
    carried, path = CARRIES[way], source.path
    video, audio = source.video["codec_name"], source.audio["codec_name"] if source.audio else None
    is_copy = carried is None or video in carried
    if not is_copy or not (carried is None or audio is None or audio in carried):
        path = home.path / "pushed.mkv"
        encoded = ["-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p", "-b:v", "3M"]
        pictures = ["-c:v", "copy"] if is_copy else encoded
        sound = ["-c:a", "copy"] if audio in carried else ["-c:a", "aac", "-b:a", "128k"]
        tools.run(["-i", source.path, "-map", "0:V:0", "-map", "0:a:0?", *pictures, *sound, path])
    options = {"v": ["-c:v", "copy"], "a": ["-c:a", "copy"], "input": path}
    form = video if is_copy else "h264"
    if way in ("srt", "rtsp") and form in ("h264", "hevc"):
        options["v"] += ["-bsf:v", f"{form}_mp4toannexb"]
    return options, is_copy


class Pushed:
    """What `play` waits for: something that pushes, and whoever takes it."""

    def __init__(self, pusher, takers=(), stop=None):
        self.pusher, self.takers, self.stop = pusher, takers, stop
        self.begun = time.monotonic()

    def wait(self, seconds):
        """Waits for the pusher's end; returns whether it ended."""
        return self.pusher.wait(seconds)

    @property
    def is_running(self):
        """Whether those who take it are there."""
        return all(taker.is_running for taker in self.takers)

    def end(self):
        """Ends all; returns 0 unless somebody ended with an error before."""
        failed = [taker.child.returncode for taker in self.takers if not taker.is_running and taker.child.returncode]
        for taker in self.takers:
            taker.end()
        if self.stop:
            self.stop()
        return failed[0] if failed else 0

    def said(self):
        """The last lines of those who take it."""
        return " / ".join(taker.said() for taker in self.takers)


def begin(tools, browser, home, run, source):
    """A function that starts publishing by the run's way."""
    way = run.way
    options, is_copy = codecs(tools, home, source, way)
    run.case.is_encoded_by_pusher |= not is_copy
    both = [*options["v"], *options["a"]] if source.audio else options["v"]
    reading = [tools.ffmpeg, "-nostdin", "-v", "error", "-re", "-i", options["input"], *both]

    def publish(value, **more):
        return home.start("publish", play.publish_command(home, ["--input", value, *run.case.publish]), **more)

    def from_stdin():
        pusher = home.start("pusher", [*reading, "-f", "matroska", "-live", "1", "-"], stdout=subprocess.PIPE)
        return publish("-", stdin=pusher.child.stdout)

    def from_http():
        server, address = servers.serve_files(source.path.parent)
        publisher = publish(f"{address}/{source.path.name}")
        return Pushed(publisher, [publisher], server.shutdown)

    def from_hls():
        directory = home.path / "site"
        directory.mkdir()
        server, address = servers.serve_files(directory)
        home.start("pusher", [*reading, "-f", "hls", "-hls_time", "1", "-hls_list_size", "6", directory / "index.m3u8"])
        deadline = time.monotonic() + 20
        while not (directory / "index.m3u8").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        publisher = publish(f"{address}/index.m3u8")
        return Pushed(publisher, [publisher], server.shutdown)

    def to_server(scheme, container):
        port = servers.free_port()
        ports = {"rtmp": ["--rtmp", f"127.0.0.1:{port}", "--srt", "off"], "srt": ["--rtmp", "off", "--srt", f"127.0.0.1:{port}"]}[scheme]
        command = ["serve", *ports, "--whip-port", "0", "--port", "0", "--json", *home.connect, *run.case.publish]
        server = home.start("serve", home.namecast_command(*command))
        server.first_line()
        address = {"rtmp": f"rtmp://127.0.0.1:{port}/app/x", "srt": f"srt://127.0.0.1:{port}?streamid=x"}[scheme]
        return Pushed(home.start("pusher", [*reading, "-f", container, address]), [server])

    def to_publish():
        port = servers.free_port()
        publisher = publish(f"rtmp://:{port}/key")
        deadline = time.monotonic() + 20
        while publisher.is_running and time.monotonic() < deadline and not is_listening(port):
            time.sleep(0.05)
        return Pushed(home.start("pusher", [*reading, "-f", "flv", f"rtmp://127.0.0.1:{port}/key"]), [publisher])

    def from_camera():
        if source.audio and source.audio["codec_name"] == "opus":
            # By RFC 7587, RTP names two channels whatever the packets hold.
            source.audio["channels"] = 2
        camera = servers.Camera(tools, home, options, ["v", "a"] if source.audio else ["v"])
        return Pushed(camera, [publish(camera.address)], camera.stop)

    def from_browser():
        return browser_pusher(tools, browser, home, run, source)

    return {
        "stdin": from_stdin,
        "http": from_http,
        "hls": from_hls,
        "rtmp": lambda: to_server("rtmp", "flv"),
        "srt": lambda: to_server("srt", "mpegts"),
        "rtmp-publish": to_publish,
        "rtsp": from_camera,
        "whip": from_browser,
    }[way]


def is_listening(port):
    """Whether somebody listens at the port, without connecting to it."""
    with open("/proc/net/tcp") as file:
        local = [line.split() for line in file]
    other = open("/proc/net/tcp6").read().split("\n")
    local += [line.split() for line in other]
    return any(len(words) > 3 and words[1].endswith(f":{port:04X}") and words[3] == "0A" for words in local)


class BrowserPush:
    """A tab that plays a film and pushes it by WHIP."""

    def __init__(self, browser, request, case):
        self.browser, self.request, self.case = browser, request, case
        self.answer = None

    def wait(self, seconds):
        """Waits for the end of the film, which the tab tells."""
        self.answer = self.browser.ask(self.request | {"limit": seconds})
        self.case.sent = self.answer.get("framesSent")
        return bool(self.answer.get("ended"))


def browser_pusher(tools, browser, home, run, source):
    """Starts `serve`, and a tab that pushes to it."""
    server = home.start("serve", home.namecast_command("serve", "--rtmp", "off", "--srt", "off", "--whip-port", "0", "--port", "0", "--json", *home.connect, *run.case.publish))
    about = server.first_line()
    film = home.path / "film.webm"
    tools.run(["-i", source.path, "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "4M", "-g", "50", "-c:a", "libopus", "-ac", "2", film])
    files, address = servers.serve_files(home.path)
    request = {"id": f"whip-{home.path.name}", "push": about["url"], "name": "x", "film": f"{address}/film.webm"}
    return Pushed(BrowserPush(browser, request, run.case), [server], files.shutdown)
