//! A citation in a doc comment, such as `[RTSD]`, has an entry in `docs/papers.md`.

use std::collections::BTreeSet;

use super::Finding;
use super::source::SourceFile;

/// The keys that `docs/papers.md` explains: its headings.
pub(crate) fn keys(papers: &str) -> BTreeSet<String> {
    let headings = papers.lines().filter_map(|line| line.strip_prefix("## "));
    headings.map(|heading| heading.trim().to_owned()).collect()
}

/// Finds citations without an entry.
pub(crate) fn check(file: &SourceFile, keys: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        if !line.starts_with("///") && !line.starts_with("//!") {
            continue;
        }
        for key in citations(line).filter(|key| !keys.contains(*key)) {
            let message = format!("[{key}] has no entry in docs/papers.md");
            findings.push(Finding::new(file.at(index + 1), "papers", message));
        }
    }
    findings
}

/// Words in square brackets that look like a key: capitals and digits, at least three, a capital first. A link to an
/// item is in backquotes or in mixed case.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split('[').skip(1).filter_map(|rest| {
        let (key, _) = rest.split_once(']')?;
        let like_key = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
        let key_shaped = key.len() >= 3
            && key.chars().all(like_key)
            && key.starts_with(|c: char| c.is_ascii_uppercase());
        key_shaped.then_some(key)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    const PAPERS: &str = "# Papers\n\n## RTSD\n\nA paper.\n\n## RFC6298\n";

    fn places(text: &str) -> Vec<String> {
        let findings = check(&rust("a.rs", text), &keys(PAPERS));
        findings
            .iter()
            .map(|finding| format!("{} {}", finding.place, finding.message))
            .collect()
    }

    #[test]
    fn a_citation_without_entry_is_found() {
        let text = "//! As [RTSD] says.\n\n/// And [RCP05],\n/// see [RFC6298].\nfn f() {}";
        assert_eq!(
            places(text),
            ["a.rs:3 [RCP05] has no entry in docs/papers.md"]
        );
    }

    #[test]
    fn links_code_and_plain_comments_are_no_citations() {
        assert_eq!(
            places("/// [`MAX_SIZE`], [Self::new], [0, 1], [N].\n// [RCP05]\nfn f() { a[MAX] }"),
            [""; 0]
        );
    }
}
