//! Words that the field does not use, in crates that have been rid of them: code, comments and documentation.

use super::Finding;
use super::source::SourceFile;

/// Crates that are rid of them; the others follow.
const CRATES: [&str; 10] = [
    "crates/archive/",
    "crates/cli/",
    "crates/command/",
    "crates/media/",
    "crates/namecast/",
    "crates/net/",
    "crates/netem/",
    "crates/packet/",
    "crates/stream/",
    "crates/units/",
];

/// Beginnings of words, in lower case, and what the field says.
const WORDS: [(&str, &str); 13] = [
    ("insur", "hedged (duplicate) Interest"),
    ("least_", "min_"),
    ("longer_way", "path change"),
    ("most_", "max_"),
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

/// Finds such words in files of [`CRATES`].
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    if !CRATES.iter().any(|name| file.path.starts_with(name)) {
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
    fn parts_of_other_words_other_crates_and_excused_lines_pass() {
        let path = "crates/stream/src/a.rs";
        assert_eq!(
            found(path, "fn the_least_of_all() { almost_all(mostly) }"),
            [""; 0]
        );
        assert_eq!(found("crates/lab/src/a.rs", "let strays = 1;"), [""; 0]);
        let excused = "// tidy: words: the paper's own name\nlet workshop = 1;";
        assert_eq!(found(path, excused), [""; 0]);
    }
}
