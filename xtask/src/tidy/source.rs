//! Files as the rules see them.

/// A file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The file holds nothing but tests or measurements.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| {
            matches!(part, "tests" | "benches" | "examples" | "tests.rs")
                || part.ends_with("_tests.rs")
        })
    }

    /// The text before the module of unit tests that the file ends with, if it does.
    pub(crate) fn code(&self) -> &str {
        let (code, _) = self
            .text
            .split_once("#[cfg(test)]\nmod tests {\n")
            .unwrap_or((&self.text, ""));
        code
    }

    /// Whether the line, or the comment right above it, says why `rule` does not apply: `// tidy: <rule>: <reason>`.
    pub(crate) fn excuses(&self, rule: &str, line: usize) -> bool {
        let marker = format!("// tidy: {rule}: ");
        let reason = |text: &str| {
            text.split_once(&marker)
                .is_some_and(|(_, reason)| reason.trim().len() >= 10)
        };
        let lines: Vec<&str> = self.text.lines().collect();
        let own = lines.get(line - 1).is_some_and(|text| reason(text));
        let mut above = lines[..line - 1]
            .iter()
            .rev()
            .take_while(|text| text.trim_start().starts_with("//"));
        own || above.any(|text| reason(text))
    }

    /// `path:line`, as editors take it.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }
}

#[cfg(test)]
pub(crate) fn rust(path: &str, text: &str) -> SourceFile {
    SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excuse_needs_the_rule_and_a_reason() {
        let file = rust(
            "a.rs",
            "// tidy: words: the paper's own name\n// more\nlet a = 1;\nlet b = 2; // tidy: words: x\n",
        );
        assert!(file.excuses("words", 3));
        assert!(!file.excuses("leftovers", 3));
        assert!(!file.excuses("words", 4), "one letter is no reason");
    }
}
