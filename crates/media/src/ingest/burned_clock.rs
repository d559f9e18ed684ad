//! A clock burned into the picture that programs can read back: when the frame was captured, and its number.
//!
//! Two rows of forty square cells span the top of the picture, so a cell is a fortieth of the width at any size:
//!
//! ```text
//!  ■□ 36 data cells □■      row 0: finder white, black … black, white
//!  □■ 36 data cells ■□      row 1: finder black, white … white, black
//! ```
//!
//! White is one. The 72 data cells hold, first bit first, row 0 then row 1: 42 bits of wall-clock milliseconds since
//! 1970, 14 bits of frame number, and the CRC-16/IBM-3740 of these 56 bits. `docs/burned-in-clock.md` says how to read
//! them from any copy of the picture.

use super::ladder::PictureSize;

/// Cells in a row.
pub const COLUMNS: usize = 40;
/// Rows of cells.
pub const ROWS: usize = 2;
/// Cells of a row that are not finders.
const DATA_COLUMNS: usize = COLUMNS - 4;
/// Luma of an empty and of a full cell: the limits of studio range, which every decoder keeps.
const BLACK: u8 = 16;
const WHITE: u8 = 235;
/// Least difference of luma between black and white finder cells; with less there is no clock in the picture.
const MIN_CONTRAST: u32 = 60;
const MILLIS_BITS: u32 = 42;
const NUMBER_BITS: u32 = 14;
const CRC_BITS: u32 = 16;
const _: () = assert!((MILLIS_BITS + NUMBER_BITS + CRC_BITS) as usize == DATA_COLUMNS * ROWS);

/// What the clock shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Wall-clock time of capture, in milliseconds since 1970; 42 bits.
    pub millis: u64,
    /// Number of the frame, modulo 2¹⁴.
    pub number: u16,
}

/// Why no clock could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The buffer is smaller than the picture is said to be.
    #[error("picture is too small")]
    TooSmall,
    /// The finder cells do not stand out.
    #[error("no clock in the picture")]
    NotFound,
    /// Some data cells were misread.
    #[error("check bits are wrong")]
    Check,
}

/// Whether the cell at `row`, `column` is a finder, and its value if so.
const fn finder(row: usize, column: usize) -> Option<bool> {
    match (row, column) {
        (0, 0 | 39) | (1, 1 | 38) => Some(true),
        (0, 1 | 38) | (1, 0 | 39) => Some(false),
        _ => None,
    }
}

impl Reading {
    /// The 72 data bits, the first in the highest place.
    fn bits(self) -> u128 {
        let millis = self.millis & ((1 << MILLIS_BITS) - 1);
        let number = u64::from(self.number) & ((1 << NUMBER_BITS) - 1);
        let payload = millis << NUMBER_BITS | number;
        u128::from(payload) << CRC_BITS | u128::from(crc16(payload))
    }

    fn from_bits(bits: u128) -> Result<Self, ReadError> {
        let payload = u64::try_from(bits >> CRC_BITS).map_err(|_| ReadError::Check)?;
        let check = bits & ((1 << CRC_BITS) - 1);
        if u128::from(crc16(payload)) != check {
            return Err(ReadError::Check);
        }
        let number = payload & ((1 << NUMBER_BITS) - 1);
        Ok(Self {
            millis: payload >> NUMBER_BITS,
            number: u16::try_from(number).map_err(|_| ReadError::Check)?,
        })
    }

    /// Draws the clock into the luma plane of a picture without padding between rows.
    pub fn draw(self, luma: &mut [u8], size: PictureSize) {
        let (width, bits) = (size.width as usize, self.bits());
        let mut data = 0;
        for row in 0..ROWS {
            let mut line = vec![BLACK; width];
            for column in 0..COLUMNS {
                let white = finder(row, column).unwrap_or_else(|| {
                    data += 1;
                    bits >> (DATA_COLUMNS * ROWS - data) & 1 == 1
                });
                if white {
                    line[edge(column, width)..edge(column + 1, width)].fill(WHITE);
                }
            }
            for y in edge(row, width)..edge(row + 1, width) {
                luma[y * width..(y + 1) * width].copy_from_slice(&line);
            }
        }
    }

    /// Reads the clock from the luma plane of a picture without padding between rows.
    ///
    /// # Errors
    /// If there is no clock, or the encoder has damaged it.
    pub fn read(luma: &[u8], size: PictureSize) -> Result<Self, ReadError> {
        let width = size.width as usize;
        if width < COLUMNS * 4 || luma.len() < width * edge(ROWS, width) {
            return Err(ReadError::TooSmall);
        }
        let (mut darkest_white, mut lightest_black) = (u32::MAX, 0);
        let cells = || (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
        for (row, column) in cells() {
            let level = cell_mean(luma, width, row, column);
            match finder(row, column) {
                Some(true) => darkest_white = darkest_white.min(level),
                Some(false) => lightest_black = lightest_black.max(level),
                None => {}
            }
        }
        if darkest_white < lightest_black + MIN_CONTRAST {
            return Err(ReadError::NotFound);
        }
        let threshold = (darkest_white + lightest_black) / 2;
        let bits = cells()
            .filter(|&(row, column)| finder(row, column).is_none())
            .fold(0_u128, |bits, (row, column)| {
                bits << 1 | u128::from(cell_mean(luma, width, row, column) > threshold)
            });
        Self::from_bits(bits)
    }
}

/// First pixel of cell `index` in a row of `width` pixels.
const fn edge(index: usize, width: usize) -> usize {
    index * width / COLUMNS
}

/// Mean luma of the inner half of a cell: its borders are blurred by scaling and deblocking.
fn cell_mean(luma: &[u8], width: usize, row: usize, column: usize) -> u32 {
    let inner = |index: usize| {
        let (from, to) = (edge(index, width), edge(index + 1, width));
        from + (to - from) / 4..to - (to - from) / 4
    };
    let (mut sum, mut count) = (0_u32, 0_u32);
    for y in inner(row) {
        for x in inner(column) {
            sum += u32::from(luma[y * width + x]);
            count += 1;
        }
    }
    sum / count.max(1)
}

/// CRC-16/IBM-3740 (polynomial 0x1021, initial value 0xffff, not reflected) of the low 56 bits, highest first.
fn crc16(payload: u64) -> u16 {
    let mut crc = 0xffff_u16;
    for bit in (0..MILLIS_BITS + NUMBER_BITS).rev() {
        let feedback = (crc >> 15 == 1) != (payload >> bit & 1 == 1);
        crc <<= 1;
        if feedback {
            crc ^= 0x1021;
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_units::Random;

    fn size(width: u32, height: u32) -> PictureSize {
        PictureSize { width, height }
    }

    /// Against the byte-wise way to compute it, which gives the catalogue's check value 0x29b1 for "123456789".
    #[test]
    fn check_bits_are_those_of_the_catalogue() {
        let bytewise = |octets: &[u8]| {
            let mut crc = 0xffff_u16;
            for &octet in octets {
                crc ^= u16::from(octet) << 8;
                for _ in 0..8 {
                    crc = crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
                }
            }
            crc
        };
        assert_eq!(bytewise(b"123456789"), 0x29b1);
        let payload = b"3456789"
            .iter()
            .fold(0, |sum, &digit| sum << 8 | u64::from(digit));
        assert_eq!(crc16(payload), bytewise(b"3456789"));
    }

    #[test]
    fn what_is_drawn_is_read_back_at_every_size() {
        let mut random = Random::from_seed(1);
        for (width, height) in [(160, 90), (320, 180), (448, 252), (640, 360), (1_280, 720)] {
            let mut luma = vec![128; width as usize * height as usize];
            let reading = Reading {
                millis: random.below(1 << MILLIS_BITS),
                number: u16::try_from(random.below(1 << NUMBER_BITS)).unwrap(),
            };
            reading.draw(&mut luma, size(width, height));
            assert_eq!(Reading::read(&luma, size(width, height)), Ok(reading));
        }
    }

    #[test]
    fn a_misread_cell_is_noticed_and_a_plain_picture_has_no_clock() {
        let reading = Reading {
            millis: 1_767_225_600_123,
            number: 77,
        };
        let mut luma = vec![128; 320 * 180];
        assert_eq!(
            Reading::read(&luma, size(320, 180)),
            Err(ReadError::NotFound)
        );
        reading.draw(&mut luma, size(320, 180));
        for cell in 2..COLUMNS - 2 {
            let mut damaged = luma.clone();
            for y in 0..8 {
                for pixel in &mut damaged[y * 320 + cell * 8..][..8] {
                    *pixel = 251 - *pixel;
                }
            }
            assert_eq!(
                Reading::read(&damaged, size(320, 180)),
                Err(ReadError::Check)
            );
        }
        assert_eq!(
            Reading::read(&luma[..100], size(320, 180)),
            Err(ReadError::TooSmall)
        );
    }
}
