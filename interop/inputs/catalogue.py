"""The inputs: what each holds, and the command of ffmpeg that makes it."""

from dataclasses import dataclass, field

from . import strip, tone

# Ways out that follow each other from input to input.
OUTS = ["mkv", "mp4", "hls", "nut", "rewind", "page"]


@dataclass
class Case:
    """One input, and how it is judged."""

    name: str
    group: str
    # Arguments of ffmpeg, without the output.
    command: list
    ext: str
    seconds: float
    # Functions of `edits` that change the file after ffmpeg made it, with arguments.
    edits: list = field(default_factory=list)
    # Way out; None: by rotation.
    out: str | None = None
    # Options of `publish`, and the rung that is watched.
    publish: list = field(default_factory=list)
    rung: str | None = None
    # Filters, with a comma behind them, that make the reference of what is encoded: for interlaced and HDR pictures.
    reference: str = ""
    # Text that captions or subtitles must show.
    cue: str | None = None
    # Pictures before this time may be missing where the rung is a copy, as no key frame is before it, in seconds.
    cut: float = 0.0
    is_hdr: bool = False
    is_interlaced: bool = False
    # Pushed, so that pictures of the first second may be missing.
    is_live: bool = False
    # The pusher encodes, so that a copy is one of what it made.
    is_encoded_by_pusher: bool = False
    # Pictures that the pusher says it sent, if it leaves some out.
    sent: int | None = None
    # Bounds: length as a share, mean PSNR in dB, share of pictures, pictures that come twice, how far a picture may be off its time in seconds, pitch in Hz, and
    # how far sound and pictures may be apart, in seconds.
    length: float = 0.01
    psnr: float = 30.0
    arrived: float = 0.999
    twice: int = 0
    jitter: float = 0.045
    pitch: float = 1.0
    sync: float = 0.045
    # What may be missing at the beginning of what is live, and of sound anywhere, in seconds.
    live_cut: float = 1.0
    # Pictures that may be missing at the end of what is live: a camera is switched off while some wait for the next.
    live_tail: int = 0
    lost_sound: float = 0.3
    # Taken by `quick`.
    is_quick: bool = False


DEINTERLACE = "bwdif=mode=send_frame:parity=auto:deint=all,"
TONE_MAP = (
    "zscale=transfer=linear:npl=203,format=gbrpf32le,zscale=primaries=bt709,tonemap=tonemap=hable:desat=0,"
    "zscale=transfer=bt709:matrix=bt709:range=limited,format=yuv420p,"
)

CASES = []


def words(text):
    """Arguments in a line."""
    return text.split()


def add(name, group, video="libx264", audio="aac", ext="mp4", size="640x360", rate="25", seconds=4, sound=(44100, 1), **more):
    """Adds a case. `before` and `after` are filters around the strip, `pixel` is the pixel format, `options` are those of the output, `delays`
    shift (pictures, sound) in seconds, `sound_seconds` is the sound's length, and other keywords are fields of the case."""
    before, after = more.pop("before", ""), more.pop("after", "")
    pixel, options = more.pop("pixel", "yuv420p"), more.pop("options", "")
    delays, sound_seconds = more.pop("delays", (0, 0)), more.pop("sound_seconds", seconds)
    inputs = []
    if video:
        drawn = f"testsrc2=size={size}:rate={rate}:duration={seconds}{before},format=yuv420p,{strip.drawing()}{after},format={pixel}"
        inputs += [*shift(delays[0]), "-f", "lavfi", "-i", drawn]
    if audio:
        inputs += [*shift(delays[1]), "-f", "lavfi", "-i", f"{tone.drawing(*sound)}:d={sound_seconds}"]
    command = inputs + words(more.pop("more_inputs", ""))
    command += ["-c:v", *words(video)] if video else []
    command += ["-c:a", *words(audio)] if audio else []
    CASES.append(Case(name, group, command + words(options), ext, seconds, **more))


def shift(seconds):
    """Arguments that make an input begin later."""
    return ["-itsoffset", str(seconds)] if seconds else []


def h264():
    """How x264 is set."""
    group = "H.264"
    for name, options in {
        "default": "",
        "bf0": "-bf 0",
        "bf1": "-bf 1",
        "bf3": "-bf 3 -x264-params b-adapt=0",
        "bf8": "-bf 8 -x264-params b-adapt=0",
        "pyramid-strict": "-bf 5 -x264-params b-adapt=0:b-pyramid=strict",
        "pyramid-normal": "-bf 7 -x264-params b-adapt=0:b-pyramid=normal:ref=5",
        "no-pyramid": "-bf 4 -x264-params b-adapt=0:b-pyramid=none",
        "open-gop": "-x264-params open-gop=1:keyint=25:bframes=3:b-adapt=0",
        "intra-refresh": "-bf 0 -x264-params intra-refresh=1:keyint=25",
        "all-intra": "-g 1",
        "zerolatency": "-tune zerolatency",
        "baseline": "-profile:v baseline",
        "main-cavlc": "-profile:v main -x264-params cabac=0:bframes=2",
        "slices": "-x264-params slices=4:bframes=2",
        "gop-2s": "-g 50",
        "repeated-headers": "-x264-params repeat-headers=1:aud=1:keyint=25",
        "lossless": "-qp 0 -preset ultrafast",
        "wrong-timing": "-bsf:v h264_metadata=tick_rate=20",
        "million-ticks": "-bf 0 -bsf:v h264_metadata=tick_rate=1000000:fixed_frame_rate_flag=0",
    }.items():
        add(f"x264-{name}", group, f"libx264 {options}", is_quick=name in ("default", "bf0", "bf8", "open-gop"))
    for bf in (0, 3):
        timing = [("strip_timing", ())]
        add(f"x264-bf{bf}-timing-stripped", group, f"libx264 -bf {bf}", edits=timing, ext="mkv", is_quick=bf == 3)
    add("x264-444", group, pixel="yuv444p", is_quick=True)
    add("x264-422", group, pixel="yuv422p")
    add("x264-10-bit", group, pixel="yuv420p10le")
    add("x264-full-range", group, pixel="yuvj420p", options="-color_range pc", is_quick=True)
    uneven = ",select='not(eq(mod(n,7),3)+eq(mod(n,11),4)+between(mod(n,50),20,24))'"
    add("x264-vfr", group, after=uneven, options="-fps_mode vfr", is_quick=True)
    add("x264-vfr-bf0", group, "libx264 -bf 0", after=uneven, options="-fps_mode vfr", ext="mkv")
    add("x264-gap", group, after=",select='not(between(t,2,3.99))'", options="-fps_mode vfr", seconds=8, is_quick=True)
    add("x264-bt709-tags", group, "libx264 -bf 2", options="-colorspace bt709 -color_primaries bt709 -color_trc bt709")
    add("x264-bt601-tags", group, options="-colorspace smpte170m -color_primaries smpte170m -color_trc smpte170m")


def rates():
    """Frames a second."""
    group = "frame rates"
    containers = ["mp4", "mkv", "ts", "flv", "mov"]
    rates = {"1": "1", "5": "5", "10": "10", "15": "15", "23.976": "24000/1001", "24": "24", "29.97": "30000/1001", "30": "30"}
    rates |= {"50": "50", "59.94": "60000/1001", "60": "60", "120": "120", "12.5": "25/2"}
    for at, (name, rate) in enumerate(rates.items()):
        seconds = 8 if name in ("1", "5") else 4
        quick = name in ("1", "24", "29.97", "60")
        add(f"rate-{name}", group, rate=rate, seconds=seconds, size="320x180", ext=containers[at % 5], is_quick=quick)
    add("rate-30-bf0-raw", group, "libx264 -bf 0", audio=None, rate="30", ext="h264")


def sizes():
    """Sizes of the picture."""
    group = "sizes"
    for size in ("96x64", "176x144", "322x182", "854x480", "1280x720", "1920x1080", "360x640", "1080x1920", "480x480", "1024x128"):
        add(f"size-{size}", group, "libx264 -preset veryfast", size=size, is_quick=size in ("96x64", "1280x720", "360x640"))
    add("size-3840x2160", group, "libx264 -preset ultrafast -bf 2 -b:v 20M", size="3840x2160", rate="15")
    add("size-3840x2160-60M", group, "libx264 -preset ultrafast -b:v 60M -minrate 60M -maxrate 60M -bufsize 30M", size="3840x2160", rate="30")
    add("size-427x241-vp9", group, "libvpx-vp9 -deadline realtime -cpu-used 8", "libopus", "webm", "428x242", after=",scale=427:241", is_quick=True)
    add("size-321x183-mjpeg", group, "mjpeg -q:v 3", "pcm_s16le", "avi", "322x184", after=",scale=321:183", pixel="yuvj420p")
    add("size-427x241-x264-444", group, size="428x242", after=",format=yuv444p,scale=427:241", pixel="yuv444p")
    for sar in ("4/3", "16/11"):
        name = sar.replace("/", "-")
        add(f"anamorphic-{name}", group, after=f",setsar={sar}", size="720x576" if sar == "16/11" else "480x360", is_quick=sar == "4/3")
    add("anamorphic-bf0", group, "libx264 -bf 0", after=",setsar=4/3", size="480x360", ext="mkv")


def codecs():
    """Other codecs."""
    for name, group, video, audio, ext, more in [
        ("x265-default", "HEVC", "libx265 -preset fast", "aac", "mp4", {"is_quick": True}),
        ("x265-hvc1-mov", "HEVC", "libx265 -preset fast -tag:v hvc1", "aac", "mov", {}),
        ("x265-bf0", "HEVC", "libx265 -preset fast -x265-params bframes=0", "aac", "mkv", {}),
        ("x265-open-gop", "HEVC", "libx265 -preset fast -x265-params keyint=25:open-gop=1", "ac3", "ts", {}),
        ("x265-10-bit", "HEVC", "libx265 -preset fast", "aac", "mkv", {"pixel": "yuv420p10le"}),
        ("vp8-default", "VP8", "libvpx -b:v 2M", "libvorbis", "webm", {"is_quick": True}),
        ("vp8-realtime", "VP8", "libvpx -deadline realtime -b:v 2M", "libopus", "webm", {}),
        ("vp9-default", "VP9", "libvpx-vp9 -b:v 2M -cpu-used 4", "libopus", "webm", {"is_quick": True}),
        ("vp9-realtime", "VP9", "libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 2M", "libopus", "webm", {}),
        ("vp9-mp4", "VP9", "libvpx-vp9 -cpu-used 4 -b:v 2M", "aac", "mp4", {}),
        ("vp9-10-bit", "VP9", "libvpx-vp9 -cpu-used 5 -b:v 2M", "libopus", "webm", {"pixel": "yuv420p10le"}),
        ("vp9-444", "VP9", "libvpx-vp9 -cpu-used 5 -b:v 2M", "libopus", "webm", {"pixel": "yuv444p"}),
        ("av1-mp4", "AV1", "libsvtav1 -preset 10 -crf 30", "aac", "mp4", {"is_quick": True}),
        ("av1-webm", "AV1", "libsvtav1 -preset 10 -crf 30", "libopus", "webm", {}),
        ("av1-10-bit", "AV1", "libsvtav1 -preset 10 -crf 30", "libopus", "mkv", {"pixel": "yuv420p10le"}),
        ("mpeg2-ts", "MPEG", "mpeg2video -b:v 4M -bf 2", "mp2", "ts", {"is_quick": True}),
        ("mpeg2-program-stream", "MPEG", "mpeg2video -b:v 4M", "mp2", "mpg", {"sound": (48000, 2)}),
        ("mpeg1-program-stream", "MPEG", "mpeg1video -b:v 4M", "mp2", "mpg", {}),
        ("mpeg4-avi", "MPEG", "mpeg4 -q:v 3", "libmp3lame", "avi", {"is_quick": True}),
        ("mpeg4-avi-bf2", "MPEG", "mpeg4 -q:v 3 -bf 2", "libmp3lame", "avi", {}),
        ("mpeg4-avi-packed", "MPEG", "libxvid -q:v 3 -bf 2", "libmp3lame", "avi", {}),
        ("mpeg4-mp4", "MPEG", "mpeg4 -q:v 3 -bf 2", "aac", "mp4", {}),
        ("msmpeg4-avi", "MPEG", "msmpeg4 -q:v 3", "libmp3lame", "avi", {}),
        ("h263-3gp", "MPEG", "h263 -q:v 3", "aac", "3gp", {"size": "352x288"}),
        ("wmv2-asf", "other codecs", "wmv2 -q:v 3", "wmav2", "asf", {}),
        ("flv1-flv", "other codecs", "flv1 -q:v 3", "libmp3lame", "flv", {}),
        ("theora-ogg", "other codecs", "libtheora -q:v 8", "libvorbis", "ogg", {"is_quick": True}),
        ("mjpeg-avi", "intra codecs", "mjpeg -q:v 3", "pcm_s16le", "avi", {"pixel": "yuvj422p", "is_quick": True}),
        ("mjpeg-mov", "intra codecs", "mjpeg -q:v 3", "pcm_s16le", "mov", {"pixel": "yuvj420p"}),
        ("mjpeg-mkv-15", "intra codecs", "mjpeg -q:v 3", "libopus", "mkv", {"pixel": "yuvj420p", "rate": "15"}),
        ("prores-mov", "intra codecs", "prores_ks -profile:v 2", "pcm_s16le", "mov", {"pixel": "yuv422p10le", "is_quick": True}),
        ("dnxhd-mov", "intra codecs", "dnxhd -b:v 36M", "pcm_s16le", "mov", {"size": "1280x720", "pixel": "yuv422p", "rate": "25", "options": "-profile:v dnxhr_lb"}),
        ("ffv1-mkv", "intra codecs", "ffv1", "flac", "mkv", {}),
        ("huffyuv-avi", "intra codecs", "huffyuv", "pcm_s16le", "avi", {"pixel": "yuv422p", "size": "320x180"}),
        ("gif", "intra codecs", "gif", None, "gif", {"pixel": "pal8", "after": ",split[a][b];[a]palettegen[p];[b][p]paletteuse", "size": "320x180", "is_quick": True}),
        ("apng", "intra codecs", "apng", None, "apng", {"pixel": "rgb24", "size": "320x180"}),
    ]:
        add(name, group, video, audio, ext, **more)


def containers():
    """Containers of H.264 and AAC."""
    group = "containers"
    fragments = "-movflags +frag_keyframe+empty_moov+default_base_moof -g 25"
    for name, ext, options in [
        ("fragmented", "mp4", fragments),
        ("short-fragments", "mp4", "-movflags +empty_moov+delay_moov -frag_duration 200000"),
        ("faststart", "mp4", "-movflags +faststart"),
        ("mkv", "mkv", ""),
        ("mkv-live", "mkv", "-live 1 -f matroska"),
        ("ts", "ts", ""),
        ("m2ts", "m2ts", "-mpegts_m2ts_mode 1 -f mpegts"),
        ("flv", "flv", ""),
        ("mov", "mov", ""),
        ("nut", "nut", ""),
        ("3gp", "3gp", ""),
        ("avi-bf0", "avi", "-bf 0"),
        ("asf", "asf", "-bf 0"),
        ("negative-offsets", "mp4", "-movflags +negative_cts_offsets"),
        ("no-edit-list", "mp4", "-use_editlist 0"),
        ("ts-wrap", "ts", "-output_ts_offset 95441.5 -muxdelay 0"),
        ("ts-starts-late", "ts", "-output_ts_offset 3600"),
        ("mkv-starts-late", "mkv", "-output_ts_offset 100"),
        ("mkv-cluster-a-frame", "mkv", "-cluster_time_limit 0 -bf 2"),
    ]:
        quick = name in ("fragmented", "mkv", "ts", "flv", "ts-wrap", "no-edit-list")
        add(f"container-{name}", group, "libx264 -preset veryfast", ext=ext, options=options, is_quick=quick)
    add("container-mov-negative", group, ext="mov", options="-avoid_negative_ts disabled -output_ts_offset -0.2 -use_editlist 0")


def sounds():
    """Codecs, rates and channels of sound."""
    group = "sound"
    video = "libx264 -preset veryfast -bf 0"
    for rate in (8000, 16000, 22050, 32000, 48000, 96000):
        add(f"sound-aac-{rate}", group, video, sound=(rate, 1), size="320x180", is_quick=rate in (8000, 22050, 96000))
    for name, audio, ext, sound, quick in [
        ("aac-stereo", "aac", "mp4", (44100, 2), False),
        ("aac-5.1", "aac", "mp4", (48000, 6), True),
        ("aac-ts-stereo", "aac", "ts", (48000, 2), False),
        ("opus-mp4", "libopus", "mp4", (48000, 1), False),
        ("opus-stereo", "libopus", "mkv", (48000, 2), True),
        ("opus-5.1", "libopus", "mkv", (48000, 6), False),
        ("opus-60ms", "libopus -frame_duration 60", "mkv", (48000, 1), False),
        ("mp3-mp4", "libmp3lame", "mp4", (44100, 2), True),
        ("mp3-ts", "libmp3lame", "ts", (32000, 1), False),
        ("ac3-ts", "ac3", "ts", (48000, 2), False),
        ("ac3-5.1", "ac3", "mkv", (48000, 6), True),
        ("eac3-mp4", "eac3", "mp4", (48000, 2), False),
        ("pcm-mov", "pcm_s16le", "mov", (44100, 2), True),
        ("pcm-24-bit", "pcm_s24le", "mkv", (96000, 2), False),
        ("pcm-avi-8000", "pcm_u8", "avi", (8000, 1), False),
        ("alac", "alac", "mov", (44100, 2), True),
        ("flac", "flac", "mkv", (44100, 2), True),
        ("vorbis", "libvorbis", "mkv", (44100, 2), False),
        ("wmav2", "wmav2", "mkv", (44100, 2), True),
        ("mp2", "mp2", "ts", (48000, 2), False),
        ("truehd", "truehd -strict -2", "mkv", (48000, 2), False),
        ("mulaw-8000", "pcm_mulaw", "mov", (8000, 1), False),
    ]:
        add(f"sound-{name}", group, video, audio, ext, size="320x180", sound=sound, is_quick=quick)
    add("sound-late", group, size="320x180", seconds=8, delays=(0, 5), sound_seconds=3, is_quick=True)
    add("sound-late-mkv", group, video, size="320x180", seconds=8, delays=(0, 5), sound_seconds=3, ext="mkv")
    add("sound-late-ts", group, video, size="320x180", seconds=8, delays=(0, 5), sound_seconds=3, ext="ts")
    add("sound-early", group, size="320x180", delays=(1, 0), sound_seconds=5, options="-fps_mode vfr", is_quick=True)
    add("sound-early-mkv", group, video, size="320x180", delays=(1, 0), sound_seconds=5, ext="mkv")
    add("sound-200ms-late", group, video, size="320x180", delays=(0, 0.2), ext="mkv", is_quick=True)
    add("sound-shorter", group, size="320x180", sound_seconds=2, is_quick=True)
    add("sound-longer", group, video, size="320x180", sound_seconds=6, ext="mkv")
    add("sound-none", group, audio=None, is_quick=True)
    for ext, audio in [("m4a", "aac"), ("mp3", "libmp3lame"), ("flac", "flac"), ("ogg", "libopus"), ("wav", "pcm_s16le")]:
        add(f"sound-only-{ext}", "sound only", None, audio, ext, is_quick=ext in ("m4a", "flac"))


def specials():
    """Whatever phones, cameras, discs and studios make."""
    group = "turned"
    for degrees, turn in [(90, ",transpose=cclock"), (180, ",hflip,vflip"), (270, ",transpose=clock")]:
        add(f"rotation-{degrees}", group, after=turn, edits=[("turn", (degrees,))], is_quick=degrees == 90)
    add("rotation-90-bf0", group, "libx264 -bf 0", after=",transpose=cclock", edits=[("turn", (90,))])
    add("mirror", group, "libx264 -bf 0", after=",hflip", edits=[("turn", (0, "x"))], is_quick=True)
    add("mirror-upside-down", group, after=",vflip", edits=[("turn", (0, "y"))])
    group = "HDR"
    hdr = {"pixel": "yuv420p10le", "is_hdr": True, "reference": TONE_MAP}
    colours = "-color_primaries bt2020 -colorspace bt2020nc -color_trc"
    parameters = "colorprim=bt2020:colormatrix=bt2020nc:transfer"
    into = ",format=gbrp16le,zscale=min=gbr:pin=bt709:tin=bt709:rin=pc:p=bt2020:m=bt2020nc:r=tv"
    add("hdr10", group, f"libx265 -preset fast -x265-params hdr10=1:repeat-headers=1:{parameters}=smpte2084", options=f"{colours} smpte2084", after=f"{into}:t=smpte2084:npl=203,format=yuv420p10le", is_quick=True, **hdr)
    add("hlg", group, f"libx265 -preset fast -x265-params {parameters}=arib-std-b67", options=f"{colours} arib-std-b67", after=f"{into}:t=arib-std-b67:npl=203,format=yuv420p10le", **hdr)
    group = "interlaced"
    fields = {"before": ",tinterlace=interleave_top", "rate": "50", "is_interlaced": True, "reference": DEINTERLACE}
    add("interlaced-mpeg2", group, "mpeg2video -b:v 6M -flags +ildct+ilme", "mp2", "ts", size="720x576", after=",setfield=tff", is_quick=True, **fields)
    add("interlaced-x264", group, "libx264 -flags +ildct+ilme -x264-params tff=1", size="720x576", after=",setfield=tff", **fields)
    bottom = fields | {"before": ",tinterlace=interleave_bottom"}
    add("interlaced-mpeg2-bottom", group, "mpeg2video -b:v 6M -flags +ildct+ilme", "mp2", "mpg", size="720x576", after=",setfield=bff,setsar=16/15", **bottom)
    group = "edited"
    add("edit-list", group, "libx264 -g 50", seconds=4, edits=[("trim", (1.02,))], cut=0.95, is_quick=True)
    add("edit-list-bf0", group, "libx264 -bf 0 -g 50", seconds=4, edits=[("trim", (1.02,))], cut=0.95)
    add("cover-mp4", group, edits=[("cover", ())], is_quick=True)
    add("cover-mkv", group, "libx264 -bf 0", ext="mkv", edits=[("attach_cover", ())])
    add("cover-flac", "sound only", None, "flac", "flac", edits=[("cover", ())])
    group = "captions"
    cue = "HELLO NAMECAST"
    add("captions-cea608", group, "libx264 -bf 0 -x264-params aud=1", rate="30000/1001", edits=[("caption", (cue,))], cue=cue, is_quick=True)
    add("captions-cea608-ts", group, "libx264 -bf 0 -x264-params aud=1", rate="30000/1001", edits=[("caption", (cue,))], cue=cue, ext="ts")
    for name, ext, codec in [("tx3g", "mp4", "mov_text"), ("webvtt", "mkv", "webvtt"), ("srt", "mkv", "srt"), ("webvtt-webm", "webm", "webvtt")]:
        video, audio = ("libvpx -b:v 1M", "libopus") if ext == "webm" else ("libx264 -bf 0", "aac")
        add(f"captions-{name}", group, video, audio, ext, edits=[("subtitle", (cue, codec))], cue=cue, is_quick=name in ("tx3g", "webvtt"))


def rungs():
    """Rungs that are encoded, of a ladder that people choose."""
    group = "rungs"
    for rung, size in [("300k", "320x180"), ("1M", "640x360"), ("2M", "640x360")]:
        add(f"rung-{rung}", group, size="1280x720" if rung == "2M" else "640x360", publish=["--ladder", f"{rung}@{size}"], rung=rung, is_quick=rung == "1M")
    add("rung-beside-copy", group, "libx264 -bf 0 -b:v 2M", publish=["--ladder", "copy,500k@320x180"], rung="500k")
    add("rung-beside-copy-bf3", group, "libx264 -bf 3 -b:v 2M", publish=["--ladder", "copy,500k@320x180"], rung="500k", is_quick=True)
    add("rung-copy-bf3", group, "libx264 -bf 3 -b:v 2M", publish=["--ladder", "copy"], rung="copy")
    add("rung-lowest-hevc", group, "libx265 -preset fast", rung="lowest")
    add("rung-vp9", group, publish=["--codec", "vp9", "--ladder", "1M@640x360"], rung="1M")
    add("rung-fps", group, publish=["--fps", "25", "--ladder", "1M@640x360"], rung="1M")


for part in (h264, rates, sizes, codecs, containers, sounds, specials, rungs):
    part()
for place, each in enumerate(CASES):
    # Captions are looked for in recordings, HLS and data streams.
    outs = OUTS[:3] if each.cue else OUTS
    each.out = each.out or outs[place % len(outs)]
