//! The command `namecast`, as a library so that its parts can be tested.

pub mod ingest;
