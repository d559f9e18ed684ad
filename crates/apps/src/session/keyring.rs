//! Keys that the other side's packets are opened with, while new ones replace them.

use super::keys::{Cipher, Forged};

/// The keys in use, those before, and those after.
///
/// Each side numbers its packets without a gap: from the first number under new keys on, all are under them. A packet under the old
/// keys is opened as long as its number is below that.
#[derive(Debug)]
pub(super) struct Keyring {
    current: Cipher,
    previous: Option<Cipher>,
    next: Option<Cipher>,
    /// The lowest number that was opened with the current keys, if there are previous ones.
    first: u64,
}

impl Keyring {
    pub(super) const fn new(current: Cipher) -> Self {
        Self {
            current,
            previous: None,
            next: None,
            first: 0,
        }
    }

    /// From now on packets may be under `next`.
    pub(super) fn prepare(&mut self, next: Cipher) {
        self.next = Some(next);
    }

    /// Returns whether the other side uses the newest keys.
    pub(super) const fn is_settled(&self) -> bool {
        self.next.is_none()
    }

    /// # Errors
    /// If the packet is sealed with none of the keys that count for its number.
    pub(super) fn open(
        &mut self,
        number: u64,
        name: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, Forged> {
        if let Ok(opened) = self.current.open(number, name, sealed) {
            self.first = self.first.min(number);
            return Ok(opened);
        }
        if let Some(next) = &self.next
            && let Ok(opened) = next.open(number, name, sealed)
        {
            let next = self.next.take().ok_or(Forged)?;
            self.previous = Some(core::mem::replace(&mut self.current, next));
            self.first = number;
            return Ok(opened);
        }
        let previous = self.previous.as_ref().filter(|_| number < self.first);
        previous.ok_or(Forged)?.open(number, name, sealed)
    }

    /// All numbers below `number` have come: keys that were for those alone are forgotten.
    pub(super) fn forget_below(&mut self, number: u64) {
        if number >= self.first {
            self.previous = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cipher(seed: u8) -> Cipher {
        Cipher::new(&[seed; 32])
    }

    /// 5 and 7 are under the old keys, 8 and 9 under the new ones; 9 comes first.
    #[test]
    fn old_keys_count_for_old_numbers_until_those_are_there() {
        let mut keyring = Keyring::new(cipher(1));
        let sealed = |seed: u8, number: u64| cipher(seed).seal(number, b"name", b"content");
        let open = |keyring: &mut Keyring, seed: u8, number: u64| {
            let sealed = sealed(seed, number);
            keyring.open(number, b"name", &sealed).is_ok()
        };
        assert!(open(&mut keyring, 1, 4));
        assert!(!open(&mut keyring, 2, 9), "nobody knows of them");
        keyring.prepare(cipher(2));
        assert!(open(&mut keyring, 1, 5) && !keyring.is_settled());
        assert!(open(&mut keyring, 2, 9) && keyring.is_settled());
        assert!(!open(&mut keyring, 1, 9) && !open(&mut keyring, 1, 10));
        assert!(open(&mut keyring, 1, 7) && open(&mut keyring, 2, 8));
        keyring.forget_below(7);
        assert!(open(&mut keyring, 1, 7));
        assert!(!open(&mut keyring, 1, 8), "8 is under the new keys");
        keyring.forget_below(8);
        assert!(!open(&mut keyring, 1, 7));
    }
}
