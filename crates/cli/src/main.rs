//! The command `namecast`.

fn main() {}
