//! Notes to oneself that were left behind. What is not done is an issue, not a comment.

use super::Finding;
use super::source::SourceFile;

/// Put together here, so that this file does not find itself.
const MARKS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
/// Code that stands for code that is not there.
const MACROS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];

/// Finds lines that hold a mark as a word of its own, or code that stands for code.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let code = line.split("//").next().unwrap_or_default();
            let in_code = |name: &&&str| file.is_rust() && code.contains(**name);
            let mark = words.find_map(|word| MARKS.iter().find(|mark| word == **mark));
            if let Some(mark) = mark.or_else(|| MACROS.iter().find(in_code)) {
                let message = format!("{mark} left behind: do it, or open an issue");
                findings.push(Finding::new(file.at(index + 1), "leftovers", message));
            }
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
