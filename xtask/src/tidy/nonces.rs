//! Where Nonces are drawn: whatever watches, records or fetches requests through one module.

use super::Finding;
use super::source::SourceFile;

/// What watches, records and fetches.
const REQUESTING: [&str; 2] = ["crates/apps/src/", "crates/stream/src/"];
/// What draws for them.
const OWNER: &str = "crates/stream/src/path/nonces.rs";

/// Finds Nonces that are drawn elsewhere; tests may.
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let is_of = |folder: &&str| file.path.starts_with(*folder);
    if !REQUESTING.iter().any(is_of) || is_of(&OWNER) || file.is_test() {
        return Vec::new();
    }
    let lines = file.code().lines().enumerate();
    let drawn = lines.filter(|(_, line)| line.contains("Nonce::from("));
    let found = drawn.map(|(index, _)| {
        let message = "a Nonce drawn here: request it through `stream::path`";
        Finding::new(file.at(index + 1), "nonce", message)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    const DRAWS: &str = "fn f() { Interest::builder(name).build(Nonce::from(7)); }";

    #[test]
    fn nonces_are_drawn_in_one_place() {
        let count = |path, text| check(&rust(path, text)).len();
        assert_eq!(count("crates/apps/src/live/watcher/join.rs", DRAWS), 1);
        assert_eq!(count("crates/apps/src/sequence/fetcher/mod.rs", DRAWS), 1);
        assert_eq!(count("crates/stream/src/path/uplink/mod.rs", DRAWS), 1);
        assert_eq!(count("crates/stream/src/path/nonces.rs", DRAWS), 0);
        assert_eq!(count("crates/stream/src/path/tests/link.rs", DRAWS), 0);
        assert_eq!(count("crates/forward/src/lib.rs", DRAWS), 0);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{DRAWS} }}");
        assert_eq!(count("crates/stream/src/metadata.rs", &tests), 0);
        let declared = format!("#[cfg(test)]\nmod tests;\n{DRAWS}");
        assert_eq!(count("crates/stream/src/metadata.rs", &declared), 1);
    }
}
