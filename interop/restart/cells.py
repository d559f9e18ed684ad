"""A forwarder is killed without a word and started again; what depended on it comes back by itself.

Usage: cells.py NAMECAST DIRECTORY. The forwarder has a file that names a face and a route; `namecast publish` registers over
Unix, TCP and UDP. Prints a line for each cell, with the milliseconds it took; ends with 1 if one fails. Needs nothing but
Python: the consumer speaks NDN by the few octets that it needs.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

NAMECAST, HOME = sys.argv[1:3]
SOCKET = os.path.join(HOME, "restart.sock")
# What docs/forwarder.md promises applications, from when the forwarder is started again.
BOUND = 2.0
# No other step takes this long, however loaded the machine is.
TIMEOUT = 60.0
# How long the forwarder stays away in each round: applications try again after ever longer pauses.
AWAY = [0, 1, 3]
TRANSPORTS = ["unix", "tcp", "udp"]
LINK_PACKET, FRAGMENT, DATA = 0x64, 0x50, 6
FAR = "udp4://127.0.0.1:9"
started = []


def check(cell, condition, seen=""):
    print(f"{'ok' if condition else 'FAILED'}  restart: {cell} {'' if condition else seen}", flush=True)
    if not condition:
        sys.exit(1)


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def start(*arguments):
    with open(os.path.join(HOME, "restart.log"), "ab") as log:
        process = subprocess.Popen([NAMECAST, *arguments], stdout=subprocess.PIPE, stderr=log)
    started.append(process)
    return process


def said():
    """What the programs had to say."""
    with open(os.path.join(HOME, "restart.log"), encoding="utf-8") as log:
        return "; the programs said: " + log.read()


def start_forwarder():
    """A forwarder that listens."""
    forwarder = start("forwarder", "--json", "--port", "0", "--config", os.path.join(HOME, "restart.toml"))
    check("the forwarder starts", forwarder.stdout.readline().strip().startswith(b"{"), said())
    return forwarder


def asked(*what):
    """What one of our commands tells as JSON."""
    command = [NAMECAST, *what, "--json", "--connect", f"unix://{SOCKET}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def check_configured(when):
    uris = [face["uri"] for face in asked("face", "list")]
    check(f"the file's face is there {when}", FAR in uris, uris)
    routes = [
        (entry["prefix"], route["origin"], route["cost"])
        for entry in asked("route", "list")
        for route in entry["routes"]
    ]
    check(f"the file's route is there {when}", ("/interop/far", 255, 7) in routes, routes)


def element(kind, value):
    """A TLV element with a short type and value."""
    assert len(value) < 253
    return bytes([kind, len(value)]) + value


def interest(transport, nonce):
    """Requests the publisher's metadata, whose newest version begins with this name."""
    words = [element(8, word.encode()) for word in ("interop", "restart", transport)]
    name = element(7, b"".join(words) + element(32, b"metadata"))
    can_be_prefix, must_be_fresh = element(0x21, b""), element(0x12, b"")
    lifetime = element(0x0C, (100).to_bytes(2, "big"))
    return element(5, name + can_be_prefix + must_be_fresh + element(0x0A, nonce.to_bytes(4, "big")) + lifetime)


def read_number(octets, at):
    """A TLV type or length, and where it ends."""
    first = octets[at]
    if first < 253:
        return first, at + 1
    width = {253: 2, 254: 4, 255: 8}[first]
    return int.from_bytes(octets[at + 1 : at + 1 + width], "big"), at + 1 + width


def elements(octets):
    """The whole elements at the start of `octets`, as type and value, and what is left."""
    found, at = [], 0
    while at < len(octets):
        try:
            kind, begin = read_number(octets, at)
            length, begin = read_number(octets, begin)
        except IndexError:
            break
        if begin + length > len(octets):
            break
        found.append((kind, octets[begin : begin + length]))
        at = begin + length
    return found, octets[at:]


def data_in(octets):
    """The values of all Data, whether or not a link packet is around them, and what is left."""
    packets, rest = elements(octets)
    for kind, value in list(packets):
        if kind == LINK_PACKET:
            for field, fragment in elements(value)[0]:
                packets += elements(fragment)[0] if field == FRAGMENT else []
    return [value for kind, value in packets if kind == DATA], rest


class Consumer:
    """Requests all prefixes until each has answered."""

    def __init__(self):
        self.face = socket.socket(socket.AF_UNIX)
        self.face.connect(SOCKET)
        self.face.settimeout(0.02)
        self.nonce = 0

    def answered(self, timeout):
        """When each prefix first answered, by the clock; those that did not are missing."""
        when, rest, until = {}, b"", time.monotonic() + timeout
        while len(when) < len(TRANSPORTS) and time.monotonic() < until:
            for transport in TRANSPORTS:
                if transport not in when:
                    self.nonce += 1
                    self.face.sendall(interest(transport, self.nonce))
            pause = time.monotonic() + 0.02
            while time.monotonic() < pause:
                try:
                    octets = self.face.recv(65536)
                except TimeoutError:
                    break
                if not octets:
                    raise ConnectionError("the forwarder ended")
                data, rest = data_in(rest + octets)
                for transport in TRANSPORTS:
                    name = element(8, b"restart") + element(8, transport.encode())
                    if any(name in value for value in data):
                        when.setdefault(transport, time.monotonic())
        return when


def run():
    udp, tcp = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM)
    with open(os.path.join(HOME, "restart.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'listen = {{ udp = ["127.0.0.1:{udp}"], tcp = ["127.0.0.1:{tcp}"], unix = ["{SOCKET}"] }}\n'
            f'[[face]]\nuri = "{FAR}"\n[[route]]\nprefix = "/interop/far"\nface = "{FAR}"\ncost = 7\n'
        )
    forwarder = start_forwarder()
    check_configured("at first")
    faces = {"unix": f"unix://{SOCKET}", "tcp": f"tcp4://127.0.0.1:{tcp}", "udp": f"udp4://127.0.0.1:{udp}"}
    for transport in TRANSPORTS:
        start(
            *("publish", f"/interop/restart/{transport}", "--connect", faces[transport]),
            *("--input", "test", "--ladder", "200k", "--no-audio", "--quiet", "--keys", os.path.join(HOME, "keys")),
        )
    when = Consumer().answered(TIMEOUT)
    check("applications register over Unix, TCP and UDP", len(when) == len(TRANSPORTS), said())
    for away in AWAY:
        forwarder.send_signal(signal.SIGKILL)
        forwarder.wait()
        time.sleep(away)
        begun = time.monotonic()
        forwarder = start_forwarder()
        listening = time.monotonic()
        when = Consumer().answered(TIMEOUT)
        check_configured(f"after kill -9 and {away} s")
        for transport in TRANSPORTS:
            taken = when.get(transport, float("inf")) - begun
            shown = f"{taken * 1000:.0f} ms after it started, of which it took {(listening - begun) * 1000:.0f} ms to listen"
            check(f"away for {away} s, it has an application over {transport} again {shown}", taken <= BOUND, said())


def start_archive(number):
    """An archive of the publisher over Unix, and the file of its figures."""
    figures = os.path.join(HOME, f"archive{number}.json")
    archive = start(
        *("archive", "/interop/restart/unix", "--connect", f"unix://{SOCKET}", "--store", os.path.join(HOME, "store")),
        *("--stats", figures, "--known-keys", os.path.join(HOME, "known_keys"), "--quiet"),
    )
    return archive, figures


def recorded(figures, wanted):
    """The newest figures of an archive, as soon as it has as many samples as are wanted; none if that takes too long."""
    until, last = time.monotonic() + TIMEOUT, {"samples": 0}
    while last["samples"] < wanted():
        if time.monotonic() > until:
            return None
        time.sleep(0.05)
        if os.path.exists(figures):
            with open(figures, encoding="utf-8") as file:
                whole = [line for line in file if line.endswith("\n")]
            last = json.loads(whole[-1]) if whole else last
    return last


def run_archive():
    """The publisher has the samples of half a minute, so that none is missing after a kill."""
    archive, figures = start_archive(1)
    check("an archive records", recorded(figures, lambda: 60), said())
    archive.send_signal(signal.SIGKILL)
    archive.wait()
    killed = time.monotonic()
    time.sleep(3)
    archive, figures = start_archive(2)

    def all_since():
        """At 30 samples a second; figures are a second old at most. Without those of the three seconds it never has so many."""
        return 30 * (time.monotonic() - killed - 2)

    last = recorded(figures, all_since)
    check("an archive that was killed has what came while it was away", last, said())
    lost = [last[name] for name in ("samples_missing", "samples_incomplete", "records_damaged", "store_failures")]
    check("an archive that was killed lacks nothing", lost == [0] * 4, lost)


try:
    run()
    run_archive()
finally:
    for process in started:
        process.kill()
    for process in started:
        process.wait()
