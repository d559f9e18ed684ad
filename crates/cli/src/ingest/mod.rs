//! From a camera, a file or a drawn picture to encoded frames with exact capture times.

pub mod burned_clock;
pub mod ladder;
pub mod nut;
pub mod picture;
pub mod tone;
