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
}
