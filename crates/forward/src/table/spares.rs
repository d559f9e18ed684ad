//! Memory of packets that a table has let go, for those that it is to keep.

use bytes::{Bytes, BytesMut};

/// Copies packets into memory that is taken back, so that a node through which as much leaves as comes asks the allocator for
/// none.
#[derive(Debug, Default)]
pub(super) struct Spares {
    buffers: Vec<BytesMut>,
    /// Which of them gives way to the next, when there are [`MOST`].
    oldest: usize,
}

/// Packets of a stream have few sizes, and one leaves for each that comes.
const MOST: usize = 16;
/// Sizes of memory are multiples of this, as the allocator's are.
const STEP: usize = 16;

impl Spares {
    /// A copy of `octets`, in memory of its own.
    pub(super) fn copy(&mut self, octets: &[u8]) -> Bytes {
        let capacity = octets.len().next_multiple_of(STEP);
        let mut fitting = self.buffers.iter();
        let Some(place) = fitting.rposition(|spare| spare.capacity() == capacity) else {
            let mut buffer = BytesMut::with_capacity(capacity);
            buffer.extend_from_slice(octets);
            // Memory that was split once has the count of its users beside it for good.
            return buffer.split().freeze();
        };
        let mut buffer = self.buffers.swap_remove(place);
        buffer.extend_from_slice(octets);
        buffer.freeze()
    }

    /// Takes the memory of a copy back, unless somebody still uses it.
    pub(super) fn take_back(&mut self, copy: Bytes) {
        let Ok(mut buffer) = copy.try_into_mut() else {
            return;
        };
        buffer.clear();
        if self.buffers.len() < MOST {
            self.buffers.push(buffer);
        } else {
            self.buffers[self.oldest] = buffer;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_for_packets_of_its_size_only() {
        let mut spares = Spares::default();
        let first = spares.copy(&[1; 40]);
        let place = first.as_ptr();
        spares.take_back(first);
        // 33 to 48 octets have the same memory.
        assert_ne!(spares.copy(&[2; 32]).as_ptr(), place);
        assert_ne!(spares.copy(&[2; 49]).as_ptr(), place);
        let again = spares.copy(&[3; 48]);
        assert_eq!((again.as_ptr(), &again[..]), (place, &[3; 48][..]));
        assert_ne!(spares.copy(&[4; 48]).as_ptr(), place);
    }

    #[test]
    fn what_is_still_in_use_is_not_written_over() {
        let mut spares = Spares::default();
        let copy = spares.copy(&[1; 40]);
        let used = copy.slice(8..16);
        spares.take_back(copy);
        let other = spares.copy(&[2; 40]);
        assert_eq!((&used[..], &other[..]), (&[1; 8][..], &[2; 40][..]));
    }

    #[test]
    fn spares_are_few_and_the_oldest_give_way() {
        let mut spares = Spares::default();
        let copies: Vec<_> = (0..=MOST)
            .map(|n| spares.copy(&vec![0; 16 * n + 16]))
            .collect();
        let places: Vec<_> = copies.iter().map(|copy| copy.as_ptr()).collect();
        copies.into_iter().for_each(|copy| spares.take_back(copy));
        assert_eq!(spares.buffers.len(), MOST);
        let last = spares.copy(&[0; 16 * MOST + 16]);
        assert_eq!(last.as_ptr(), places[MOST]);
        assert!(spares.buffers.iter().all(|spare| spare.capacity() > 16));
    }
}
