//! What colours and marks mean, below the picture, where it hides no data.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{self, Ink};
use super::{Chart, INK, SIZE, clean, colour};

/// Height of a line of entries.
const LINE: u32 = 54;
/// Space for a mark.
const MARK: i32 = 72;
/// Space between two entries.
const GAP: i32 = 44;
/// Left and right of all entries.
const MARGIN: i32 = 40;
/// Size of the text.
const TEXT: f64 = 30.0;
/// Mean width of a letter, as a share of the text's size; no font is at hand to measure.
const LETTER: f64 = 0.53;

/// One entry.
#[derive(Clone, Debug)]
enum Entry {
    Group(usize, String),
    Paper,
    Ideal,
}

impl Entry {
    fn text(&self) -> &str {
        match self {
            Self::Group(_, name) => name,
            Self::Paper => "reported in the paper",
            Self::Ideal => "ideal",
        }
    }

    fn width(&self) -> i32 {
        let letters = self.text().chars().count() as f64;
        MARK + GAP + (letters * LETTER * TEXT).round() as i32
    }
}

/// Entries in lines.
#[derive(Debug)]
pub(super) struct Legend {
    lines: Vec<Vec<Entry>>,
}

impl Legend {
    /// What `chart` needs to be understood.
    pub(super) fn of(chart: &Chart) -> Self {
        let names = draw::group_names(chart);
        let mut entries: Vec<Entry> = Vec::new();
        for (index, name) in names
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty())
        {
            entries.push(Entry::Group(index, clean(name)));
        }
        let [paper, ideal] = draw::has_references(chart);
        entries.extend(paper.then_some(Entry::Paper));
        entries.extend(ideal.then_some(Entry::Ideal));
        let room = SIZE.0 as i32 - 2 * MARGIN;
        let mut lines: Vec<Vec<Entry>> = Vec::new();
        let mut used = room;
        for entry in entries {
            if used + entry.width() > room {
                lines.push(Vec::new());
                used = 0;
            }
            used += entry.width();
            lines.last_mut().expect("one was just made").push(entry);
        }
        Self { lines }
    }

    /// How much of the picture it takes.
    pub(super) fn height(&self) -> u32 {
        self.lines.len() as u32 * LINE + 12
    }

    /// Draws it into an area of that height.
    pub(super) fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String> {
        let style = TextStyle::from(("sans-serif", TEXT).into_font())
            .color(&INK)
            .pos(Pos::new(HPos::Left, VPos::Center));
        for (row, line) in self.lines.iter().enumerate() {
            let y = (row as u32 * LINE + LINE / 2) as i32;
            let width: i32 = line.iter().map(Entry::width).sum();
            let mut x = ((SIZE.0 as i32 - width) / 2).max(MARGIN);
            for entry in line {
                let middle = (x + MARK / 2 - 6, y);
                match entry {
                    Entry::Group(index, _) => {
                        let stroke = colour(*index).stroke_width(5);
                        let ends = vec![(middle.0 - 28, y), (middle.0 + 28, y)];
                        draw::put(area, PathElement::new(ends, stroke))?;
                        draw::mark(area, middle, *index, Ink::Full)?;
                    }
                    Entry::Paper => draw::mark(area, middle, 0, Ink::Open(INK))?,
                    Entry::Ideal => {
                        draw::dashed(area, [(middle.0 - 28, y), (middle.0 + 28, y)], INK)?;
                    }
                }
                draw::put(
                    area,
                    Text::new(entry.text().to_owned(), (x + MARK, y), style.clone()),
                )?;
                x += entry.width();
            }
        }
        Ok(())
    }
}
