"""Compares what a watcher wrote with the input: one sentence for each thing that is wrong."""

from . import tone
from .tools import payloads, ratio, similarity

# Bounds, as docs/inputs.md states them.
ASPECT = 0.01
RATE = 0.01
# Pictures at the beginning whose likeness does not count, in seconds.
SETTLING = 1.0
# Likeness of equal pictures is endless; it counts as this, in dB.
EQUAL = 60.0


class Judgement:
    """What is wrong, and what was measured."""

    def __init__(self):
        self.faults, self.measured = [], {}

    def fault(self, kind, sentence):
        """Records one fault."""
        self.faults.append((kind, sentence))

    @property
    def is_ok(self):
        """Whether nothing is wrong."""
        return not self.faults


def judge(tools, case, source, film, played):
    """Judges a film against its source."""
    verdict = Judgement()
    if played.error:
        verdict.fault("run", played.error)
    video, audio = watched(played.catalogue, case.rung)
    verdict.measured |= {"rung": (video or {}).get("name"), "took": round(played.took, 2)}
    if not film.video and not film.audio:
        verdict.fault("nothing", f"nothing was written; {played.said}")
        return verdict
    if source.video:
        if film.video and film.numbers:
            pictures(tools, case, source, film, video, verdict)
        else:
            verdict.fault("pictures", "no pictures")
    elif film.video:
        verdict.fault("pictures", "pictures where the input has none")
    if source.audio:
        if film.audio:
            sound(case, source, film, audio, verdict)
        else:
            verdict.fault("sound", "no sound")
    elif film.audio:
        verdict.fault("sound", "sound where the input has none")
    if case.cue and case.cue not in played.text:
        verdict.fault("captions", f"'{case.cue}' comes neither by a data stream nor as subtitles of HLS")
    return verdict


def watched(catalogue, rung):
    """The rung of pictures that was written, and that of sound, as the catalogue describes them."""
    video = audio = None
    for stream in catalogue.get("streams", []):
        rungs = sorted(stream.get("rungs", []), key=lambda it: it.get("bitrate", 0))
        if not rungs:
            continue
        named = [it for it in rungs if it["name"] == rung]
        chosen = named[0] if named else rungs[0] if rung == "lowest" else rungs[-1]
        if stream["kind"] == "video" and video is None:
            video = chosen | {"codec": stream["codec"]}
        elif stream["kind"] == "audio" and audio is None:
            audio = rungs[-1] | {"codec": stream["codec"]}
    return video, audio


def pictures(tools, case, source, film, rung, verdict):
    """Judges number, order, length, likeness and form of the pictures."""
    is_copy = bool(rung) and rung["name"] == "copy"
    pairs = arrived(case, source, film, is_copy, verdict)
    if len(pairs) < 2:
        verdict.fault("pictures", f"{len(pairs)} pictures can be told")
        return
    form(case, source, film, rung, is_copy, verdict)
    rate(case, source, film, pairs, verdict)
    likeness(tools, case, source, film, pairs, "" if is_copy else case.reference, verdict)
    if is_copy and not case.is_encoded_by_pusher:
        octets(tools, source, film, verdict)


def arrived(case, source, film, is_copy, verdict):
    """Which picture of the source each picture of the film is, as pairs of places; judges that all are there, in order, in time."""
    damaged = sum(number is None for number in film.numbers)
    if damaged:
        verdict.fault("pictures", f"the number of {damaged} of {len(film.numbers)} pictures cannot be read")
    pairs = [(place, at) for at, place in enumerate(places(source, film.numbers)) if place is not None]
    foreign = len(film.numbers) - damaged - len(pairs)
    if foreign:
        verdict.fault("pictures", f"{foreign} pictures that the input does not have")
    back = sum(second[0] < first[0] for first, second in zip(pairs, pairs[1:]))
    twice = len(pairs) - len({first for first, _ in pairs})
    if back:
        verdict.fault("order", f"{back} pictures out of order")
    if twice > case.twice:
        verdict.fault("order", f"{twice} pictures twice")
    first = next((at for at, time in enumerate(source.times) if not is_copy or time >= case.cut - 0.001), 0) if case.cut else 0
    if case.is_live and pairs:
        first = min(pairs)[0]
        late = source.times[first] - source.times[0]
        if late > case.live_cut:
            verdict.fault("lost", f"the first picture is that of {late:.2f} s")
    wanted = set(range(first, len(source.numbers) - case.live_tail))
    came = wanted & {at for at, _ in pairs}
    # A tab repeats pictures as well as it leaves some out.
    share = len(pairs) / max(case.sent, 1) if case.sent else len(came) / max(len(wanted), 1)
    verdict.measured |= {"pictures": f"{len(pairs)}/{len(wanted)}", "arrived": round(share, 4)}
    if share < case.arrived:
        verdict.fault("lost", f"{share:.1%} of {len(wanted)} pictures arrived{which(wanted - came)}")
    if len(pairs) > 1:
        length(case, source, film, pairs, verdict)
    return pairs


def places(source, numbers):
    """Place in the source of each number; None if it has none. Encoders that leave a picture out may repeat another: what the source has
    twice must arrive twice, and its second time is not out of order."""
    known = {}
    for at, number in enumerate(source.numbers):
        known.setdefault(number, []).append(at)
    seen, found = {}, []
    for number in numbers:
        at = known.get(number, []) if number is not None else []
        found.append(at[min(seen.get(number, 0), len(at) - 1)] if at else None)
        seen[number] = seen.get(number, 0) + 1
    return found


def which(missing):
    """The first pictures that are missing, for people."""
    shown = sorted(missing)
    text = ", ".join(str(at) for at in shown[:5])
    return f" (without {text}{' …' if len(shown) > 5 else ''})" if shown else ""


def length(case, source, film, pairs, verdict):
    """Judges that the pictures take as long as in the source, together and one by one."""
    first, last = min(pairs), max(pairs)
    should = source.times[last[0]] - source.times[first[0]]
    took = film.times[last[1]] - film.times[first[1]]
    share = took / should if should > 0 else 1.0
    offsets = sorted(film.times[at] - source.times[place] for place, at in pairs)
    middle = offsets[len(offsets) // 2]
    jitter = max(abs(it - middle) for it in offsets)
    verdict.measured |= {"length": round(share, 3), "jitter": round(jitter, 3)}
    if abs(share - 1) > case.length:
        verdict.fault("length", f"pictures take {share:.2f} of their time")
    elif jitter > case.jitter:
        verdict.fault("length", f"a picture is {jitter * 1000:.0f} ms off its time")


def form(case, source, film, rung, is_copy, verdict):
    """Judges size, aspect, rate and colours."""
    width, height = shown_size(source.video)
    found = shown_size(film.video)
    verdict.measured["size"] = f"{film.video['width']}x{film.video['height']}"
    if is_copy and not case.is_encoded_by_pusher and source.video["codec_name"] != film.video["codec_name"]:
        verdict.fault("form", f"the copy is {film.video['codec_name']}")
    if rung and not is_copy and (film.video["width"], film.video["height"]) != (rung["width"], rung["height"]):
        verdict.fault("form", f"{film.video['width']}x{film.video['height']}, and the catalogue says {rung['width']}x{rung['height']}")
    if abs(found[0] / found[1] * height / width - 1) > max(ASPECT, 2 / found[0] + 2 / found[1]):
        verdict.fault("aspect", f"shown as {found[0]:.0f}:{found[1]:.0f} instead of {width:.0f}:{height:.0f}")
    colours(case, source, film, is_copy, verdict)


def rate(case, source, film, pairs, verdict):
    """Judges how many pictures there are a second, from the first to the last that arrived."""
    first, last = min(pairs)[0], max(pairs)[0]
    span = source.times[last] - source.times[first]
    if case.sent or not film.span or span <= 0:
        return
    should, found = (last - first) / span, (len(film.times) - 1) / film.span
    if abs(found / should - 1) > RATE:
        verdict.fault("rate", f"{found:.2f} pictures a second instead of {should:.2f}")


def shown_size(stream):
    """Width and height as shown: with square pixels, and turned."""
    width, height = stream["width"] * (ratio(stream.get("sample_aspect_ratio"), 1.0) or 1.0), stream["height"]
    turns = [data.get("rotation", 0) for data in stream.get("side_data_list", []) if "rotation" in data]
    return (height, width) if turns and turns[0] % 180 else (width, height)


def colours(case, source, film, is_copy, verdict):
    """Judges the tags of colours: a copy keeps them; what is encoded of HDR is BT.709; else, what is tagged stays so."""
    for tag in ("color_primaries", "color_transfer", "color_space", "color_range"):
        # Without a word the range is the limited one.
        unsaid = "tv" if tag == "color_range" else "unknown"
        said, found = (it.video.get(tag, unsaid) for it in (source, film))
        if case.is_hdr and not is_copy:
            wanted = {"color_transfer": "bt709", "color_primaries": "bt709", "color_space": "bt709", "color_range": "tv"}[tag]
            if found != wanted:
                verdict.fault("colours", f"{tag} is {found} instead of {wanted}")
        elif is_copy and not case.is_encoded_by_pusher and said not in ("unknown", "unspecified") and found != said:
            verdict.fault("colours", f"{tag} is {found} instead of {said}")
        elif not is_copy and tag == "color_space" and said in ("bt709", "smpte170m") and found not in (said, "bt709"):
            verdict.fault("colours", f"{tag} is {found} instead of {said}")


def likeness(tools, case, source, film, pairs, reference, verdict):
    """Judges the PSNR of the pictures after the first second against the source through the filters `reference`."""
    begin = source.times[0] + SETTLING
    late = [pair for pair in pairs if source.times[pair[0]] >= begin]
    increasing, last = [], (-1, -1)
    for pair in late or pairs:
        # Those out of order or twice are judged as such.
        if pair[0] > last[0]:
            increasing.append(pair)
            last = pair
    decibels = similarity(tools, source, film, increasing, reference)
    if not decibels:
        verdict.fault("likeness", "the pictures cannot be compared")
        return
    decibels = [min(value, EQUAL) for value in decibels]
    mean = sum(decibels) / len(decibels)
    verdict.measured |= {"psnr": round(mean, 1), "lowest_psnr": round(min(decibels), 1)}
    if mean < case.psnr:
        verdict.fault("likeness", f"mean PSNR {mean:.1f} dB")


def octets(tools, source, film, verdict):
    """Judges that packets of a copy are those of the source."""
    codec = source.video["codec_name"]
    ours = payloads(tools, film.path, film.video_map, codec)
    theirs = payloads(tools, source.path, source.video_map, codec)
    known = set(theirs)
    other = sum(it not in known for it in ours)
    verdict.measured["equal"] = f"{len(ours) - other}/{len(ours)}"
    if other:
        verdict.fault("octets", f"{other} of {len(ours)} packets of the copy are not those of the input")


def sound(case, source, film, rung, verdict):
    """Judges pitch, order, form and sync of the sound."""
    channels = min(source.audio["channels"], 2)
    if film.audio["channels"] != channels and not case.sent:
        verdict.fault("sound", f"{film.audio['channels']} channels instead of {channels}")
    if rung and rung.get("sample_rate") and film.audio["codec_name"] == rung["codec"] and int(film.audio["sample_rate"]) != rung["sample_rate"]:
        verdict.fault("sound", f"{film.audio['sample_rate']} Hz, and the catalogue says {rung['sample_rate']} Hz")
    theirs, ours = ({run.at: run for run in it.runs if run.at is not None} for it in (source, film))
    wrong = [run for run in film.runs if run.at is None or abs(run.pitch - tone.PITCHES[run.at]) > case.pitch]
    if wrong:
        verdict.fault("pitch", f"{wrong[0].pitch:.1f} Hz at {wrong[0].begin:.2f} s")
    missing = [at for at in theirs if at not in ours and not (case.is_live and at < case.live_cut)]
    if missing:
        verdict.fault("sound", f"without second {', '.join(str(at) for at in sorted(missing))}")
    heard, should = (sum(run.seconds for run in it.runs) for it in (source, film))
    verdict.measured["sound"] = round(should / heard, 3) if heard else None
    if abs(should - heard) > case.lost_sound + (case.live_cut if case.is_live else 0):
        verdict.fault("sound", f"{should:.2f} s of sound instead of {heard:.2f}")
    sync(case, source, film, verdict)


def sync(case, source, film, verdict):
    """Judges how far the sound is from the pictures, compared with the source, at each change of the tone."""
    theirs, ours = changes(source), changes(film)
    pairs = zip(places(source, film.numbers), film.times)
    shifts = [(source.times[place], time) for place, time in pairs if place is not None]
    found = []
    for at, time in theirs.items():
        if at in ours and shifts:
            near = min(shifts, key=lambda it: abs(it[0] - time))
            found.append((ours[at] - time) - (near[1] - near[0]))
    if not found:
        return
    worst = max(found, key=abs)
    verdict.measured["sync"] = round(worst, 3)
    if abs(worst) > case.sync:
        verdict.fault("sync", f"sound is {abs(worst) * 1000:.0f} ms {'late' if worst > 0 else 'early'}")


def changes(film):
    """Times of the changes from one pitch to the next, by both. Where sound begins or ends is none: the first and last packets of an
    encoder may be silent, or missing."""
    pairs = zip(film.runs, film.runs[1:])
    return {(first.at, second.at): second.begin for first, second in pairs if abs(second.begin - first.end) < 0.06}
