"""The tone, whose pitch is another one each second, and how it is measured."""

import array

# Pitch in each second, in Hz. Neighbours are far apart, and all are below half of 8 kHz.
PITCHES = [440, 880, 550, 1100, 660, 990, 770, 1210]
# Samples a second at which sound is measured.
RATE = 16_000
# A cycle belongs to a pitch that is this near, as a share.
NEAR = 0.05
# Cycles that a run needs to count: a tenth of a second of the lowest pitch.
MIN_CYCLES = 40
# Level above which there is sound, of 32767.
LEVEL = 1_000


def drawing(rate, channels, begin=0):
    """The source `aevalsrc` of ffmpeg that plays the tone; `begin` is the second of the list at which it begins."""
    pitch = "+".join(f"{pitch}*eq(mod(floor(t+{begin}),{len(PITCHES)}),{at})" for at, pitch in enumerate(PITCHES))
    tone = f"0.35*sin(2*PI*t*({pitch}))"
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[channels]
    return f"aevalsrc='{'|'.join([tone] * channels)}':s={rate}:c={layout}"


def cycles(samples):
    """Times in samples at which the wave rises through zero, with hysteresis against noise."""
    found = []
    armed = False
    before = 0
    for at, value in enumerate(samples):
        if value < -LEVEL:
            armed = True
        elif armed and value >= 0:
            # Between the last sample below zero and this one; noise within the hysteresis may have crossed before.
            found.append(at - (value / (value - before) if before < 0 else 0.0))
            armed = False
        before = value
    return found


class Run:
    """A stretch of sound of one pitch: its place in the list of pitches, and the times of its cycles in samples."""

    def __init__(self, at):
        self.at, self.times = at, []

    @property
    def pitch(self):
        """Measured without its first and last fifth, where encoders smear, in Hz. What is missing in between is no pitch."""
        inner = self.times[len(self.times) // 5 : len(self.times) * 4 // 5]
        lengths = [end - begin for begin, end in zip(inner, inner[1:])]
        middle = sorted(lengths)[len(lengths) // 2]
        lengths = [length for length in lengths if abs(length - middle) < middle * NEAR]
        return len(lengths) * RATE / sum(lengths)

    @property
    def seconds(self):
        """How much of it is sound."""
        return len(self.times) / self.pitch

    @property
    def begin(self):
        """In seconds."""
        return self.times[0] / RATE

    @property
    def end(self):
        """In seconds."""
        return self.times[-1] / RATE


def nearest(frequency):
    """Place in the list of the pitch that is near; None if none is."""
    at = min(range(len(PITCHES)), key=lambda it: abs(PITCHES[it] - frequency))
    return at if abs(PITCHES[at] - frequency) <= PITCHES[at] * NEAR else None


def runs(octets):
    """Runs in mono sound of 16 bits at `RATE`, in order. Cycles of no pitch that is known are runs of place None."""
    samples = array.array("h")
    samples.frombytes(octets[: len(octets) // 2 * 2])
    times = cycles(samples)
    found = []
    for begin, end in zip(times, times[1:]):
        frequency = RATE / (end - begin)
        at = nearest(frequency)
        if found and found[-1].at == at and begin - found[-1].times[-1] < 1:
            found[-1].times.append(end)
        elif found and at is None and frequency < 100:
            # Silence between two runs.
            continue
        else:
            found.append(Run(at))
            found[-1].times += [begin, end]
    return joined([run for run in found if len(run.times) > 4])


def joined(found):
    """Runs of one pitch that a damaged cycle parted, joined; then those that are long enough."""
    result = []
    for run in found:
        if result and result[-1].at == run.at and run.begin - result[-1].end < 0.05:
            result[-1].times += run.times
        else:
            result.append(run)
    return [run for run in result if len(run.times) >= MIN_CYCLES]
