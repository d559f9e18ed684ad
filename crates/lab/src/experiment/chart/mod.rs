//! Pictures as SVG: the same numbers give the same bytes.
//!
//! Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart; groups differ in the shape of
//! their marks too. Everything that is neither data nor white is drawn in [`INK`] or [`FAINT`], which the report turns into the
//! colours of its theme.

mod draw;
mod legend;

use plotters::prelude::*;
use plotters::style::RGBColor;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(0x1d, 0x24, 0x2b);
/// Lines of the grid.
pub(super) const FAINT: RGBColor = RGBColor(0xd9, 0xde, 0xe3);
/// The picture's ground.
pub(super) const GROUND: RGBColor = RGBColor(0xff, 0xff, 0xff);
/// Okabe and Ito's colours, the ones with most contrast first; yellow and black do badly on one of the two themes.
const PALETTE: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x88, 0x88, 0x88),
];
/// Units of the picture; it is shown at about half of that, where whole units are fine enough.
const SIZE: (u32, u32) = (1_600, 960);

/// A picture with two axes.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_label: String,
    pub(super) y_label: String,
    pub(super) y_min: Option<f64>,
    pub(super) y_max: Option<f64>,
    pub(super) body: Body,
}

/// What is between the axes.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Marks with lines, or curves.
    Lines {
        /// One colour each.
        groups: Vec<Group>,
    },
    /// Bars beside each other, over categories.
    Bars {
        /// Below the axis.
        categories: Vec<String>,
        /// One colour each; a spot's `x` is the index of its category.
        groups: Vec<Group>,
    },
    /// How many values fall into each of equal parts.
    Histogram {
        /// Name and counts.
        groups: Vec<(String, Vec<f64>)>,
        /// Where the first part begins.
        low: f64,
        /// Width of a part.
        width: f64,
        /// On the horizontal axis: what the paper reports, and what would be ideal.
        levels: [Option<f64>; 2],
    },
}

/// What has one colour.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// In the legend; empty where there is only one.
    pub(super) name: String,
    /// Measured points.
    pub(super) spots: Vec<Spot>,
    /// A curve of many points.
    pub(super) curve: Vec<(f64, f64)>,
    /// On the vertical axis: what the paper reports for the whole curve, and what would be ideal.
    pub(super) levels: [Option<f64>; 2],
}

impl Group {
    /// A group without content.
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

/// One measured point.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) x: f64,
    /// Mean, lower and upper end of its confidence interval.
    pub(super) measured: Option<[f64; 3]>,
    /// Each run by itself, if it is to be seen.
    pub(super) runs: Vec<f64>,
    pub(super) paper: Option<f64>,
    pub(super) ideal: Option<f64>,
}

impl Chart {
    /// Draws it.
    ///
    /// # Errors
    /// The library refuses; what it says.
    pub(super) fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            let drawn = root
                .fill(&GROUND)
                .map_err(|error| error.to_string())
                .and_then(|()| draw::chart(self, &root))
                .and_then(|()| root.present().map_err(|error| error.to_string()));
            drawn.map_err(|error| format!("figure '{}' cannot be drawn: {error}", self.title))?;
        }
        Ok(text)
    }
}

/// The colour of the group with this index.
fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Text that XML allows.
fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}
