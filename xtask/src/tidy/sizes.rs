//! Reports long files. Clippy measures functions and their arguments.

use super::Finding;
use super::source::SourceFile;

const FILE_LINES: usize = 500;

/// Reports a file of Rust that is longer before its tests than `CONTRIBUTING.md` asks for.
pub(crate) fn check(file: &SourceFile) -> Option<Finding> {
    let lines = file.code().lines().count();
    let is_long = lines > FILE_LINES && file.is_rust() && !file.is_test();
    is_long.then(|| {
        let message =
            format!("{lines} lines before tests; more than {FILE_LINES} may be two things");
        Finding::new(&file.path, "sizes", message)
    })
}

/// Lines of Rust that are neither empty nor comments, without tests.
pub(crate) fn code_lines(file: &SourceFile) -> usize {
    if !file.is_rust() || file.is_test() {
        return 0;
    }
    let lines = file.code().lines().map(str::trim_start);
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    lines.filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    #[test]
    fn a_file_may_have_five_hundred_lines_before_its_tests() {
        let message =
            |path: &str, text: &str| check(&rust(path, text)).map(|finding| finding.message);
        let code = "struct A;\n".repeat(500);
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(message("a.rs", &format!("{code}{tests}")), None);
        assert_eq!(
            message("a.rs", &format!("{code}struct B;\n{tests}")).unwrap(),
            "501 lines before tests; more than 500 may be two things"
        );
        let declared = format!("#[cfg(test)]\nmod tests;\n{code}");
        assert!(message("a.rs", &declared).is_some());
        assert_eq!(message("crates/a/tests/a.rs", &declared), None);
        assert_eq!(message("a.md", &declared), None);
    }

    #[test]
    fn empty_lines_comments_and_tests_are_no_code() {
        let text = "//! a\n\nstruct A; // b\n    /// c\n    fn d() {}\n#[cfg(test)]\nmod tests {\n    fn e() {}\n}\n";
        assert_eq!(code_lines(&rust("a.rs", text)), 2);
        assert_eq!(code_lines(&rust("tests/a.rs", text)), 0);
        assert_eq!(code_lines(&rust("a.ts", text)), 0);
    }
}
