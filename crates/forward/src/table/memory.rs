//! What entries take besides their own octets, so that bounds of memory are about memory.
//!
//! These are numbers, as they decide what gives way: a simulation has to be the same on every machine and with every
//! compiler. On 64 bits they are checked against what the compiler makes of the types. Resident memory was measured with
//! `namecast bench memory`, with the allocator of glibc.

use namecast_units::ByteSize;

/// A frame's buffer besides its octets: the allocator's header and rounding, 16 octets in the middle, and the
/// count of those who share it, an allocation of 32.
pub(super) const FRAME: ByteSize = ByteSize::bytes(48);
/// The same of a copy whose memory is to come back: the count takes 48.
pub(super) const COPY: ByteSize = ByteSize::bytes(64);

/// A hash table's entry of so many octets: itself and an octet of control, in a table that is between 7/16 and 7/8 full.
pub(super) const fn index(octets: u64) -> ByteSize {
    ByteSize::bytes((octets + 1) * 16 / 10)
}

/// Stops the compiler where `stated` is not about what a value of type `T` takes.
pub(super) const fn check<T>(stated: ByteSize) {
    let difference = stated.as_bytes().abs_diff(size_of::<T>() as u64);
    assert!(cfg!(not(target_pointer_width = "64")) || difference <= 16);
}

/// A place in a table, or a number of its entries, as many entries keep it: there are less than 2^32.
pub(super) fn short(number: usize) -> u32 {
    u32::try_from(number).expect("memory does not hold as many")
}
