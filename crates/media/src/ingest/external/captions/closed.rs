//! The screen of a decoder of CEA-608, channel 1 (CC1): text alone, without colours and places.

use core::mem;
use std::collections::BTreeMap;

use cea608_types::tables::Channel;
use cea608_types::{Cea608, Cea608State, Mode, Text};

use super::Shown;

/// Size of the screen in characters: CTA-608-E, section 4.
pub(super) const ROWS: usize = 15;
pub(super) const COLUMNS: usize = 32;
/// Pictures whose pairs wait for those presented before them: more than encoders reorder.
const MAX_WAITING: usize = 64;

/// Closed captions of the pictures of an input.
#[derive(Debug, Default)]
pub(super) struct ClosedCaptions {
    /// Pairs by the presentation times of their pictures.
    waiting: BTreeMap<u64, Vec<[u8; 2]>>,
    state: Cea608State,
    screen: Screen,
    shown: Shown,
}

impl ClosedCaptions {
    /// Takes the pairs of the picture that is presented at `pts`.
    pub(super) fn push(&mut self, pts: u64, pairs: Vec<[u8; 2]>) {
        if !pairs.is_empty() && self.waiting.len() < MAX_WAITING {
            self.waiting.insert(pts, pairs);
        }
    }

    /// Returns what is shown at `now`.
    pub(super) fn at(&mut self, now: u64) -> &Shown {
        while let Some(entry) = self.waiting.first_entry().filter(|it| *it.key() <= now) {
            let (since, pairs) = entry.remove_entry();
            for pair in pairs {
                // Parity shows that a pair is damaged: characters are missing then.
                if let Ok(Some(code)) = self.state.decode(pair) {
                    self.screen.handle(code);
                }
            }
            let text = self.screen.text();
            if text != self.shown.text {
                self.shown = Shown { since, text };
            }
        }
        &self.shown
    }
}

type Rows = [[char; COLUMNS]; ROWS];

const BLANK: [char; COLUMNS] = [' '; COLUMNS];

/// Displayed memory, non-displayed memory, and the cursor.
#[derive(Debug)]
struct Screen {
    mode: Option<Mode>,
    displayed: Rows,
    loaded: Rows,
    /// Place of the next character.
    row: usize,
    column: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            mode: None,
            displayed: [BLANK; ROWS],
            loaded: [BLANK; ROWS],
            row: ROWS - 1,
            column: 0,
        }
    }
}

impl Screen {
    fn handle(&mut self, code: Cea608) {
        if code.channel() != Channel::ONE {
            return;
        }
        match code {
            Cea608::NewMode(_, mode) => self.change_mode(mode),
            Cea608::Text(text) => self.write(text),
            // An attribute takes the place of a character.
            Cea608::MidRowChange(..) => self.put(' '),
            Cea608::Backspace(_) => {
                if let Some(column) = self.column.checked_sub(1) {
                    self.column = column;
                    self.set(' ');
                }
            }
            Cea608::DeleteToEndOfRow(_) => {
                let (row, column) = (self.row, self.column);
                if let Some(row) = self.memory().get_mut(row) {
                    row.iter_mut().skip(column).for_each(|it| *it = ' ');
                }
            }
            Cea608::TabOffset(_, columns) => self.move_to(self.column + usize::from(columns)),
            Cea608::Preamble(_, preamble) => {
                self.change_row(preamble.row().into());
                self.move_to(preamble.column().into());
            }
            Cea608::CarriageReturn(_) => self.roll_up(),
            Cea608::EraseDisplay(_) => self.displayed = [BLANK; ROWS],
            Cea608::EraseNonDisplay(_) => self.loaded = [BLANK; ROWS],
            Cea608::EndOfCaption(_) => {
                mem::swap(&mut self.displayed, &mut self.loaded);
                self.mode = Some(Mode::PopOn);
            }
        }
    }

    fn change_mode(&mut self, mode: Mode) {
        let was_rolling = self.mode.is_some_and(|it| it.is_rollup());
        if mode.is_rollup() && !was_rolling {
            *self = Self::default();
        }
        self.mode = Some(mode);
    }

    /// Rows that roll up; zero in other modes.
    fn rolling(&self) -> usize {
        self.mode
            .and_then(|it| it.rollup_rows())
            .unwrap_or(0)
            .into()
    }

    /// The memory that characters go to.
    fn memory(&mut self) -> &mut Rows {
        match self.mode {
            Some(Mode::PopOn) => &mut self.loaded,
            _ => &mut self.displayed,
        }
    }

    /// Sets the character at the cursor, which is always within the screen.
    fn set(&mut self, character: char) {
        let (row, column) = (self.row, self.column);
        let row = self.memory().get_mut(row);
        if let Some(cell) = row.and_then(|row| row.get_mut(column)) {
            *cell = character;
        }
    }

    fn write(&mut self, text: Text) {
        if text.needs_backspace {
            self.column = self.column.saturating_sub(1);
        }
        [text.char1, text.char2]
            .into_iter()
            .flatten()
            .for_each(|it| self.put(it));
    }

    /// Writes a character; the last column is written over by what no longer fits.
    fn put(&mut self, character: char) {
        // Before the first mode, it is unknown where text belongs.
        if self.mode.is_some() {
            self.set(character);
            self.move_to(self.column + 1);
        }
    }

    fn move_to(&mut self, column: usize) {
        self.column = column.min(COLUMNS - 1);
    }

    /// Goes to a row. Rows that roll up go along.
    fn change_row(&mut self, row: usize) {
        let row = row.min(ROWS - 1);
        let before = mem::replace(&mut self.row, row);
        let count = self.rolling();
        if count == 0 || row == before {
            return;
        }
        let rows = mem::replace(&mut self.displayed, [BLANK; ROWS]);
        for up in 0..count {
            let from = before.checked_sub(up).and_then(|at| rows.get(at));
            let to = row
                .checked_sub(up)
                .and_then(|at| self.displayed.get_mut(at));
            if let (Some(to), Some(from)) = (to, from) {
                *to = *from;
            }
        }
    }

    fn roll_up(&mut self) {
        let count = self.rolling();
        if count == 0 {
            return;
        }
        let below = self.row + 1;
        let top = below.saturating_sub(count);
        let above = self.displayed.iter_mut().take(top);
        above.for_each(|row| *row = BLANK);
        if let Some(rolling) = self.displayed.get_mut(top..below) {
            rolling.rotate_left(1);
            rolling
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|row| *row = BLANK);
        }
        self.column = 0;
    }

    /// The rows that are displayed and not blank, without spaces around them.
    fn text(&self) -> String {
        let rows = self
            .displayed
            .iter()
            .map(|row| row.iter().collect::<String>());
        let rows = rows.map(|row| row.trim().to_owned());
        let rows: Vec<_> = rows.filter(|row| !row.is_empty()).collect();
        rows.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands of channel 1 by their octets in CTA-608-E, table 52; a preamble for row 15 and one for row 14, without indent.
    const LOAD: [u8; 2] = [0x14, 0x20];
    const BACKSPACE: [u8; 2] = [0x14, 0x21];
    const ROLL_UP_2: [u8; 2] = [0x14, 0x25];
    const PAINT: [u8; 2] = [0x14, 0x29];
    const ERASE: [u8; 2] = [0x14, 0x2c];
    const RETURN: [u8; 2] = [0x14, 0x2d];
    const SHOW: [u8; 2] = [0x14, 0x2f];
    const ROW_14: [u8; 2] = [0x14, 0x40];
    const ROW_15: [u8; 2] = [0x14, 0x60];
    /// Loading in channel 2.
    const LOAD_OTHER: [u8; 2] = [0x1c, 0x20];

    fn with_parity(pair: [u8; 2]) -> [u8; 2] {
        pair.map(|it| {
            if it.count_ones() % 2 == 0 {
                it | 0x80
            } else {
                it
            }
        })
    }

    /// Feeds pairs, one a millisecond from `begin` on, each command once. Returns what is shown then.
    fn feed(captions: &mut ClosedCaptions, begin: u64, pairs: &[[u8; 2]]) -> (u64, String) {
        for (at, pair) in (begin..).zip(pairs) {
            captions.push(at, vec![with_parity(*pair)]);
        }
        let shown = captions.at(begin + pairs.len() as u64);
        (shown.since, shown.text.clone())
    }

    #[test]
    fn captions_pop_on_whole_and_are_erased() {
        let mut captions = ClosedCaptions::default();
        let loading = [LOAD, ROW_14, *b"HI", ROW_15, *b"YO", *b"U "];
        assert_eq!(feed(&mut captions, 0, &loading), (0, String::new()));
        assert_eq!(feed(&mut captions, 10, &[SHOW]), (10, "HI\nYOU".to_owned()));
        assert_eq!(feed(&mut captions, 20, &[ERASE]), (20, String::new()));
    }

    /// Two rows roll up: the first goes when the third comes. A preamble moves both.
    #[test]
    fn rows_roll_up() {
        let mut captions = ClosedCaptions::default();
        let rows = [ROLL_UP_2, ROW_15, *b"AA", RETURN, *b"BB", RETURN, *b"CC"];
        assert_eq!(feed(&mut captions, 0, &rows).1, "BB\nCC");
        assert_eq!(feed(&mut captions, 10, &[ROW_14, BACKSPACE]).1, "BB\nCC");
        assert_eq!(feed(&mut captions, 20, &[*b"DD"]).1, "BB\nDD");
    }

    /// The é of 0x12 0x28 replaces the letter sent before it for decoders that lack it.
    #[test]
    fn characters_replace_their_substitutes() {
        let mut captions = ClosedCaptions::default();
        let text = [PAINT, ROW_15, *b"CE", [0x12, 0x21]];
        assert_eq!(feed(&mut captions, 0, &text).1, "CÉ");
    }

    #[test]
    fn pairs_take_effect_in_the_order_of_presentation() {
        let mut captions = ClosedCaptions::default();
        let pairs = [
            (0, PAINT),
            (1, ROW_15),
            (5, *b"EF"),
            (3, *b"AB"),
            (4, *b"CD"),
        ];
        for (pts, pair) in pairs {
            captions.push(pts, vec![with_parity(pair)]);
        }
        assert_eq!(captions.at(4).text, "ABCD");
        assert_eq!(captions.at(5).text, "ABCDEF");
    }

    /// Damaged, of channel 2, before any mode, too long for a row, and any at all.
    #[test]
    fn pairs_that_make_no_sense_are_harmless() {
        let mut captions = ClosedCaptions::default();
        captions.push(0, vec![[0x20, 0x20], with_parity(*b"XY")]);
        assert_eq!(captions.at(1).text, "");
        assert_eq!(
            feed(&mut captions, 2, &[LOAD_OTHER, *b"XY", [0x1c, 0x2f]]).1,
            ""
        );
        let long = [&[PAINT, ROW_15][..], &[*b"AB"; 40]].concat();
        assert_eq!(feed(&mut captions, 10, &long).1.chars().count(), COLUMNS);
        let mut random = namecast_units::Random::from_seed(1);
        for at in 100..20_000 {
            let pair = [(); 2].map(|()| random.next_u64().to_le_bytes()[0] & 0x7f);
            captions.push(at, vec![with_parity(pair)]);
            captions.at(at);
        }
    }
}
