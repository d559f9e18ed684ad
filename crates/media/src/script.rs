//! Scripts of fuzz targets.

/// A script: octets that state what happens next.
#[derive(Debug)]
pub(crate) struct Script<'a>(pub(crate) &'a [u8]);

impl<'a> Script<'a> {
    /// Takes an octet; `None` at the end.
    pub(crate) fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Takes up to `count` octets.
    pub(crate) fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes a big-endian number of up to `count` octets.
    pub(crate) fn number(&mut self, count: usize) -> u64 {
        let octets = self.take(count).iter();
        octets.fold(0, |sum, it| sum << 8 | u64::from(*it))
    }
}
