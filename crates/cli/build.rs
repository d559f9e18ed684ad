//! Has the binary built again when the page was: its files are named by their content, so new ones come and old ones go.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
    // Debug builds read it from disk.
    let is_part = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_part && !Path::new("../../web/dist/index.html").exists() {
        println!(
            "cargo::warning=this binary will have no page: run `make build`, or `cargo xtask web` first, then build again"
        );
    }
}
