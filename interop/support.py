#!/usr/bin/env python3
"""Asks a forwarder, as our links ask their neighbours, whether it speaks our link header fields, and looks whether the face works on.

    interop/support.py SOCKET ANSWERS

SOCKET is the forwarder's Unix socket. With ANSWERS "yes" it has to answer; with "no", to pass over the question. Either way, the Interest
that the question rides on has to be answered, and another after a frame that carries nothing but our answer.
"""

import socket
import sys

LP_PACKET, FRAGMENT, INTEREST, DATA = 100, 80, 5, 6
SUPPORT = 880
QUESTION, ANSWER = 1, 2
TIMEOUT = 10


def element(number, value):
    """A TLV element; value is octets."""
    kind = bytes([number]) if number < 253 else b"\xfd" + number.to_bytes(2, "big")
    assert len(value) < 253
    return kind + bytes([len(value)]) + value


def interest(nonce):
    """For the forwarder's status, which every forwarder of NDN has."""
    words = ["localhost", "nfd", "status", "general"]
    name = element(7, b"".join(element(8, word.encode()) for word in words))
    return element(INTEREST, name + element(0x21, b"") + element(0x12, b"") + element(10, nonce.to_bytes(4, "big")))


def link_packet(support, packet=None):
    """With the field that asks or answers."""
    fields = element(SUPPORT, bytes([support]))
    return element(LP_PACKET, fields + (element(FRAGMENT, packet) if packet else b""))


def read_element(octets, at):
    """Type, value and end of the element that begins there; None if it is not whole."""

    def number(at):
        if at >= len(octets):
            return None, at
        first = octets[at]
        size = {253: 2, 254: 4, 255: 8}.get(first, 0)
        if size == 0:
            return first, at + 1
        end = at + 1 + size
        return (int.from_bytes(octets[at + 1 : end], "big"), end) if end <= len(octets) else (None, at)

    kind, at = number(at)
    length, at = number(at)
    if kind is None or length is None or at + length > len(octets):
        return None
    return kind, octets[at : at + length], at + length


class Face:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(path)
        self.received = b""
        self.answers = 0

    def fetch(self, frame):
        """Sends it, and waits for Data."""
        self.socket.sendall(frame)
        while True:
            found = read_element(self.received, 0)
            if found is None:
                more = self.socket.recv(65536)
                if not more:
                    sys.exit("the forwarder closed the face")
                self.received += more
                continue
            kind, value, end = found
            self.received = self.received[end:]
            if kind == DATA or kind == LP_PACKET and self.has_data(value):
                return

    def has_data(self, fields):
        at, has_data = 0, False
        while at < len(fields):
            kind, value, at = read_element(fields, at)
            has_data |= kind == FRAGMENT and value[:1] == bytes([DATA])
            if kind == SUPPORT and value == bytes([ANSWER]):
                self.answers += 1
            elif kind == SUPPORT:
                sys.exit(f"field {SUPPORT} came with {value.hex()}")
        return has_data


def main():
    path, expected = sys.argv[1:]
    face = Face(path)
    try:
        face.fetch(link_packet(QUESTION, interest(1)))
        face.socket.sendall(link_packet(ANSWER))
        face.fetch(interest(2))
    except TimeoutError:
        sys.exit("an Interest with the question, or after it, was not answered")
    answers = "yes" if face.answers else "no"
    if answers != expected:
        sys.exit(f"it answers: {answers}")
    print(f"answers: {answers}, and the face works")


main()
