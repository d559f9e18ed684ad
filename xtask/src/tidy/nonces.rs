//! Where Nonces are drawn: whatever watches, records or fetches requests through one module.

use anyhow::Result;
use syn::spanned::Spanned;

use super::Finding;
use super::sizes::is_test_module;
use super::source::{SourceFile, matches};

/// What watches, records and fetches.
const REQUESTING: [&str; 2] = ["crates/apps/src/", "crates/stream/src/"];
/// What draws for them.
const OWNER: &str = "crates/stream/src/path/nonces.rs";

/// Finds Nonces that are drawn elsewhere; tests may.
///
/// # Errors
///
/// The file is not Rust.
pub(crate) fn check(file: &SourceFile) -> Result<Vec<Finding>> {
    let is_of = |folder: &&str| file.path.starts_with(*folder);
    if !REQUESTING.iter().any(is_of) || is_of(&OWNER) || file.is_test() {
        return Ok(Vec::new());
    }
    let tokens = file.tokens()?;
    let parsed = syn::parse_file(&file.text)?;
    let modules = parsed.items.iter().filter(|item| is_test_module(item));
    let tests: Vec<_> = modules
        .map(|item| item.span().start().line..=item.span().end().line)
        .collect();
    let is_tested = |at: &usize| tests.iter().any(|lines| lines.contains(&tokens[*at].line));
    let drawn = (0..tokens.len())
        .filter(|&at| matches(&tokens, at, &["Nonce", "::", "from", "("]))
        .filter(|at| !is_tested(at));
    let found = drawn.map(|at| {
        Finding::new(
            file.at(tokens[at].line),
            "nonce",
            "a Nonce drawn here: request it through `stream::path`",
        )
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    const DRAWS: &str = "fn f() { Interest::builder(name).build(Nonce::from(7)); }";

    #[test]
    fn nonces_are_drawn_in_one_place() {
        let count = |path, text| check(&rust(path, text)).unwrap().len();
        assert_eq!(count("crates/apps/src/live/watcher/join.rs", DRAWS), 1);
        assert_eq!(count("crates/apps/src/sequence/fetcher/mod.rs", DRAWS), 1);
        assert_eq!(count("crates/stream/src/path/requester.rs", DRAWS), 1);
        assert_eq!(count("crates/stream/src/path/nonces.rs", DRAWS), 0);
        assert_eq!(count("crates/stream/src/path/tests/link.rs", DRAWS), 0);
        assert_eq!(count("crates/forward/src/lib.rs", DRAWS), 0);
        let tests = format!("#[cfg(test)]\nmod tests {{ {DRAWS} }}");
        assert_eq!(count("crates/stream/src/metadata.rs", &tests), 0);
        let declared = format!("#[cfg(test)]\nmod tests;\n{DRAWS}");
        assert_eq!(count("crates/stream/src/metadata.rs", &declared), 1);
    }
}
