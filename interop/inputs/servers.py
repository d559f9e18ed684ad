"""Servers that inputs are fetched from: HTTP with ranges, and RTSP with what ffmpeg packs into RTP."""

import re
import socket
import struct
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Ranges(SimpleHTTPRequestHandler):
    """Files of a directory, whole or in part."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Answers a request, for one range if it names one."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        octets = path.read_bytes()
        begin, end = 0, len(octets)
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if found:
            begin = min(int(found[1]), len(octets))
            end = min(int(found[2]) + 1, len(octets)) if found[2] else len(octets)
        self.send_response(206 if found else 200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - begin))
        if found:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(octets)}")
        self.end_headers()
        try:
            self.wfile.write(octets[begin:end])
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        """Prints nothing."""


def serve_files(directory):
    """Serves a directory by HTTP; returns the server and its address."""
    handler = type("Handler", (Ranges,), {"__init__": lambda self, *given: SimpleHTTPRequestHandler.__init__(self, *given, directory=str(directory))})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def bound(kind):
    """A socket at a free port of this machine."""
    found = socket.socket(socket.AF_INET, kind)
    found.bind(("127.0.0.1", 0))
    return found


def free_port(kind=socket.SOCK_STREAM):
    """A port that was free a moment ago."""
    with bound(kind) as found:
        return found.getsockname()[1]


def shut(connection):
    """Ends a connection that may have ended."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Camera:
    """An RTSP server over TCP with one film, which begins when it is first played, for all who play it then: RFC 2326, with interleaved RTP."""

    def __init__(self, tools, home, arguments, streams):
        self.home, self.streams = home, streams
        self.ends, outputs = [], []
        for kind in streams:
            rtp, rtcp = self._pair()
            self.ends += [rtp, rtcp]
            # Times before zero stay: each output by itself would be moved to zero.
            shared = ["-avoid_negative_ts", "disabled", "-f", "rtp"]
            outputs += ["-map", f"0:{kind}:0", *arguments[kind], *shared, f"rtp://127.0.0.1:{rtp.getsockname()[1]}"]
        self.command = [tools.ffmpeg, "-nostdin", "-v", "error", "-re", "-i", arguments["input"], *outputs]
        self.sdp = home.path / "camera.sdp"
        tools.run(["-i", arguments["input"], "-t", "0.3", *outputs, "-sdp_file", self.sdp])
        self._drain()
        self.listener = bound(socket.SOCK_STREAM)
        self.listener.listen()
        self.address = f"rtsp://127.0.0.1:{self.listener.getsockname()[1]}/film"
        self.ended, self.pusher, self.players, self.lock = threading.Event(), None, set(), threading.Lock()
        # The last report of each stream, which tells what its times mean.
        self.reports = {}
        threading.Thread(target=self._accept, daemon=True).start()

    @staticmethod
    def _pair():
        """Sockets of an even port and the next."""
        while True:
            rtp = bound(socket.SOCK_DGRAM)
            port = rtp.getsockname()[1]
            rtcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                if port % 2 == 0:
                    rtcp.bind(("127.0.0.1", port + 1))
                    for end in (rtp, rtcp):
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                    return rtp, rtcp
            except OSError:
                pass
            rtp.close()
            rtcp.close()

    def _drain(self):
        """Drops the packets of the run that wrote the description."""
        for end in self.ends:
            end.settimeout(0.01)
            try:
                while True:
                    end.recv(65536)
            except TimeoutError:
                pass

    def _description(self):
        """The session's description, with a control address for each stream."""
        lines, count = [], 0
        for line in self.sdp.read_text().replace("SDP:\n", "").splitlines():
            if line.startswith("m="):
                if count:
                    lines.append(f"a=control:track{count}")
                count += 1
                line = re.sub(r"^(m=\w+) \d+", r"\1 0", line)
            lines.append(line)
        return "\r\n".join([*lines, f"a=control:track{count}", ""])

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        reader = connection.makefile("rb")
        try:
            while line := reader.readline():
                if line[:1] == b"$":
                    line += reader.read(max(4 - len(line), 0))
                    reader.read(struct.unpack(">H", line[2:4])[0] - (len(line) - 4))
                    continue
                headers = {}
                while header := reader.readline().strip():
                    key, _, value = header.decode(errors="replace").partition(":")
                    headers[key.lower()] = value.strip()
                method, url = line.decode(errors="replace").split()[:2]
                self._answer(connection, method, url, headers)
        except (OSError, ValueError):
            pass
        with self.lock:
            self.players.discard(connection)
        connection.close()

    def _answer(self, connection, method, url, headers):
        extra, body = "Session: 1\r\n", ""
        if method == "OPTIONS":
            extra = "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER\r\n"
        elif method == "DESCRIBE":
            body = self._description()
            extra = f"Content-Base: {url}/\r\nContent-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
        elif method == "SETUP":
            channel = (int(url.rsplit("track", 1)[1]) - 1) * 2
            extra += f"Transport: RTP/AVP/TCP;unicast;interleaved={channel}-{channel + 1}\r\n"
        answer = f"RTSP/1.0 200 OK\r\nCSeq: {headers.get('cseq', 0)}\r\n{extra}\r\n{body}"
        with self.lock:
            connection.sendall(answer.encode())
            if method == "PLAY":
                for report in self.reports.values():
                    connection.sendall(report)
                self.players.add(connection)
                self._begin()

    def _begin(self):
        """Begins the film, unless it has begun: who comes later joins it."""
        if self.pusher is None:
            self.pusher = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            for channel, end in enumerate(self.ends):
                threading.Thread(target=self._relay, args=(channel, end), daemon=True).start()

    def _relay(self, channel, end):
        end.settimeout(0.5)
        while True:
            try:
                packet = end.recv(65536)
            except TimeoutError:
                if self.pusher.poll() is not None:
                    break
                continue
            except OSError:
                break
            framed = struct.pack(">cBH", b"$", channel, len(packet)) + packet
            with self.lock:
                if channel % 2:
                    self.reports[channel] = framed
                for player in list(self.players):
                    try:
                        is_sent = player.send(framed, socket.MSG_DONTWAIT) == len(framed)
                    except OSError:
                        is_sent = False
                    if not is_sent:
                        # It has left, or does not read: the others go on.
                        self.players.discard(player)
                        shut(player)
        self.ended.set()

    def wait(self, seconds):
        """Waits for the end of the film; returns whether it ended."""
        return self.ended.wait(seconds)

    def stop(self):
        """Ends the film and all connections."""
        if self.pusher is not None and self.pusher.poll() is None:
            self.pusher.kill()
            self.pusher.wait()
        self.ended.set()
        self.listener.close()
        with self.lock:
            for player in self.players:
                player.close()
