//! What a core crate must not name: clocks, threads, sockets, globals, entropy, and hash maps of a random order.
//!
//! Clippy bans the common forms too. This scan also sees code that is compiled out, macros, and forms without a lint.

use anyhow::Result;

use super::Finding;
use super::source::{SourceFile, Token, matches};

/// Tokens of a path, the rule they break, and what to do instead.
const BANS: [(&[&str], &str, &str); 24] = [
    (&["Instant", "::", "now"], "clock", CLOCK),
    (
        &["std", "::", "time", "::", "Instant"],
        "clock",
        "use `namecast_units::Instant`",
    ),
    (&["SystemTime"], "clock", CLOCK),
    (&["UNIX_EPOCH"], "clock", CLOCK),
    (
        &["thread", "::", "sleep"],
        "clock",
        "let a test set the time it wants",
    ),
    (
        &["std", "::", "thread"],
        "thread",
        "threads belong to a runtime",
    ),
    (
        &["thread", "::", "spawn"],
        "thread",
        "threads belong to a runtime",
    ),
    (&["UdpSocket"], "socket", SOCKET),
    (&["TcpStream"], "socket", SOCKET),
    (&["TcpListener"], "socket", SOCKET),
    (&["UnixStream"], "socket", SOCKET),
    (&["UnixDatagram"], "socket", SOCKET),
    (&["static", "mut"], "global", GLOBAL),
    (&["thread_local", "!"], "global", GLOBAL),
    (&["thread_rng"], "randomness", RANDOM),
    (&["rand", "::", "rng", "("], "randomness", RANDOM),
    (&["rand", "::", "random"], "randomness", RANDOM),
    (&["ThreadRng"], "randomness", RANDOM),
    (&["OsRng"], "randomness", RANDOM),
    (&["SysRng"], "randomness", RANDOM),
    (
        &["StdRng"],
        "randomness",
        "its sequence changes between versions; use `namecast_units::Random`",
    ),
    (&["getrandom"], "randomness", RANDOM),
    (&["from_os_rng"], "randomness", RANDOM),
    (&["from_entropy"], "randomness", RANDOM),
];

const CLOCK: &str = "take `now` as an argument";
const SOCKET: &str = "packets go in and come out as values; sockets belong to a runtime";
const GLOBAL: &str = "keep state in a value that its owner passes on";
const RANDOM: &str = "take a seeded `namecast_units::Random` as an argument";

/// Types of `std::collections` and `std::hash` whose order differs from run to run.
const RANDOM_ORDER: [&str; 6] = [
    "HashMap",
    "HashSet",
    "hash_map",
    "hash_set",
    "RandomState",
    "DefaultHasher",
];

/// Finds what a core crate must not name.
///
/// # Errors
///
/// The file is not Rust.
pub(crate) fn check(file: &SourceFile) -> Result<Vec<Finding>> {
    let tokens = file.tokens()?;
    let mut findings = Vec::new();
    let mut find = |line: usize, rule: &'static str, what: &str, instead: &str| {
        if !file.excuses(rule, line) {
            findings.push(Finding::new(
                file.at(line),
                rule,
                format!("`{what}` in a core crate: {instead}"),
            ));
        }
    };
    for (at, token) in tokens.iter().enumerate() {
        for (path, rule, instead) in BANS {
            if matches(&tokens, at, path) {
                find(token.line, rule, &path.concat(), instead);
            }
        }
        for module in ["collections", "hash"] {
            if matches(&tokens, at, &["std", "::", module, "::"]) {
                for name in imported(&tokens[at + 4..])
                    .filter(|name| RANDOM_ORDER.contains(&name.text.as_str()))
                {
                    find(
                        name.line,
                        "hash",
                        &format!("std::{module}::{}", name.text),
                        "its order is random; use BTreeMap, or hashbrown with a fixed hasher",
                    );
                }
            }
        }
    }
    Ok(findings)
}

/// The names that a path ends in, after its last `::`: one, or all in the braces.
fn imported(rest: &[Token]) -> impl Iterator<Item = &Token> {
    let braced = rest.first().is_some_and(|token| token.text == "{");
    let mut depth = 0_usize;
    rest.iter()
        .take_while(move |token| {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > 0
        })
        .chain(rest.first().filter(|_| !braced))
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        let findings = check(&rust("a.rs", text)).unwrap();
        let line = |place: &str| place.rsplit(':').next().unwrap().parse().unwrap();
        findings
            .iter()
            .map(|finding| (line(&finding.place), finding.rule))
            .collect()
    }

    #[test]
    fn clocks_threads_sockets_and_globals_are_found() {
        assert_eq!(
            rules("fn f() {\n    let now = std::time::Instant::now();\n}"),
            [(2, "clock"), (2, "clock")]
        );
        assert_eq!(rules("use std::time::SystemTime;"), [(1, "clock")]);
        assert_eq!(rules("fn f() { thread::sleep(wait) }"), [(1, "clock")]);
        assert_eq!(rules("use std::net::UdpSocket;"), [(1, "socket")]);
        assert_eq!(rules("static mut COUNT: u32 = 0;"), [(1, "global")]);
    }

    #[test]
    fn unseeded_randomness_is_found() {
        assert_eq!(
            rules("fn f() { rand::rng().next_u64(); }"),
            [(1, "randomness")]
        );
        assert_eq!(
            rules("fn f() { StdRng::from_os_rng(); }"),
            [(1, "randomness"), (1, "randomness")]
        );
    }

    #[test]
    fn hash_maps_of_std_are_found_in_any_import() {
        assert_eq!(rules("use std::collections::HashMap;"), [(1, "hash")]);
        assert_eq!(
            rules(
                "use std::collections::{\n    BTreeMap,\n    hash_map::{Entry},\n    HashSet,\n};"
            ),
            [(3, "hash"), (4, "hash")]
        );
        assert_eq!(
            rules("use std::collections::BTreeMap; use other::HashMap;"),
            []
        );
    }

    #[test]
    fn macros_and_code_compiled_out_are_seen() {
        assert_eq!(
            rules("#[cfg(windows)] fn f() { dbg!(Instant::now()) }"),
            [(1, "clock")]
        );
    }

    #[test]
    fn clean_code_words_and_excused_lines_pass() {
        assert_eq!(
            rules(
                "/// Not `SystemTime`.\nfn f(now: Instant) { log(\"SystemTime\"); } // Instant::now()"
            ),
            []
        );
        assert_eq!(
            rules("// tidy: clock: converts what a runtime read\nfn f(at: SystemTime) {}"),
            []
        );
        assert_eq!(
            rules("use std::time::Duration; use std::net::SocketAddr;"),
            []
        );
    }
}
