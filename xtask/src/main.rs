//! Project chores.
//!
//! ```text
//! cargo xtask tidy    check the house rules of CONTRIBUTING.md
//! cargo xtask wasm    compile the page's core and generate its JavaScript module in web/src/wasm
//! cargo xtask web     the same, and bundle the page into web/dist
//! ```

mod tidy;
mod web;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        // With its causes but without a backtrace, which would point into this program and not at what is wrong.
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    // Asked of the cargo that runs us: what it was when we were compiled may have been moved since.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run me as `cargo xtask`")?;
    let root = Path::new(&manifest)
        .parent()
        .context("xtask lies inside the workspace")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(root),
        ["wasm"] => web::build_core(root).map(|()| ExitCode::SUCCESS),
        ["web"] => web::build_page(root).map(|()| ExitCode::SUCCESS),
        _ => bail!("usage: cargo xtask tidy | wasm | web"),
    }
}
