"""Files of public test collections, with the right answer for each in real.json: what plays (codec, shape, pictures, seconds from the first to
the last), or why it is refused; what is `short` may do either. They are not part of the
repository: each lies in DIRECTORY/OWNER+NAME/PATH."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import judge, play
from .catalogue import Case
from .processes import Home
from .tools import Film

TABLE = Path(__file__).with_name("real.json")
# How much the length may differ, in seconds, and pictures, as a share: of single ones at the ends codecs differ.
SECONDS, PICTURES = 0.3, 0.01


def place(directory, entry):
    """Where a file is."""
    return Path(directory) / entry["repository"].replace("/", "+") / entry["path"]


def plays(tools, namecast, path, entry, keep):
    """What is wrong with a file that has to play."""
    right = entry["plays"]
    case = Case(path.name, "real files", [], path.suffix, right["seconds"])
    verdict = judge.Judgement()
    with Home(namecast, keep) as home:
        played = play.played(home, case, "mkv", play.file_publisher(home, case, path))
        film = Film(tools, played.output)
    if entry.get("short") and path.name in (played.error or "") and "publish ended" in played.error:
        # Over before anybody could watch: it may be refused.
        return verdict
    if played.error:
        verdict.fault("run", played.error)
    if "video" in right:
        pictures(right, film, verdict)
    elif film.video:
        verdict.fault("pictures", "pictures where the file has none")
    if "sound" in right and not film.audio:
        verdict.fault("sound", "no sound")
    if "sound" not in right and film.audio:
        verdict.fault("sound", "sound where the file has none")
    return verdict


def pictures(right, film, verdict):
    """Judges count, length and shape of the pictures."""
    if not film.video:
        verdict.fault("pictures", "no pictures")
        return
    count = len(film.times)
    verdict.measured |= {"pictures": f"{count}/{right['pictures']}", "seconds": round(film.span, 2)}
    if abs(count - right["pictures"]) > max(1, right["pictures"] * PICTURES):
        verdict.fault("lost", f"{count} pictures instead of {right['pictures']}")
    if abs(film.span - right["seconds"]) > SECONDS:
        verdict.fault("length", f"{film.span:.2f} s instead of {right['seconds']}")
    width, height = judge.shown_size(film.video)
    wanted = [int(side) for side in right["shown"].split("x")]
    if abs(width / height * wanted[1] / wanted[0] - 1) > judge.ASPECT + 2 / min(width, height):
        verdict.fault("aspect", f"shown as {width:.0f}x{height:.0f} instead of {right['shown']}")


def refused(namecast, path, keep):
    """What is wrong with a file that has to be refused, and what was said."""
    verdict = judge.Judgement()
    with Home(namecast, keep) as home:
        home.start_forwarder()
        command = home.namecast_command("publish", "/x", "--input", path, "--quiet", *home.connect)
        process = home.start("publish", command)
        if not process.wait(5):
            verdict.fault("refusal", "is not refused within 5 s")
        elif process.child.returncode == 0:
            verdict.fault("refusal", "ends with status 0")
        if path.name not in process.err.read_text(errors="replace"):
            verdict.fault("refusal", f"no sentence names {path.name}")
        verdict.measured["said"] = process.said()
    return verdict


def run(tools, namecast, directory, options):
    """Judges all files that are there, prints a line for each, and returns their results."""
    entries = json.loads(TABLE.read_text())

    def one(entry):
        path, name = place(directory, entry), f"{entry['repository']}/{entry['path'].split('/')[-1]}"
        if not path.exists():
            print(f"left out: {name}, which is not at {path}", flush=True)
            return None
        keep = options.keep and options.keep / path.name
        try:
            verdict = plays(tools, namecast, path, entry, keep) if "plays" in entry else refused(namecast, path, keep)
            if entry.get("newer_ffmpeg_plays") and not verdict.is_ok and not plays_nothing(tools, path):
                verdict.faults.clear()
        except Exception as error:
            verdict = judge.Judgement()
            verdict.fault("judge", f"{type(error).__name__}: {error}")
        what = "; ".join(sentence for _, sentence in verdict.faults)
        kinds = sorted({kind for kind, _ in verdict.faults})
        right = json.dumps(entry.get("plays", {"refused": entry.get("refused")}))
        figures = " ".join(f"{key} {value}" for key, value in verdict.measured.items())
        print(f"{'ok  ' if verdict.is_ok else 'FAIL'} {name}: {f'{what}; right: {right}' if what else figures}", flush=True)
        group = f"real, {'plays' if 'plays' in entry else 'refused'}"
        return {"name": name, "group": group, "out": "mkv", "ok": verdict.is_ok, "kinds": kinds, "what": what, "measured": verdict.measured}

    with ThreadPoolExecutor(options.jobs) as pool:
        return [result for result in pool.map(one, entries) if result]


def plays_nothing(tools, path):
    """Whether this ffmpeg decodes nothing of the file."""
    return not tools.run(["-i", path, "-frames:v", "1", "-t", "0.1", "-f", "framecrc", "-"], check=False)
