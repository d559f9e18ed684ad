//! Has the binary built again when the page was: its files are named by their content, so new ones come and old ones go.
//!
//! A release build has the page in it, and builds it first where nobody has: `cargo install` runs no other command before.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=NAMECAST_PAGE");
    // Builds with assertions read it from disk.
    if env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        println!("cargo::rerun-if-changed=../../web/dist");
    }
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it")).join("../..");
    let is_part = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let is_unwanted = env::var("NAMECAST_PAGE").is_ok_and(|wish| wish == "none");
    let is_built = root.join("web/dist/index.html").exists();
    if is_part && !is_unwanted && !is_built && !build_page(&root) {
        println!(
            "cargo::error=the page could not be built: run `make page`, which installs what it takes, and then this again \
             (NAMECAST_PAGE=none: a binary without the page)"
        );
    }
}

/// Builds the page in other directories of `target` than the one that Cargo has locked. Returns whether that went well.
fn build_page(root: &Path) -> bool {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut install = Command::new(root.join("scripts/install.sh"));
    let mut build = Command::new(cargo);
    [install.arg("page"), build.args(["xtask", "web"])]
        .into_iter()
        .all(|step| {
            // Flags for this machine are none for WebAssembly.
            let step = step.current_dir(root).env_remove("CARGO_ENCODED_RUSTFLAGS");
            step.status().is_ok_and(|status| status.success())
        })
}
