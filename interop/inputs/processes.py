"""Processes of one case: its own home, its own sockets, and an end by process id."""

import json
import os
import signal
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

# How long a program may take to start on a loaded machine, in seconds.
START = 30
# How long a program may take to end after an interrupt, in seconds.
GRACE = 8


# Homes in use, so that an interrupt ends what runs in them.
_homes = set()


def end_all(*_):
    """Ends the processes of all cases and this one: what an interrupt does."""
    for home in list(_homes):
        for process in home.running:
            if process.child.poll() is None:
                process.child.kill()
        home.remove()
    os._exit(130)


class Home:
    """A directory for keys, sockets and outputs, and the processes that run in it; ends them when left."""

    def __init__(self, namecast, keep=None):
        self.namecast = str(Path(namecast).resolve())
        self.keep = keep
        if keep:
            shutil.rmtree(keep, ignore_errors=True)
            keep.mkdir(parents=True)
        # Paths of sockets have 107 octets at most.
        self.path = keep or Path(tempfile.mkdtemp(prefix="inputs-"))
        self.sockets = Path(tempfile.mkdtemp(prefix="in-"))
        self.running = []
        self.environment = {key: value for key, value in os.environ.items() if key != "NDN_CLIENT_TRANSPORT"}
        for key, name in {"HOME": ".", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}.items():
            (self.path / name).mkdir(exist_ok=True)
            self.environment[key] = str(self.path / name)
        self.environment |= {"XDG_RUNTIME_DIR": str(self.sockets), "NO_COLOR": "1"}

    def __enter__(self):
        _homes.add(self)
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.end(signal.SIGKILL)
        _homes.discard(self)
        self.remove()

    def remove(self):
        """Deletes its files, unless they are kept."""
        shutil.rmtree(self.sockets, ignore_errors=True)
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def start(self, name, command, stdin=subprocess.DEVNULL, stdout=None):
        """Starts a program whose output goes to files called `name`."""
        process = Process(self, name, [str(word) for word in command], stdin, stdout)
        self.running.append(process)
        return process

    def namecast_command(self, *arguments):
        """A command of the binary under test, through the case's forwarder."""
        return [self.namecast, *map(str, arguments)]

    def start_forwarder(self, *more):
        """Starts a forwarder, waits for it, and returns what it says of itself."""
        socket = self.sockets / "s"
        command = ["forwarder", "--json", "--udp", "off", "--tcp", "off", "--unix", socket, "--port", "0", *more]
        process = self.start("forwarder", self.namecast_command(*command))
        self.connect = ["--connect", f"unix://{socket}"]
        return process.first_line()


class Process:
    """A running program."""

    def __init__(self, home, name, command, stdin, stdout):
        self.name, self.command = name, command
        self.out, self.err = home.path / f"{name}.out", home.path / f"{name}.err"
        self.begun = time.monotonic()
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.child = subprocess.Popen(command, stdin=stdin, stdout=stdout or out, stderr=err, env=home.environment, cwd=home.path)

    @property
    def is_running(self):
        """Whether it has not ended."""
        return self.child.poll() is None

    def first_line(self):
        """The first line that it prints, which is JSON."""
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            text = self.out.read_bytes()
            if b"\n" in text:
                return json.loads(text[: text.index(b"\n")])
            if not self.is_running:
                break
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start: {self.said()}")

    def wait(self, seconds):
        """Waits for its end; returns whether it ended."""
        try:
            self.child.wait(max(seconds, 0))
            return True
        except subprocess.TimeoutExpired:
            return False

    def end(self, how=signal.SIGINT):
        """Ends it, and returns its exit status; -9 if it did not heed the signal."""
        if self.is_running:
            self.child.send_signal(how)
            if not self.wait(GRACE):
                self.child.kill()
                self.child.wait()
        return self.child.returncode

    def said(self):
        """The last lines it wrote to standard error, in one."""
        text = self.err.read_text(errors="replace").replace("\r", "\n") if self.err.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " / ".join(lines[-3:])[:400]

    def lines(self):
        """The JSON objects it printed."""
        found = []
        for line in self.out.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return found
