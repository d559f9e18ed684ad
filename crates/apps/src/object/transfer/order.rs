//! In which order segments leave for who requests any next.
//!
//! ```text
//!  pass:  0 1 2 … S−1 │ row 0 of parity: one segment of each block, blocks shuffled │ row 1 │ …      then again from 0
//! ```
//!
//! A receiver at a third of the rate gets a third of each block: of content, as it leaves in order, and of parity, as each row has all
//! blocks. In a fixed order of blocks it would get all of one and nothing of another.

use namecast_units::Random;

use super::{Coding, Contents};

/// Walks over the segments of an object without end.
#[derive(Debug)]
pub(super) struct Order {
    segments: u64,
    coding: Option<Coding>,
    has_parity: bool,
    /// Segments that have left in this pass.
    position: u64,
    /// The row of parity in which the position is, and its order of blocks.
    row: Option<u64>,
    blocks: Vec<u32>,
}

impl Order {
    pub(super) fn new(contents: &Contents) -> Self {
        Self {
            segments: contents.segments(),
            coding: contents.coding,
            has_parity: false,
            position: 0,
            row: None,
            blocks: Vec::new(),
        }
    }

    /// Lets parity leave from now on, after content: at once, as all of that has left.
    pub(super) const fn add_parity(&mut self) {
        self.has_parity = true;
        self.position = self.segments;
    }

    /// Begins again.
    pub(super) const fn restart(&mut self) {
        self.position = 0;
    }

    /// Returns whether the segments with content have just left.
    pub(super) const fn is_after_content(&self) -> bool {
        self.position == self.segments
    }

    /// Returns the number of the segment that leaves next.
    pub(super) fn next(&mut self) -> u64 {
        let coding = self.coding.filter(|_| self.has_parity);
        let parity = coding.map_or(0, |it| it.blocks(self.segments) * u64::from(it.parity));
        if self.position >= self.segments + parity {
            self.position = 0;
        }
        let position = self.position;
        self.position += 1;
        match (position.checked_sub(self.segments), coding) {
            (Some(parity), Some(coding)) => self.parity(coding, parity),
            _ => position,
        }
    }

    fn parity(&mut self, coding: Coding, position: u64) -> u64 {
        let blocks = coding.blocks(self.segments);
        let (row, place) = (position / blocks, position % blocks);
        if self.row != Some(row) {
            self.row = Some(row);
            self.blocks = (0..blocks as u32).collect();
            let mut random = Random::from_seed(row);
            for last in (1..self.blocks.len()).rev() {
                let other = random.below(last as u64 + 1) as usize;
                self.blocks.swap(last, other);
            }
        }
        let block = u64::from(self.blocks[place as usize]);
        self.segments + block * u64::from(coding.parity) + row
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::contents::tests::contents;
    use super::*;

    /// 40 segments in four blocks of ten with 20 parity each: a pass of 120. Whoever gets each third has a third of each block, and
    /// three to five of ten in any tenth of the rows.
    #[test]
    fn every_block_gets_its_share_whatever_the_receivers_rate() {
        let mut contents = contents(&[("a", 40 * 3_776)]);
        contents.coding = Some(Coding {
            block: 10,
            parity: 20,
        });
        let mut order = Order::new(&contents);
        let first: Vec<_> = (0..41).map(|_| order.next()).collect();
        assert_eq!(first[..40], (0..40).collect::<Vec<_>>());
        assert_eq!(first[40], 0, "no parity is there yet");
        order.add_parity();
        order.restart();
        let pass: Vec<_> = (0..120).map(|_| order.next()).collect();
        assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 120);
        assert_eq!(order.next(), 0);
        for class in [2, 3, 4, 5, 8] {
            let mut of_block = [0; 4];
            for number in pass.iter().step_by(class) {
                let block = contents.coding.unwrap().block_of(40, *number);
                of_block[block as usize] += 1;
            }
            let fair = 30 / class as i32;
            assert!(
                of_block.iter().all(|it: &i32| (it - fair).abs() <= 3),
                "1 : {class}: {of_block:?}"
            );
        }
    }
}
