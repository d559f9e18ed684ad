//! Hash maps in core crates: their hasher is named, and nothing walks through them.
//!
//! The order of a hash map depends on its hasher, its size and its history. Whatever is done in that order cannot be
//! repeated elsewhere. Types are told by their spelling, as a text search would: good enough to catch an oversight.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Finding;
use super::source::{SourceFile, Token, matches};

const WALKS: [&str; 11] = [
    "iter",
    "iter_mut",
    "into_iter",
    "keys",
    "into_keys",
    "values",
    "values_mut",
    "into_values",
    "drain",
    "extract_if",
    "retain",
];

/// Finds hash maps without a named hasher, and walks through hash maps, in the files of one crate.
///
/// # Errors
///
/// A file is not Rust.
pub(crate) fn check(files: &[&SourceFile]) -> Result<Vec<Finding>> {
    let mut scanned = Vec::new();
    let mut types: BTreeSet<String> = ["HashMap", "HashSet", "HashTable"]
        .map(str::to_owned)
        .into();
    for file in files {
        let tokens = file.tokens()?;
        types.extend(aliases(&tokens));
        scanned.push((*file, tokens));
    }
    let mut findings = Vec::new();
    for (file, tokens) in &scanned {
        let names = names(tokens, &types);
        for at in 0..tokens.len() {
            let line = tokens[at].line;
            let message = if let Some(name) = lacks_hasher(tokens, at) {
                format!("`{name}` without a named hasher: the default one is seeded at random")
            } else if let Some(name) = walked(tokens, at, &names) {
                format!("walks through the hash map `{name}`: the order differs from run to run")
            } else {
                continue;
            };
            if !file.excuses("hash", line) {
                findings.push(Finding::new(file.at(line), "hash", message));
            }
        }
    }
    Ok(findings)
}

/// Names of `type X<…> = …HashMap<…>`.
fn aliases(tokens: &[Token]) -> Vec<String> {
    let mut names = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.text == "type" && !token.literal {
            let rest = &tokens[at + 1..];
            let end = rest
                .iter()
                .position(|token| token.text == ";")
                .unwrap_or(rest.len());
            let is_map =
                |token: &Token| matches!(token.text.as_str(), "HashMap" | "HashSet" | "HashTable");
            let equals = rest[..end]
                .iter()
                .position(|token| token.text == "=")
                .unwrap_or(end);
            if rest[equals..end].iter().any(is_map) {
                names.extend(rest.first().map(|name| name.text.clone()));
            }
        }
    }
    names
}

/// Names of fields, arguments and variables that are hash maps: `name: path::HashMap<…>` and `let name = HashMap::…`.
fn names(tokens: &[Token], types: &BTreeSet<String>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let declares = tokens
            .get(at + 1)
            .is_some_and(|next| next.text == ":" || next.text == "=");
        if !declares || token.literal {
            continue;
        }
        // Step over references, `mut`, lifetimes and the path before the type's own name.
        let skipped = [
            "&",
            "mut",
            "'",
            "::",
            "hashbrown",
            "std",
            "collections",
            "crate",
            "self",
            "super",
        ];
        let mut rest = tokens[at + 2..].iter().peekable();
        let mut after_quote = false;
        while rest
            .peek()
            .is_some_and(|token| after_quote || skipped.contains(&token.text.as_str()))
        {
            after_quote = rest.next().is_some_and(|token| token.text == "'");
        }
        if rest.peek().is_some_and(|token| types.contains(&token.text)) {
            names.insert(token.text.clone());
        }
    }
    names
}

/// The map type at `at`, if it is spelt without the argument that names its hasher.
fn lacks_hasher(tokens: &[Token], at: usize) -> Option<&str> {
    let wanted = match tokens[at].text.as_str() {
        "HashMap" => 3,
        "HashSet" => 2,
        _ => return None,
    };
    if !matches(tokens, at + 1, &["<"]) {
        return None;
    }
    let (mut depth, mut arguments) = (0_usize, 1);
    for (offset, token) in tokens[at + 1..].iter().enumerate() {
        let arrow = token.text == ">" && tokens[at + offset].text == "-";
        match token.text.as_str() {
            "<" | "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            ">" if !arrow => depth = depth.saturating_sub(1),
            "," if depth == 1
                && tokens
                    .get(at + offset + 2)
                    .is_some_and(|next| next.text != ">") =>
            {
                arguments += 1
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    (arguments < wanted).then_some(&tokens[at].text)
}

/// The hash map that is walked through at `at`, if any.
fn walked<'t>(tokens: &'t [Token], at: usize, names: &BTreeSet<String>) -> Option<&'t str> {
    let token = &tokens[at];
    if token.literal || !names.contains(&token.text) {
        return None;
    }
    let method = tokens
        .get(at + 2)
        .is_some_and(|method| WALKS.contains(&method.text.as_str()));
    let called = matches(tokens, at + 1, &["."]) && method && matches(tokens, at + 3, &["("]);
    let before = tokens[..at]
        .iter()
        .rev()
        .find(|token| !matches!(token.text.as_str(), "&" | "mut" | "self" | "."));
    let looped = before.is_some_and(|token| token.text == "in") && matches(tokens, at + 1, &["{"]);
    (called || looped).then_some(&token.text)
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    fn findings(texts: &[&str]) -> Vec<String> {
        let files: Vec<_> = texts.iter().map(|text| rust("a.rs", text)).collect();
        let findings = check(&files.iter().collect::<Vec<_>>()).unwrap();
        findings.iter().map(ToString::to_string).collect()
    }

    const TABLE: &str =
        "struct Table { entries: hashbrown::HashMap<Name, u32, Fixed>, order: Vec<u32> }\n";

    #[test]
    fn walks_are_found() {
        for walk in [
            "self.entries.values().max()",
            "table.entries.retain(|_, _| true)",
            "for e in &mut self.entries { use(e) }",
        ] {
            let found = findings(&[&format!("{TABLE}fn f() {{ {walk} }}")]);
            assert_eq!(
                found,
                [
                    "a.rs:2: hash: walks through the hash map `entries`: the order differs from run to run"
                ],
                "{walk}"
            );
        }
    }

    #[test]
    fn walks_through_an_alias_of_another_file_are_found() {
        let found = findings(&[
            "pub type Fast<V> = HashMap<u64, V, Fixed>;",
            "fn f(map: &'a Fast<u8>) { map.keys() }",
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn bare_tables_are_hash_maps_too() {
        let table = "struct Index { index: HashTable<usize> }\n";
        let found = findings(&[&format!("{table}fn f() {{ self.index.iter() }}")]);
        assert_eq!(found.len(), 1, "{found:?}");
        let look_up = "fn f() { self.index.iter_hash(hash); self.index.find(hash, same) }";
        assert_eq!(findings(&[&format!("{table}{look_up}")]), [""; 0]);
    }

    #[test]
    fn look_ups_other_containers_and_excused_walks_pass() {
        assert_eq!(
            findings(&[&format!(
                "{TABLE}fn f() {{ self.entries.get(&name); self.order.iter() }}"
            )]),
            [""; 0]
        );
        let excused = "// tidy: hash: the sum is the same in any order\nlet sum = self.entries.values().sum();";
        assert_eq!(
            findings(&[&format!("{TABLE}fn f() {{\n{excused}\n}}")]),
            [""; 0]
        );
    }

    #[test]
    fn the_hasher_must_be_named() {
        assert_eq!(
            findings(&["type A = HashMap<Name, Vec<(u8, u8)>>;"]).len(),
            1
        );
        assert_eq!(findings(&["fn f(a: HashSet<fn(u8) -> u8,>) {}"]).len(), 1);
        assert_eq!(
            findings(&[
                "type A = HashMap<Name, Vec<(u8, u8)>, Fixed>; type B = HashSet<[u8; 4], Fixed>;"
            ]),
            [""; 0]
        );
    }
}
