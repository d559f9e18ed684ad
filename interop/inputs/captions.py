"""Bits of H.264: CEA-608 captions as user data, and parameter sets without timing."""


def odd_parity(value):
    """The value with its eighth bit set so that the count of bits is odd."""
    return value | (0x80 if bin(value).count("1") % 2 == 0 else 0)


def pairs(text):
    """Pairs of octets of CEA-608 that pop a caption on, in field 1, channel 1."""
    load, row, show = (0x14, 0x20), (0x14, 0x70), (0x14, 0x2F)
    text = text + " " * (len(text) % 2)
    letters = [(ord(text[at]), ord(text[at + 1])) for at in range(0, len(text), 2)]
    # Commands are sent twice.
    found = [load, load, row, row, *letters, show, show]
    return [(odd_parity(first), odd_parity(second)) for first, second in found]


ERASE = [(odd_parity(0x14), odd_parity(0x2C))] * 2
NOTHING = (0x80, 0x80)


def caption_unit(pair):
    """An SEI NAL unit with one pair: ATSC A/53 part 4, section 6.2.3."""
    cc_data = bytes([0x40 | 0x01, 0xFF, 0xFC, pair[0], pair[1], 0xFF])
    payload = b"\xb5\x00\x31GA94\x03" + cc_data
    message = bytes([4, len(payload)]) + payload + b"\x80"
    return b"\x00\x00\x00\x01" + escaped(b"\x06" + message)


def with_captions(octets, cue):
    """Annex B with the cue on screen from about the first second on, a pair a picture. Pictures begin with delimiters."""
    queue = {30: pairs(cue), 90: ERASE}
    waiting, result, picture, is_begun = [], [], 0, False
    for unit in units(octets):
        kind = unit[0] & 31
        if kind == 9:
            is_begun = False
        elif kind in (1, 5) and not is_begun:
            waiting += queue.get(picture, [])
            result.append(caption_unit(waiting.pop(0) if waiting else NOTHING))
            picture, is_begun = picture + 1, True
        result.append(b"\x00\x00\x00\x01" + unit)
    return b"".join(result)


def units(octets):
    """NAL units between start codes."""
    parts = octets.split(b"\x00\x00\x01")[1:]
    return [part.rstrip(b"\x00") if at + 1 < len(parts) else part for at, part in enumerate(parts)]


def escaped(octets):
    """With emulation prevention."""
    result, zeros = bytearray(), 0
    for octet in octets:
        if zeros >= 2 and octet <= 3:
            result.append(3)
            zeros = 0
        result.append(octet)
        zeros = zeros + 1 if octet == 0 else 0
    return bytes(result)


def plain(octets):
    """Without emulation prevention."""
    return octets.replace(b"\x00\x00\x03", b"\x00\x00")


class Bits:
    """Reads bits of a parameter set."""

    def __init__(self, octets):
        self.text = "".join(f"{octet:08b}" for octet in octets)
        self.at = 0

    def take(self, count):
        """So many bits as a number."""
        found = int(self.text[self.at : self.at + count] or "0", 2)
        self.at += count
        return found

    def skip(self, count):
        """Passes over bits."""
        self.at += count

    def golomb(self):
        """An unsigned Exp-Golomb code."""
        zeros = 0
        while self.take(1) == 0:
            zeros += 1
        return (1 << zeros) - 1 + (self.take(zeros) if zeros else 0)


def timing_at(unit):
    """Place in bits of timing_info_present_flag in the payload of a sequence parameter set: ITU-T H.264, sections 7.3.2.1.1 and E.1.1."""
    bits = Bits(plain(unit))
    bits.at = 8
    profile = bits.take(8)
    bits.take(16)
    bits.golomb()
    if profile in (100, 110, 122, 244):
        chroma = bits.golomb()
        bits.skip(1 if chroma == 3 else 0)
        bits.golomb(), bits.golomb()
        bits.skip(1)
        if bits.take(1):
            raise ValueError("scaling lists")
    bits.golomb()
    order = bits.golomb()
    if order == 0:
        bits.golomb()
    elif order == 1:
        raise ValueError("picture order by cycles")
    bits.golomb()
    bits.skip(1)
    bits.golomb(), bits.golomb()
    bits.skip(0 if bits.take(1) else 1)
    bits.skip(1)
    if bits.take(1):
        [bits.golomb() for _ in range(4)]
    if not bits.take(1):
        return None
    if bits.take(1) and bits.take(8) == 255:
        bits.skip(32)
    bits.skip(1 if bits.take(1) else 0)
    if bits.take(1):
        bits.skip(4)
        bits.skip(24 if bits.take(1) else 0)
    if bits.take(1):
        bits.golomb(), bits.golomb()
    return bits.at


def without_timing(octets):
    """A Matroska file of x264 whose parameter set states no frame rate. The flag is
    cleared and what follows moves up, with zeros behind the stop bit, so that the file keeps its length."""
    # The AVC configuration of Matroska: version 1, profile, …, one parameter set, its length.
    begin = octets.find(b"\x01", 0)
    while begin >= 0:
        is_record = octets[begin + 4 : begin + 6] == b"\xff\xe1" and octets[begin + 8 : begin + 9] == b"\x67"
        if is_record:
            break
        begin = octets.find(b"\x01", begin + 1)
    if begin < 0:
        raise ValueError("no AVC configuration")
    length = int.from_bytes(octets[begin + 6 : begin + 8], "big")
    unit = octets[begin + 8 : begin + 8 + length]
    flag = timing_at(unit)
    text = "".join(f"{octet:08b}" for octet in plain(unit))
    if text[flag] != "1":
        raise ValueError("no timing")
    text = text[:flag] + "0" + text[flag + 65 :]
    text = text[: text.rindex("1") + 1]
    text += "0" * (-len(text) % 8)
    short = escaped(bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8)))
    if len(short) > length:
        raise ValueError("it grew")
    return octets[: begin + 8] + short + b"\x00" * (length - len(short)) + octets[begin + 8 + length :]
