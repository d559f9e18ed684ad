//! The ladder: which bitrates a video is encoded at, and how large its picture is at each.

use core::fmt;
use core::str::FromStr;

use namecast_units::Bitrate;

/// Name of the rung that is the input as it is.
pub(crate) const COPY: &str = "copy";
/// Most rungs a ladder may have: each costs one encoder.
const MAX_RUNGS: usize = 6;
/// Lowest bitrate that still carries a picture.
const MIN_BITRATE: Bitrate = Bitrate::kbps(50);
/// Highest bitrate that is accepted; beyond it a typing error is likelier than a wish.
const MAX_BITRATE: Bitrate = Bitrate::mbps(50);
/// Heights are multiples of this, so that the width of a 16:9 picture is a multiple of 32.
const HEIGHT_STEP: u64 = 18;
/// Picture height that suits a bitrate, in kbit/s; between two points it is interpolated.
const HEIGHTS: [(u64, u64); 5] = [
    (200, 180),
    (1_000, 360),
    (3_000, 720),
    (6_000, 1_080),
    (50_000, 1_080),
];

/// Width and height of a picture in pixels, both even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureSize {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl PictureSize {
    /// The 16:9 picture that a bitrate can carry with a decent look.
    pub fn for_bitrate(bitrate: Bitrate) -> Self {
        let kbps = bitrate.as_bps() / 1_000;
        let above = HEIGHTS
            .iter()
            .position(|&(at, _)| kbps <= at)
            .unwrap_or(HEIGHTS.len() - 1);
        let height = match above {
            0 => HEIGHTS[0].1,
            #[expect(clippy::indexing_slicing, reason = "a place in the table")]
            _ => {
                let (low, low_height) = HEIGHTS[above - 1];
                let (high, high_height) = HEIGHTS[above];
                let into = kbps.min(high) - low;
                low_height + (high_height - low_height) * into / (high - low)
            }
        };
        let steps = (height + HEIGHT_STEP / 2) / HEIGHT_STEP;
        let pixels = |n: u64| u32::try_from(n).expect("HEIGHTS are small");
        Self {
            width: pixels(steps * HEIGHT_STEP * 16 / 9),
            height: pixels(steps * HEIGHT_STEP),
        }
    }

    /// Octets of one raw frame in I420: a byte of luma per pixel, and two of chroma per four pixels.
    pub const fn i420_len(self) -> usize {
        let luma = self.width as usize * self.height as usize;
        luma + luma / 2
    }
}

impl fmt::Display for PictureSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// One bitrate of a ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// The bitrate as names and people write it: `200k`, `1M`.
    pub label: String,
    /// Mean rate of the encoded video.
    pub bitrate: Bitrate,
    /// Picture at this rung.
    pub size: PictureSize,
    /// Of a rung that is the input as it is: the codec as WebCodecs names it.
    pub copied: Option<String>,
}

impl Rung {
    /// Whether it is the input as it is.
    pub const fn is_copied(&self) -> bool {
        self.copied.is_some()
    }
}

/// A rung as people write it, `1M` or `1M@640x360`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungWish {
    bitrate: Bitrate,
    /// Picture, if they chose one.
    size: Option<PictureSize>,
}

impl RungWish {
    /// The rung, with the picture that suits its bitrate: in the shape of a `source`, and no larger.
    pub fn fit(&self, source: PictureSize) -> Rung {
        let fitting = || {
            let suits = PictureSize::for_bitrate(self.bitrate);
            let pixels = |size: PictureSize| f64::from(size.width) * f64::from(size.height);
            let scale = (pixels(suits) / pixels(source).max(1.0)).sqrt().min(1.0);
            let even = |length: u32| ((f64::from(length) * scale / 2.0).round() as u32).max(1) * 2;
            PictureSize {
                width: even(source.width),
                height: even(source.height),
            }
        };
        self.rung(self.size.unwrap_or_else(fitting))
    }

    /// The rung of a drawn picture, which is 16:9.
    pub fn standing_alone(&self) -> Rung {
        self.rung(
            self.size
                .unwrap_or_else(|| PictureSize::for_bitrate(self.bitrate)),
        )
    }

    fn rung(&self, size: PictureSize) -> Rung {
        Rung {
            label: label(self.bitrate),
            bitrate: self.bitrate,
            size,
            copied: None,
        }
    }
}

/// A ladder as people write it: `copy,1M,300k`. Without any rung it is left to the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LadderWish {
    /// The input as it is, too.
    pub copies: bool,
    /// Rungs to encode.
    pub rungs: Vec<RungWish>,
}

impl LadderWish {
    /// The ladder of a drawn picture, which is 16:9; the default one if it is left open.
    ///
    /// # Errors
    /// If the input is to be copied, as there is none.
    pub fn ladder(&self) -> Result<Ladder, LadderError> {
        match (self.copies, self.rungs.is_empty()) {
            (true, _) => Err(LadderError::Copy),
            (false, true) => Ok(Ladder::default()),
            (false, false) => Ladder::of(self.rungs.iter().map(RungWish::standing_alone).collect()),
        }
    }

    /// Its rungs to encode, or those of the default ladder, in the shape of a picture of this `size`, and no larger.
    pub fn fit(&self, size: PictureSize) -> Vec<Rung> {
        if self.rungs.is_empty() {
            let default = Ladder::default();
            let rungs = default.rungs().iter();
            let mut rungs: Vec<_> = rungs
                .map(|rung| Self::rung(rung.bitrate).fit(size))
                .collect();
            // A small picture is not worth several bitrates.
            rungs.dedup_by_key(|rung| rung.size);
            return rungs;
        }
        self.rungs.iter().map(|rung| rung.fit(size)).collect()
    }

    /// The wish for a rung of this bitrate.
    pub const fn rung(bitrate: Bitrate) -> RungWish {
        RungWish {
            bitrate,
            size: None,
        }
    }
}

impl FromStr for LadderWish {
    type Err = LadderError;

    fn from_str(text: &str) -> Result<Self, LadderError> {
        let words = text.split(',').map(str::trim);
        let (copies, rungs): (Vec<_>, Vec<_>) = words
            .filter(|rung| !rung.is_empty())
            .partition(|rung| *rung == COPY);
        let rungs = rungs.into_iter().map(parse_rung);
        let wish = Self {
            copies: !copies.is_empty(),
            rungs: rungs.collect::<Result<_, _>>()?,
        };
        // Two of one bitrate, or too many, are known before there is an input.
        if !wish.rungs.is_empty() || !wish.copies {
            Ladder::of(wish.rungs.iter().map(RungWish::standing_alone).collect())?;
        }
        Ok(wish)
    }
}

impl fmt::Display for LadderWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = self.copies.then(|| COPY.to_owned());
        let rungs = self.rungs.iter().map(|rung| label(rung.bitrate));
        let words: Vec<_> = copy.into_iter().chain(rungs).collect();
        f.write_str(&words.join(","))
    }
}

/// Bitrates that a video is encoded at, lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder(Vec<Rung>);

impl Ladder {
    /// A ladder of these rungs.
    ///
    /// # Errors
    /// If there are none, too many, or two of one bitrate.
    pub fn of(mut rungs: Vec<Rung>) -> Result<Self, LadderError> {
        if rungs.is_empty() || rungs.len() > MAX_RUNGS {
            return Err(LadderError::Count(rungs.len()));
        }
        rungs.sort_by_key(|rung| rung.bitrate);
        let mut pairs = rungs.iter().zip(rungs.iter().skip(1));
        match pairs.find(|(rung, next)| rung.bitrate == next.bitrate) {
            Some((rung, _)) => Err(LadderError::Twice(rung.label.clone())),
            None => Ok(Self(rungs)),
        }
    }

    /// The rungs, lowest bitrate first; never empty.
    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }

    /// The picture of the highest rung: what a source should deliver.
    pub fn largest(&self) -> PictureSize {
        self.0
            .iter()
            .map(|rung| rung.size)
            .max_by_key(|size| size.i420_len())
            .expect("a ladder has a rung")
    }
}

impl Default for Ladder {
    /// 200 kbit/s, 1 Mbit/s and 3 Mbit/s.
    fn default() -> Self {
        "200k,1M,3M".parse().expect("the default ladder is valid")
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<_> = self.0.iter().map(|rung| rung.label.as_str()).collect();
        f.write_str(&labels.join(","))
    }
}

/// Why a ladder was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// A rung is not a bitrate.
    #[error(
        "'{0}' is not a bitrate: write 200k, 1M or 1.5M, with '@640x360' behind it to choose the picture's size"
    )]
    Bitrate(String),
    /// A bitrate is outside what is sensible.
    #[error("{0} is no bitrate of a video: write one from {MIN_BITRATE} to {MAX_BITRATE}")]
    OutOfRange(Bitrate),
    /// A picture size is not two even numbers.
    #[error(
        "'{0}' is not a picture size: write two even numbers from 64x36 to 3840x2160, as in 640x360"
    )]
    Size(String),
    /// A drawn picture is encoded nowhere yet.
    #[error("'copy' passes an input through that is encoded already: name one with --input")]
    Copy,
    /// The same bitrate stands twice.
    #[error("rung {0} stands twice: write each bitrate once")]
    Twice(String),
    /// There are too many rungs, or none.
    #[error("a ladder has 1 to {MAX_RUNGS} rungs, not {0}: write 200k,1M,3M")]
    Count(usize),
}

impl FromStr for Ladder {
    type Err = LadderError;

    fn from_str(text: &str) -> Result<Self, LadderError> {
        text.parse::<LadderWish>()?.ladder()
    }
}

fn parse_rung(text: &str) -> Result<RungWish, LadderError> {
    let (rate, size) = match text.split_once('@') {
        Some((rate, size)) => (rate, Some(parse_size(size)?)),
        None => (text, None),
    };
    let bitrate = rate
        .parse()
        .map_err(|_| LadderError::Bitrate(text.to_owned()))?;
    if !(MIN_BITRATE..=MAX_BITRATE).contains(&bitrate) {
        return Err(LadderError::OutOfRange(bitrate));
    }
    Ok(RungWish { bitrate, size })
}

impl FromStr for PictureSize {
    type Err = LadderError;

    fn from_str(text: &str) -> Result<Self, LadderError> {
        parse_size(text)
    }
}

fn parse_size(text: &str) -> Result<PictureSize, LadderError> {
    let number = |text: &str| text.parse::<u32>().ok();
    let size = text
        .split_once('x')
        .and_then(|(width, height)| Some((number(width)?, number(height)?)));
    match size {
        Some((width, height))
            if (64..=3_840).contains(&width)
                && (36..=2_160).contains(&height)
                && width % 2 == 0
                && height % 2 == 0 =>
        {
            Ok(PictureSize { width, height })
        }
        _ => Err(LadderError::Size(text.to_owned())),
    }
}

/// The shortest way to write a bitrate: `200k`, `1M`, `1500k`.
pub fn label(bitrate: Bitrate) -> String {
    match bitrate.as_bps() {
        bps if bps % 1_000_000 == 0 => format!("{}M", bps / 1_000_000),
        bps if bps % 1_000 == 0 => format!("{}k", bps / 1_000),
        bps => bps.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(ladder: &str) -> Vec<(String, u32, u32)> {
        let ladder: Ladder = ladder.parse().unwrap();
        let rung = |rung: &Rung| (rung.label.clone(), rung.size.width, rung.size.height);
        ladder.rungs().iter().map(rung).collect()
    }

    #[test]
    fn the_default_ladder_is_the_documented_one() {
        let expected = [
            ("200k".to_owned(), 320, 180),
            ("1M".to_owned(), 640, 360),
            ("3M".to_owned(), 1_280, 720),
        ];
        assert_eq!(sizes("200k,1M,3M"), expected);
        assert_eq!(Ladder::default().to_string(), "200k,1M,3M");
        assert_eq!(Ladder::default().largest().i420_len(), 1_382_400);
    }

    /// 500k lies 3/8 of the way from 180 to 360 lines: 247, to the next multiple of 18 is 252, times 16/9 is 448.
    /// 2M lies half-way from 360 to 720: 540. 6M and above: 1080.
    #[test]
    fn sizes_between_the_points_are_interpolated() {
        let expected = [
            ("100k".to_owned(), 320, 180),
            ("500k".to_owned(), 448, 252),
            ("2M".to_owned(), 960, 540),
            ("20M".to_owned(), 1_920, 1_080),
        ];
        assert_eq!(sizes("20M, 2000k, 500k, 100k"), expected);
    }

    #[test]
    fn a_size_may_be_chosen() {
        assert_eq!(sizes("1.5M@800x450"), [("1500k".to_owned(), 800, 450)]);
    }

    #[test]
    fn what_is_no_ladder_is_refused_with_its_reason() {
        let refused = |text: &str| text.parse::<Ladder>().unwrap_err();
        assert_eq!(refused(""), LadderError::Count(0));
        assert_eq!(refused("1M,2M,3M,4M,5M,6M,7M"), LadderError::Count(7));
        assert_eq!(refused("fast"), LadderError::Bitrate("fast".into()));
        assert_eq!(refused("-1M"), LadderError::Bitrate("-1M".into()));
        assert_eq!(refused("1M,1000k"), LadderError::Twice("1M".into()));
        assert_eq!(refused("49k"), LadderError::OutOfRange(Bitrate::kbps(49)));
        assert_eq!(refused("51M"), LadderError::OutOfRange(Bitrate::mbps(51)));
        assert_eq!(refused("1M@641x360"), LadderError::Size("641x360".into()));
        assert_eq!(refused("1M@big"), LadderError::Size("big".into()));
    }
}
