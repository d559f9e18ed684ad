"""The page in a browser as a way out: web/e2e/inputs.mjs opens it and reads the numbers of the pictures that its decoder gives."""

import json
import subprocess
import threading

from . import play
from .judge import places
from .make import ROOT

# How long the page may take to open on a loaded machine, in seconds.
LIMIT = 60


class Browser:
    """One browser for all cases. Pages are open one at a time, as those that are hidden show nothing."""

    def __init__(self):
        self.turn = threading.Lock()
        self.child, self.count, self.answers, self.changed = None, 0, {}, threading.Condition()

    def _start(self):
        with self.changed:
            if self.child is None or self.child.poll() is not None:
                script = ROOT / "web/e2e/inputs.mjs"
                self.child = subprocess.Popen(["node", str(script)], cwd=ROOT / "web", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                threading.Thread(target=self._read, args=(self.child,), daemon=True).start()

    def _read(self, child):
        for line in child.stdout:
            with self.changed:
                answer = json.loads(line)
                self.answers[answer["id"]] = answer
                self.changed.notify_all()

    def ask(self, request):
        """Sends a request, and waits for its answer."""
        self._start()
        with self.changed:
            print(json.dumps(request), file=self.child.stdin, flush=True)
            self.changed.wait_for(lambda: request["id"] in self.answers, LIMIT)
            answer = self.answers.pop(request["id"], {"error": f"no answer within {LIMIT} s"})
        if "error" in answer:
            raise RuntimeError(f"page: {answer['error']}")
        return answer

    def close(self):
        """Ends the browser."""
        if self.child is not None and self.child.poll() is None:
            self.child.stdin.close()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()


def played(browser, home, case, begin):
    """Opens the page, has `begin` start what publishes, and returns the page's answer and what the publisher said."""
    node = home.start_forwarder()
    with browser.turn:
        browser.count += 1
        name = browser.count
        browser.ask({"id": name, "open": f"{node['url']}?name=/x"})
        try:
            result = play.publish(home, case, begin)
        finally:
            answer = browser.ask({"id": name, "close": True})
    (home.path / "page.json").write_text(json.dumps(answer, indent=1))
    return result, answer


def judge(case, source, result, answer, verdict):
    """Judges the pictures that the page's decoder gave: number and order, and that the page complains of nothing."""
    if result.error:
        verdict.fault("run", result.error)
    for error in sorted(set(answer["errors"]))[:2]:
        verdict.fault("page", f"the console complains: {error[:200]}")
    stats = answer.get("stats") or {}
    sound = (stats.get("consumer") or {}).get("audio") or {}
    if source.audio and not sound.get("received", sound.get("rendered")):
        verdict.fault("sound", "no sound")
    if not source.video:
        return
    numbers = [picture["value"] for picture in answer["pictures"]]
    damaged = sum(number is None for number in numbers)
    if damaged:
        verdict.fault("pictures", f"the number of {damaged} of {len(numbers)} pictures cannot be read")
    seen = [place for place in places(source, numbers) if place is not None]
    if foreign := len(numbers) - damaged - len(seen):
        verdict.fault("pictures", f"{foreign} pictures that the input does not have")
    back = sum(second <= first for first, second in zip(seen, seen[1:]))
    if back > case.twice:
        verdict.fault("order", f"{back} pictures out of order or twice")
    begin = source.times[0] if source.times else 0
    if case.is_live:
        begin = source.times[seen[0]] if seen else begin
        if begin - source.times[0] > case.live_cut:
            verdict.fault("lost", f"the first picture is that of {begin - source.times[0]:.2f} s")
    shown = enumerate(zip(source.numbers, source.times))
    wanted = [at for at, (number, time) in shown if number is not None and time >= max(case.cut, begin)]
    wanted = wanted[: len(wanted) - case.live_tail]
    share = len(seen) / max(case.sent, 1) if case.sent else len(set(wanted) & set(seen)) / max(len(wanted), 1)
    verdict.measured |= {"pictures": f"{len(seen)}/{len(wanted)}", "arrived": round(share, 4)}
    if share < case.arrived:
        missing = sorted(set(wanted) - set(seen))
        verdict.fault("lost", f"{share:.1%} of {len(wanted)} pictures arrived (without {', '.join(map(str, missing[:5]))}{' …' if len(missing) > 5 else ''})")
    length(case, source, answer, verdict)


def length(case, source, answer, verdict):
    """Judges that the pictures are captured as far apart as they are in the source."""
    place = {number: at for at, number in enumerate(source.numbers)}
    numbers = {picture["timestamp"]: picture["value"] for picture in answer["pictures"]}
    shown = [(numbers.get(it["position"]), it["capturedAt"] / 1000) for it in answer["shown"]]
    known = [(source.times[place[number]], captured) for number, captured in shown if number in place]
    verdict.measured["shown"] = len(shown)
    if len(known) > 1 and known[-1][0] > known[0][0]:
        share = (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
        verdict.measured["length"] = round(share, 3)
        if abs(share - 1) > case.length:
            verdict.fault("length", f"pictures take {share:.2f} of their time")
