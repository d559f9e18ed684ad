//! Where Nonces are made: `Nonce::draw` makes them all, from the one generator of whoever sends.

use super::Finding;
use super::source::SourceFile;

/// What sends Interests.
const SENDING: [&str; 2] = ["crates/apps/src/", "crates/stream/src/"];

/// Finds Nonces that are made in another way; tests may.
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let is_of = |folder: &&str| file.path.starts_with(*folder);
    if !SENDING.iter().any(is_of) || file.is_test() {
        return Vec::new();
    }
    let lines = file.code().lines().enumerate();
    let drawn = lines.filter(|(_, line)| makes_nonce(line));
    let found = drawn.map(|(index, _)| {
        let message = "a Nonce made here: draw it by `Nonce::draw`";
        Finding::new(file.at(index + 1), "nonce", message)
    });
    found.collect()
}

/// Returns whether a line makes a Nonce of something else than what was received, or of constant octets.
fn makes_nonce(line: &str) -> bool {
    let mut wrapped = line.split("Nonce(").skip(1);
    line.contains("Nonce::from(")
        || wrapped.any(|octets| !octets.starts_with("field.") && !octets.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    const DRAWS: &str = "fn f() { Interest::builder(name).build(Nonce::from(7)); }";
    const MAKES: &str = "fn f(octets: [u8; 4]) -> Nonce { Nonce(octets) }";
    const RECEIVED: &str = "fn f() { Nonce(field.array(\"Nonce\", content)?) }";
    const RIGHT: &str = "fn f() { Interest::builder(name).build(Nonce::draw(&mut random)); }";

    #[test]
    fn nonces_are_drawn_in_one_place() {
        let count = |path, text| check(&rust(path, text)).len();
        assert_eq!(count("crates/apps/src/live/watcher/join.rs", DRAWS), 1);
        assert_eq!(count("crates/apps/src/sequence/fetcher/mod.rs", DRAWS), 1);
        assert_eq!(count("crates/stream/src/path/uplink/mod.rs", DRAWS), 1);
        assert_eq!(count("crates/apps/src/session/names.rs", MAKES), 1);
        assert_eq!(count("crates/apps/src/session/names.rs", RIGHT), 0);
        assert_eq!(count("crates/stream/src/metadata.rs", RECEIVED), 0);
        assert_eq!(count("crates/stream/src/path/tests/link.rs", DRAWS), 0);
        assert_eq!(count("crates/forward/src/lib.rs", DRAWS), 0);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{DRAWS} }}");
        assert_eq!(count("crates/stream/src/metadata.rs", &tests), 0);
        let declared = format!("#[cfg(test)]\nmod tests;\n{DRAWS}");
        assert_eq!(count("crates/stream/src/metadata.rs", &declared), 1);
    }
}
