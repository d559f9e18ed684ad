//! The test tone: a beep in the first tenth of each wall-clock second, exact to the sample.

use core::f32::consts::TAU;

use namecast_units::Timestamp;

use super::picture::FLASH_MILLIS;

/// Pitch of the beep; a whole number of periods fits the beep, so it starts and ends at zero.
const PITCH: u32 = 1_000;
/// Loudness, as a share of full scale: plain, not painful.
const LOUDNESS: f32 = 0.25;
/// Microseconds over which the beep swells and fades, so that it does not click.
const EDGE_MICROS: u64 = 2_000;

/// Fills `samples` (one channel) with the tone from the sample at `from` on.
pub fn fill(samples: &mut [i16], from: Timestamp, sample_rate: u32) {
    for (index, sample) in samples.iter_mut().enumerate() {
        let at = from.as_micros() + index as u64 * 1_000_000 / u64::from(sample_rate);
        *sample = level(at % 1_000_000);
    }
}

/// Level at `micros` after the full second.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "at most 10⁵ microseconds, and at most a quarter of full scale"
)]
fn level(micros: u64) -> i16 {
    let length = FLASH_MILLIS * 1_000;
    if micros >= length {
        return 0;
    }
    let edge = micros.min(length - micros).min(EDGE_MICROS) as f32 / EDGE_MICROS as f32;
    let phase = micros as f32 / 1e6 * PITCH as f32;
    (f32::from(i16::MAX) * LOUDNESS * edge * (phase.fract() * TAU).sin()) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 ms at 48 kHz are 960 samples; the second starts with sample 480 of the packet that starts 10 ms before it.
    #[test]
    fn the_beep_starts_with_the_second_and_ends_a_tenth_later() {
        let mut samples = [1; 960];
        fill(&mut samples, Timestamp::from_micros(7_990_000), 48_000);
        assert!(samples[..=480].iter().all(|&sample| sample == 0));
        assert!(samples[481..600].iter().any(|&sample| sample > 7_000));
        fill(&mut samples, Timestamp::from_micros(8_090_000), 48_000);
        assert!(samples[..460].iter().any(|&sample| sample < -4_000));
        assert!(samples[480..].iter().all(|&sample| sample == 0));
    }
}
