#!/usr/bin/env python3
"""Writes seeds of the fuzz targets of media, as real encoders make them: ffmpeg with x264, x265, libaom, libvpx, aac, opus, flac, ac3.

Run in this directory. Small pictures and little sound: a seed has 2 kB at most.
"""

import os
import struct
import subprocess

LIMIT = 2_000
PICTURE = "-f lavfi -i testsrc2=size=64x48:rate=10:duration=0.2"
SOUND = "-f lavfi -i sine=duration=0.06:sample_rate=48000"
VIDEO = {
    "h264": "-c:v libx264 -crf 51 -bf 0 -g 2",
    "h264_b": "-c:v libx264 -crf 51 -bf 2 -g 4",
    "hevc": "-c:v libx265 -crf 51 -x265-params log-level=none:info=0",
    "av1": "-c:v libaom-av1 -cpu-used 8 -crf 63 -usage realtime",
    "vp9": "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -crf 63",
    "vp8": "-c:v libvpx -deadline realtime -crf 63",
}
AUDIO = {
    "aac": "-c:a aac -b:a 16k",
    "opus": "-c:a libopus -b:a 8k",
    "flac": "-c:a flac",
    "ac3": "-c:a ac3 -b:a 32k",
}


def ffmpeg(line):
    """Returns what ffmpeg writes to its standard output."""
    if "lavfi -i testsrc2" in line:
        line = line.replace("-c:v", "-pix_fmt yuv420p -c:v")
    words = ["ffmpeg", "-loglevel", "error", *line.split(), "-flags", "+bitexact", "-"]
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout


def write(target, name, octets, limit=LIMIT):
    """Writes a seed, cut to the limit."""
    directory = os.path.join("seeds", target)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "wb") as file:
        file.write(octets[:limit])


def boxes(octets):
    """Yields kind and content of each box of MP4 in `octets`."""
    while len(octets) >= 8:
        size = struct.unpack(">I", octets[:4])[0]
        yield octets[4:8], octets[8:size]
        octets = octets[size:]


def configuration(mp4, kind):
    """Returns the content of the box `kind`, wherever it is."""
    at = mp4.index(kind)
    size = struct.unpack(">I", mp4[at - 4 : at])[0]
    return mp4[at + 4 : at - 4 + size]


def mp4(options, source):
    flags = "-movflags frag_every_frame+empty_moov+default_base_moof"
    file = ffmpeg(f"{source} {options} {flags} -f mp4")
    frames = [content for kind, content in boxes(file) if kind == b"mdat"]
    return file, frames


def tag(kind, time, body):
    """Returns a tag of FLV."""
    size = struct.pack(">I", len(body))[1:]
    stamp = struct.pack(">I", time)
    header = bytes([kind]) + size + stamp[1:] + stamp[:1] + bytes(3)
    return header + body + struct.pack(">I", len(body) + 11)


def flv_and_headers():
    """Pushes of old codecs as ffmpeg writes them, of new ones as Enhanced RTMP has them, and the headers of all."""
    write("flv", "h264_aac", ffmpeg(f"{PICTURE} {SOUND} {VIDEO['h264_b']} {AUDIO['aac']} -f flv"))
    write("flv", "aac", ffmpeg(f"{SOUND} {AUDIO['aac']} -f flv"))
    write("flv", "mp3", ffmpeg(f"{SOUND} -c:a libmp3lame -ar 44100 -f flv"))
    start = b"FLV\x01\x05\0\0\0\x09\0\0\0\0"
    for name, box, four_cc in [
        ("h264", b"avcC", b"avc1"),
        ("hevc", b"hvcC", b"hvc1"),
        ("av1", b"av1C", b"av01"),
        ("vp9", b"vpcC", b"vp09"),
    ]:
        file, frames = mp4(VIDEO[name], PICTURE)
        config = configuration(file, box)
        tags = start + tag(9, 0, b"\x90" + four_cc + config)
        for number, frame in enumerate(frames):
            first = b"\x93" if number == 0 else b"\xa3"
            tags += tag(9, number * 100, first + four_cc + frame)
        write("flv", f"enhanced_{name}", tags)
        if name in ("h264", "hevc"):
            kind = bytes([9 if name == "h264" else 10])
            record = struct.pack(">H", len(config)) + config
            write("codec_headers", f"record_{name}", kind + record + frames[0][:600])
    raw = {
        "h264": (11, "-f h264"),
        "hevc": (11, "-f hevc"),
        "av1": (2, "-f obu"),
    }
    for name, (kind, container) in raw.items():
        octets = ffmpeg(f"{PICTURE} {VIDEO[name]} {container}")
        write("codec_headers", f"raw_{name}", bytes([kind]) + octets[:800])
        for unit in octets.split(b"\0\0\1"):
            if name == "h264" and unit[:1] and unit[0] & 31 == 7:
                write("codec_headers", "set_h264", b"\0" + unit.rstrip(b"\0"))
            if name == "hevc" and unit[:1] and unit[0] >> 1 & 63 == 33:
                write("codec_headers", "set_hevc", b"\1" + unit.rstrip(b"\0"))
    for name, kind in [("vp9", 3), ("vp8", 4)]:
        octets = ffmpeg(f"{PICTURE} {VIDEO[name]} -f ivf")
        write("codec_headers", name, bytes([kind]) + octets[44:200])
    aac, _ = mp4(AUDIO["aac"], SOUND)
    at = aac.index(b"\x05\x80\x80\x80\x05") + 5
    write("codec_headers", "aac", b"\x05" + aac[at : at + 5])
    opus = ffmpeg(f"{SOUND} {AUDIO['opus']} -f ogg")
    write("codec_headers", "opus", b"\x06" + opus[opus.index(b"OpusHead") :][:19])
    write("codec_headers", "flac", b"\x07" + ffmpeg(f"{SOUND} {AUDIO['flac']} -f flac")[:60])
    write("codec_headers", "ac3", b"\x08" + ffmpeg(f"{SOUND} {AUDIO['ac3']} -f ac3")[:40])


def nut():
    """NUT as ffmpeg hands it over."""
    for name in VIDEO:
        write("nut", name, ffmpeg(f"{PICTURE} {VIDEO[name]} -write_index 0 -f nut"))
    for name in AUDIO:
        write("nut", name, ffmpeg(f"{SOUND} {AUDIO[name]} -write_index 0 -f nut"))
    both = f"{PICTURE} {SOUND} {VIDEO['h264']} {AUDIO['opus']}"
    write("nut", "h264_opus", ffmpeg(f"{both} -write_index 0 -f nut"))


def captions():
    """User data with captions, packets of tracks, and ffmpeg's lines."""
    pairs = b"\xfc\x94\x20\xfc\x94\x20\xfc\x94\xe0\xfc\xc8\xc9\xfc\x94\x2f\xff"
    data = b"\0\0\1\x06\x04\x11\xb5\0\x31GA94\x03\xc5\xff" + pairs
    write("captions", "user_data", b"\0" + bytes([len(data)]) + data + bytes([len(data)]) + data)
    text = b"<i>Good</i> evening,\nand {welcome} &amp; good night"
    write("captions", "timed_text", b"\1" + struct.pack(">H", len(text)) + text)
    write("captions", "sub_station", b"\2" + b"0,0,Default,,0,0,0,,Good {\\i1}evening\\Nwelcome")
    write("captions", "text", b"\3" + text)
    lines = ffmpeg(f"{PICTURE} {SOUND} {VIDEO['h264_b']} {AUDIO['aac']} -f framecrc")
    write("captions", "lines", b"\4" + lines)
    source = f"{PICTURE} {SOUND} {VIDEO['h264']} {AUDIO['aac']} -f nut"
    words = ["ffmpeg", "-hide_banner", "-nostats", "-y", *source.split(), os.devnull]
    said = subprocess.run(words, stderr=subprocess.PIPE, check=True).stderr
    write("captions", "description", b"\5" + said)


def packets():
    """A stream and its packets, in the form of the script."""
    for number, name in enumerate(["h264", "vp9", "av1", "hevc"]):
        box = {"h264": b"avcC", "vp9": b"vpcC", "av1": b"av1C", "hevc": b"hvcC"}[name]
        file, frames = mp4(VIDEO[name], PICTURE)
        config = configuration(file, box) if name != "vp9" else b""
        if len(config) > 255:
            config = b""
        seed = bytes([number]) + struct.pack(">HHB", 64, 48, len(config)) + config + b"\0\0"
        for at, frame in enumerate(frames):
            flags = 2 | (8 if at == 0 else 0)
            time = struct.pack(">I", at * 100_000)[1:]
            seed += bytes([flags]) + time + time + struct.pack(">H", len(frame)) + frame
        write("packets", name, seed)
    for number, form in [(4, "ogg"), (5, "adts")]:
        options = AUDIO["opus"] if number == 4 else AUDIO["aac"]
        octets = ffmpeg(f"{SOUND} {options} -f {form}")
        lines = b"#tb 0: 1/48000\n0, 0, 0, 1024, 50, 0x0, F=0x5, S=1, 10\n"
        seed = bytes([number]) + b"\0\xbb\x80\1\0\0" + bytes([len(lines)]) + lines
        for at in range(3):
            sound = octets[at * 60 : at * 60 + 50]
            time = struct.pack(">I", at * 21_333)[1:]
            seed += b"\0" + time + time + bytes([len(sound)]) + sound
        write("packets", form, seed)


def amf(*values):
    """Returns values in AMF 0."""
    octets = b""
    for value in values:
        if value is None:
            octets += b"\5"
        elif isinstance(value, dict):
            octets += b"\3"
            for name, it in value.items():
                octets += struct.pack(">H", len(name)) + name.encode() + amf(it)
            octets += b"\0\0\x09"
        elif isinstance(value, list):
            octets += b"\x0a" + struct.pack(">I", len(value)) + amf(*value)
        elif isinstance(value, str):
            octets += b"\2" + struct.pack(">H", len(value)) + value.encode()
        else:
            octets += b"\0" + struct.pack(">d", value)
    return octets


def chunks(kind, stream, payload, stamp=0):
    """Returns a message in chunks of 128 octets."""
    head = b"\3" + struct.pack(">I", stamp)[1:] + struct.pack(">I", len(payload))[1:]
    octets = head + bytes([kind]) + struct.pack("<I", stream)
    parts = [payload[at : at + 128] for at in range(0, len(payload), 128)]
    return octets + b"\xc3".join(parts)


def rtmp():
    """What ffmpeg sends; the handshake alone is longer than a seed, so that connections are in the limit of 4 kB."""
    connect = amf("connect", 1, {"app": "app", "type": "nonprivate", "tcUrl": "rtmp://h/app"})
    release = amf("releaseStream", 2, None, "cam")
    create = amf("createStream", 4, None)
    publish = amf("publish", 5, None, "cam?key=k", "live")
    commands = [connect, release, create, publish]
    about = amf("@setDataFrame", "onMetaData", {"videocodecid": 7, "audiocodecid": "mp4a", "x": [1, None]})
    session = b"".join(chunks(20, 0, it) for it in commands)
    media = chunks(1, 0, struct.pack(">I", 256)) + chunks(18, 1, about)
    media += chunks(9, 1, b"\x17\0\0\0\0\1\x64\0\x0d", 20) + chunks(8, 1, b"\xaf\0\x12\x10", 0xFFFFFF - 1)
    hello = b"\3" + bytes(2 * 1536)
    for name, kind in [("connection", 0), ("parts", 1)]:
        write("rtmp", name, bytes([kind]) + hello + session + media, 4_096)
    write("rtmp", "chunks", b"\2" + session + media)
    write("rtmp", "values", b"\3" + connect + about)


def srt_frames():
    """Reports and orders."""
    def message(text):
        return b"\0" + struct.pack(">I", len(text)) + text.encode()

    peer = '"peer":"192.0.2.1:9","stream_id":"cam?key=k"'
    reports = [
        '{"Listening":{"address":"127.0.0.1:9000"}}',
        '{"Asked":{"id":7,%s}}' % peer,
        '{"Opened":{"id":7,%s,"latency_ms":60}}' % peer,
        '{"Closed":{"id":7,"why":"Stalled"}}',
    ]
    packet = b"\1" + struct.pack(">Ii", 4 + 188, 7) + b"G" + bytes(187)
    write("srt_frames", "reports", b"\0" + b"".join(map(message, reports)) + packet)
    orders = ['{"Accept":{"id":7}}', '{"Reject":{"id":8,"code":1401}}', '{"Credit":{"id":7,"packets":512}}', '{"Close":{"id":7}}']
    write("srt_frames", "orders", b"\1" + b"".join(map(message, orders)))


def session():
    """Messages of a session, and of an exchange."""
    write("session", "message", b"\0\x81\x05\0\xfd\1\0body")
    offer = b"\0" + bytes(32) + struct.pack(">Q", 9) + b"b.txt"
    parts = [offer, b"\2" + struct.pack(">Q", 100), b"\3chunk", b"\4\1"]
    write("session", "exchange", b"\1" + b"".join(bytes([len(it)]) + it for it in parts))
    write("session", "nothing", b"\1\1\1\2\4\0")


OFFER = """v=0\r
o=- 1 2 IN IP4 127.0.0.1\r
s=-\r
t=0 0\r
a=group:BUNDLE 0 1\r
m=audio 9 UDP/TLS/RTP/SAVPF 111\r
c=IN IP4 0.0.0.0\r
a=ice-ufrag:abcd\r
a=ice-pwd:abcdefghijklmnopqrstuvwx\r
a=fingerprint:sha-256 {print}\r
a=setup:actpass\r
a=mid:0\r
a=sendonly\r
a=rtcp-mux\r
a=rtpmap:111 opus/48000/2\r
a=fmtp:111 minptime=10;useinbandfec=1\r
a=ssrc:1001 cname:x\r
m=video 9 UDP/TLS/RTP/SAVPF 102 103\r
c=IN IP4 0.0.0.0\r
a=ice-ufrag:abcd\r
a=ice-pwd:abcdefghijklmnopqrstuvwx\r
a=fingerprint:sha-256 {print}\r
a=setup:actpass\r
a=mid:1\r
a=sendonly\r
a=rtcp-mux\r
a=rtpmap:102 H264/90000\r
a=rtcp-fb:102 nack pli\r
a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r
a=rtpmap:103 rtx/90000\r
a=fmtp:103 apt=102\r
a=ssrc:1002 cname:x\r
"""


def whip():
    """An offer as Chromium writes it, shortened; one with a request of STUN behind it; and the request."""
    offer = OFFER.format(print=":".join(["AB"] * 32)).encode()
    name = b"ours:abcd"
    attributes = b"\0\6" + struct.pack(">H", len(name)) + name + bytes(-len(name) % 4)
    attributes += b"\0\x24\0\4\1\2\3\4\0\x08\0\x14" + bytes(20)
    stun = b"\0\1" + struct.pack(">H", len(attributes)) + b"\x21\x12\xa4\x42" + bytes(12) + attributes
    rtp = b"\x80\x6f\0\1" + bytes(8) + b"sound"
    write("whip", "offer", b"\0" + offer)
    behind = b"".join(bytes([len(it)]) + it for it in [stun, rtp, b"\x16\xfe\xff" + bytes(10)])
    write("whip", "datagrams", b"\1" + struct.pack(">H", len(offer)) + offer + behind)
    write("whip", "request", b"\2" + stun)


if __name__ == "__main__":
    for make in (flv_and_headers, nut, captions, packets, rtmp, srt_frames, session, whip):
        make()
