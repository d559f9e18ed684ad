//! Tests of the program `namecast`, each with processes of their own. They are one binary, which takes less time to build than many.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod archive;
#[cfg(feature = "lab")]
mod bench;
mod call;
mod cues;
mod exchange;
mod forged;
#[cfg(feature = "lab")]
mod impair;
#[cfg(target_os = "linux")]
mod interfaces;
mod known_keys;
mod live;
mod manage;
#[cfg(target_os = "linux")]
#[path = "../../../net/tests/all/common/namespace.rs"]
mod namespace;
mod program;
mod prompt;
mod publishers;
mod record;
mod recorded;
mod remote;
mod send;
mod serve;
mod talk;
mod tools;
mod tracks;
mod trust;
mod web;
