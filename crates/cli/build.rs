//! Has the binary built again when the page was: its files are named by their content, so new ones come and old ones go.

fn main() {
    println!("cargo::rerun-if-changed=../../web/dist");
}
