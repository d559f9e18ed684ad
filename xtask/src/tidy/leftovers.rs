//! Notes to oneself that were left behind. What is not done is an issue, not a comment.

use super::Finding;
use super::source::SourceFile;

/// Put together here, so that this file does not find itself.
const MARKS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Finds lines that hold such a mark as a word of its own.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(mark) = words.find_map(|word| MARKS.iter().find(|mark| word == **mark)) {
                let message = format!("{mark} left behind: do it, or open an issue");
                findings.push(Finding::new(file.at(number + 1), "leftovers", message));
            }
        }
        if file.is_rust() {
            findings.extend(unfinished(file));
        }
    }
    findings
}

/// Code that stands for code that is not there.
fn unfinished(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let code = line.trim_start();
        let name = [concat!("to", "do!("), concat!("unimple", "mented!(")]
            .into_iter()
            .find(|name| !code.starts_with("//") && code.contains(name));
        if let Some(name) = name {
            findings.push(Finding::new(
                file.at(number + 1),
                "leftovers",
                format!("{name}…) is no code"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    #[test]
    fn marks_are_found_in_any_file() {
        for mark in MARKS {
            let file = rust("a.md", &format!("fine\n- {mark}: later\n"));
            let found = check(&[file]);
            assert_eq!(found.len(), 1, "{mark}");
            assert_eq!(found[0].place, "a.md:2");
        }
        let code = format!("fn f() {{\n    {}!()\n}}\n", concat!("to", "do"));
        assert_eq!(check(&[rust("a.rs", &code)])[0].place, "a.rs:2");
    }

    #[test]
    fn parts_of_words_and_lower_case_pass() {
        let text = format!("{}S, a to-do list, XXXL, MAX_{}\n", MARKS[0], MARKS[0]);
        assert_eq!(check(&[rust("a.rs", &text)]), []);
    }
}
