//! The test picture: colour bars, a bouncing ball and a scrolling texture, with clock, digits and flash burned in.

use namecast_units::{Random, Timestamp};

use super::burned_clock::{self, Reading};
use super::ladder::PictureSize;

/// How long flash and beep last at the start of each second, in milliseconds.
pub const FLASH_MILLIS: u64 = 100;
/// Colour bars at 75 %, in Y, Cb, Cr (ITU-R BT.601).
const BARS: [(u8, u8, u8); 8] = [
    (180, 128, 128),
    (162, 44, 142),
    (131, 156, 44),
    (112, 72, 58),
    (84, 184, 198),
    (65, 100, 212),
    (35, 212, 114),
    (16, 128, 128),
];
const WHITE: u8 = 235;
const BLACK: u8 = 16;
/// Rows of the texture, of 36 that the picture is divided into: enough detail that each rung fills its bitrate.
const TEXTURE: core::ops::Range<usize> = 24..36;
/// Seed of the texture: any will do, as long as the picture is the same everywhere.
const TEXTURE_SEED: u64 = 7;
/// Digits of three by five cells, one bit a cell, first row in the highest bits; then colon and point.
const GLYPHS: [u16; 12] = [
    0b111_101_101_101_111,
    0b010_110_010_010_111,
    0b111_001_111_100_111,
    0b111_001_111_001_111,
    0b101_101_111_001_001,
    0b111_100_111_001_111,
    0b111_100_111_101_111,
    0b111_001_010_010_010,
    0b111_101_111_101_111,
    0b111_101_111_001_111,
    0b000_010_000_010_000,
    0b000_000_000_000_010,
];

/// Whether flash and beep are on at `at`.
pub const fn is_flash(at: Timestamp) -> bool {
    at.as_micros() / 1_000 % 1_000 < FLASH_MILLIS
}

/// Draws the test picture.
#[derive(Debug)]
pub struct TestPicture {
    size: PictureSize,
    background: Vec<u8>,
    /// Twice as wide as the picture, so that any window of it is one copy per row.
    texture: Vec<u8>,
}

impl TestPicture {
    /// Prepares what does not change from frame to frame.
    pub fn new(size: PictureSize) -> Self {
        Self {
            size,
            background: bars(size),
            texture: texture(size),
        }
    }

    /// Draws frame `number`, captured at `at`, into `frame`, which becomes one raw I420 frame.
    pub fn draw(&self, frame: &mut Vec<u8>, at: Timestamp, number: u64) {
        frame.clear();
        frame.extend_from_slice(&self.background);
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let luma = &mut frame[..width * height];
        let shift = wrapped(number * 3, width);
        for (row, y) in (height * TEXTURE.start / 36..height * TEXTURE.end / 36).enumerate() {
            // Every other band moves the other way, so that motion search has something to do.
            let shift = if row / (height / 18).max(1) % 2 == 0 {
                shift
            } else {
                width - shift
            };
            let from = row * width * 2 + shift;
            luma[y * width..(y + 1) * width].copy_from_slice(&self.texture[from..from + width]);
        }
        self.draw_ball(luma, number);
        self.draw_flash(luma, at);
        self.draw_digits(luma, at, number);
        let reading = Reading {
            millis: at.as_micros() / 1_000,
            number: u16::try_from(number % (1 << 14)).expect("14 bits"),
        };
        reading.draw(luma, self.size);
    }

    fn draw_ball(&self, luma: &mut [u8], number: u64) {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let radius = height / 12;
        let top = burned_clock::ROWS * width / burned_clock::COLUMNS;
        let x = bounce(number * 5, width - 2 * radius) + radius;
        let y = top + bounce(number * 3, height * TEXTURE.start / 36 - top - 2 * radius) + radius;
        for row in y - radius..y + radius {
            let above = row.abs_diff(y);
            let half = (radius * radius - above * above).isqrt();
            luma[row * width + x - half..row * width + x + half].fill(WHITE);
        }
    }

    fn draw_flash(&self, luma: &mut [u8], at: Timestamp) {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let half = width / 20;
        let (x, y) = (width * 7 / 8, height * 4 / 5);
        let level = if is_flash(at) { WHITE } else { BLACK };
        for row in y - half..y + half {
            luma[row * width + x - half..row * width + x + half].fill(level);
        }
    }

    /// Time of day (UTC) and frame number, for people.
    fn draw_digits(&self, luma: &mut [u8], at: Timestamp, number: u64) {
        let millis = at.as_micros() / 1_000;
        let seconds = millis / 1_000;
        let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
        let clock = format!(
            "{hours:02}:{minutes:02}:{:02}.{:03}",
            seconds % 60,
            millis % 1_000
        );
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let cell = width / 80;
        self.draw_text(luma, &clock, (cell * 2, height * 25 / 36), cell);
        let below = height * 25 / 36 + cell * 7;
        self.draw_text(
            luma,
            &number.to_string(),
            (cell * 2, below),
            cell.div_ceil(2),
        );
    }

    fn draw_text(&self, luma: &mut [u8], text: &str, (left, top): (usize, usize), cell: usize) {
        let width = self.size.width as usize;
        let right = left + text.len() * 4 * cell;
        for row in top.saturating_sub(cell)..top + 6 * cell {
            luma[row * width + left - cell..row * width + right].fill(BLACK);
        }
        for (index, character) in text.bytes().enumerate() {
            let glyph = match character {
                b'0'..=b'9' => GLYPHS[usize::from(character - b'0')],
                b':' => GLYPHS[10],
                _ => GLYPHS[11],
            };
            for bit in (0..15).filter(|bit| glyph >> (14 - bit) & 1 == 1) {
                let x = left + (index * 4 + bit % 3) * cell;
                let y = top + bit / 3 * cell;
                for row in y..y + cell {
                    luma[row * width + x..row * width + x + cell].fill(WHITE);
                }
            }
        }
    }
}

fn wrapped(number: u64, length: usize) -> usize {
    usize::try_from(number % length as u64).expect("less than a length")
}

/// Goes from zero to `range` and back as `number` grows.
fn bounce(number: u64, range: usize) -> usize {
    let at = wrapped(number, 2 * range);
    at.min(2 * range - at)
}

fn bars(size: PictureSize) -> Vec<u8> {
    let (width, height) = (size.width as usize, size.height as usize);
    let plane = |width: usize, height: usize, level: fn((u8, u8, u8)) -> u8| {
        let row: Vec<u8> = (0..width)
            .map(|x| level(BARS[x * BARS.len() / width]))
            .collect();
        row.repeat(height)
    };
    let mut frame = plane(width, height, |bar| bar.0);
    let top = height / 2 * TEXTURE.start / TEXTURE.end;
    // No colour behind the clock: its cells are to be as bright as their luma says.
    let clock = (burned_clock::ROWS * width).div_ceil(2 * burned_clock::COLUMNS);
    for level in [|bar: (u8, u8, u8)| bar.1, |bar: (u8, u8, u8)| bar.2] {
        frame.resize(frame.len() + width / 2 * clock, 128);
        frame.extend_from_slice(&plane(width / 2, top - clock, level));
        frame.resize(frame.len() + width / 2 * (height / 2 - top), 128);
    }
    frame
}

/// Patches of random brightness, smooth enough for an encoder to follow as they move.
fn texture(size: PictureSize) -> Vec<u8> {
    let (width, rows) = (
        size.width as usize,
        size.height as usize * TEXTURE.len() / 36 + 1,
    );
    let mut random = Random::from_seed(TEXTURE_SEED);
    let patch = (width / 160).max(2);
    let columns = width.div_ceil(patch);
    let mut texture = Vec::with_capacity(rows * width * 2);
    let mut levels: Vec<u8> = Vec::new();
    for row in 0..rows {
        if row % patch == 0 {
            let level = |_| u8::try_from(60 + random.below(120)).expect("below 256");
            levels = (0..columns).map(level).collect();
        }
        let line: Vec<u8> = (0..width).map(|x| levels[x / patch]).collect();
        texture.extend_from_slice(&line);
        texture.extend_from_slice(&line);
    }
    texture
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: PictureSize = PictureSize {
        width: 320,
        height: 180,
    };

    fn drawn(at: u64, number: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        TestPicture::new(SMALL).draw(&mut frame, Timestamp::from_micros(at), number);
        frame
    }

    #[test]
    fn a_frame_carries_its_clock_and_moves() {
        for number in [0, 1, 16_383, 16_384 + 5, 1 << 40] {
            let frame = drawn(1_767_225_600_123_456, number);
            assert_eq!(frame.len(), SMALL.i420_len());
            let reading = Reading::read(&frame[..320 * 180], SMALL).unwrap();
            assert_eq!(reading.millis, 1_767_225_600_123);
            assert_eq!(u64::from(reading.number), number % (1 << 14));
        }
        let moved = drawn(0, 1)
            .iter()
            .zip(&drawn(0, 2))
            .filter(|(a, b)| a != b)
            .count();
        assert!((2_000..40_000).contains(&moved), "{moved}");
    }

    #[test]
    fn the_flash_lasts_a_tenth_of_each_second() {
        let flash = |at: u64| drawn(at, 9)[144 * 320 + 280];
        assert_eq!([flash(5_000_000), flash(5_099_999)], [WHITE; 2]);
        assert_eq!([flash(4_999_999), flash(5_100_000)], [BLACK; 2]);
    }
}
