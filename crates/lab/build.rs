//! Has the library built again when an experiment was added or removed: its files are part of it.

fn main() {
    println!("cargo::rerun-if-changed=experiments");
}
