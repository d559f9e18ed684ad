//! Words that the field does not use: in code, comments and documentation.

use super::Finding;
use super::source::SourceFile;

/// Parts that are not rid of them yet, or speak of other things: this list itself, the past, titles of papers.
const LEFT: [&str; 6] = [
    "CHANGELOG.md",
    "crates/forward/src/hop/",
    "crates/forward/src/link/",
    "docs/journal/",
    "docs/papers.md",
    "xtask/",
];

/// Beginnings of words, in lower case, and what the field says.
const WORDS: [(&str, &str); 17] = [
    ("believ", "accept"),
    ("disbeliev", "reject"),
    ("doubt", "suspicious"),
    ("insur", "hedged (duplicate) Interest"),
    ("least_", "min_"),
    ("longer_way", "path change"),
    ("most_", "max_"),
    ("parity across", "inter-frame FEC"),
    ("patience", "link retransmission detector"),
    ("stray", "unverified segment"),
    ("workshop", "factory"),
    ("asks for", "requests, sends an Interest for"),
    ("asked for again", "retransmitted"),
    ("four thousand million", "2^32"),
    ("handed out", "delivered"),
    ("takes note", "records"),
    ("tells whether", "returns whether"),
];

/// Finds such words in all files but for [`LEFT`].
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    if LEFT.iter().any(|part| file.path.starts_with(part)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (word, instead) in WORDS {
            if begins(&lower, word) && !file.excuses("words", index + 1) {
                let message = format!("`{word}`: say {instead}");
                findings.push(Finding::new(file.at(index + 1), "words", message));
            }
        }
    }
    findings
}

/// Returns whether a word of `line` begins with `word`. Parts of a name in snake case are words, too, but for `most_`: `the_most_of` is English.
fn begins(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| {
            !before.is_alphanumeric() && (before != '_' || !word.ends_with('_'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&rust(path, text))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn words_are_found_in_names_and_sentences() {
        let path = "crates/stream/src/a.rs";
        assert_eq!(
            found(path, "//! Fine.\nstruct A { drop_strays: u64 }\n"),
            ["crates/stream/src/a.rs:2: words: `stray`: say unverified segment"]
        );
        assert_eq!(found(path, "const MOST_LEFT: u8 = 1;").len(), 1);
        assert_eq!(found(path, "/// It is asked for again.").len(), 1);
    }

    #[test]
    fn parts_of_other_words_other_parts_and_excused_lines_pass() {
        let path = "crates/stream/src/a.rs";
        assert_eq!(
            found(path, "fn the_least_of_all() { almost_all(mostly) }"),
            [""; 0]
        );
        let other = "crates/forward/src/hop/a.rs";
        assert_eq!(found(other, "let strays = 1;"), [""; 0]);
        let excused = "// tidy: words: the paper's own name\nlet workshop = 1;";
        assert_eq!(found(path, excused), [""; 0]);
    }
}
