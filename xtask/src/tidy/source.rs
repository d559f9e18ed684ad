//! Files as the rules see them: text, and for Rust the tokens with their lines.

use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{TokenStream, TokenTree};

/// A file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// One token of Rust, groups taken apart. Comments are gone; `/// text` has become the tokens of `#[doc = "text"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The token is a number or a string, which may hold words but no code.
    pub(crate) literal: bool,
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

    /// The code, token by token.
    ///
    /// # Errors
    ///
    /// The file is not Rust.
    pub(crate) fn tokens(&self) -> Result<Vec<Token>> {
        let stream = TokenStream::from_str(&self.text).map_err(|error| {
            anyhow!(
                "{}:{}: not Rust: {error}",
                self.path,
                error.span().start().line
            )
        })?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        Ok(tokens)
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

/// Texts of `tokens` from `start` on equal `texts`.
pub(crate) fn matches(tokens: &[Token], start: usize, texts: &[&str]) -> bool {
    tokens.get(start..start + texts.len()).is_some_and(|found| {
        found
            .iter()
            .zip(texts)
            .all(|(token, text)| !token.literal && token.text == *text)
    })
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    let mut joined = false;
    for tree in stream {
        let line = tree.span().start().line;
        let literal = matches!(tree, TokenTree::Literal(_));
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                tokens.push(Token {
                    text: open.to_owned(),
                    line,
                    literal: false,
                });
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token {
                    text: close.to_owned(),
                    line,
                    literal: false,
                });
                joined = false;
            }
            TokenTree::Punct(punct) => {
                // Only `::` is worth putting together: paths are what the rules look for.
                if joined
                    && punct.as_char() == ':'
                    && tokens.last().is_some_and(|last| last.text == ":")
                {
                    tokens.pop();
                    tokens.push(Token {
                        text: "::".to_owned(),
                        line,
                        literal: false,
                    });
                    joined = false;
                } else {
                    tokens.push(Token {
                        text: punct.as_char().to_string(),
                        line,
                        literal: false,
                    });
                    joined = punct.spacing() == proc_macro2::Spacing::Joint;
                }
            }
            other => {
                tokens.push(Token {
                    text: other.to_string(),
                    line,
                    literal,
                });
                joined = false;
            }
        }
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
    fn tokens_are_code_without_comments_and_know_their_line() {
        let file = rust(
            "a.rs",
            "// Instant::now()\nfn f() {\n    a::b(\"c::d\")\n}\n",
        );
        let tokens = file.tokens().unwrap();
        let texts: Vec<_> = tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "fn", "f", "(", ")", "{", "a", "::", "b", "(", "\"c::d\"", ")", "}"
            ]
        );
        assert_eq!((tokens[5].line, tokens[11].line), (3, 4));
        assert!(matches(&tokens, 5, &["a", "::", "b"]));
        assert!(
            !matches(&tokens, 11, &["}", "}"]),
            "beyond the end nothing matches"
        );
    }

    #[test]
    fn an_excuse_needs_the_rule_and_a_reason() {
        let file = rust(
            "a.rs",
            "// tidy: hash: sorted right below\n// more\nlet a = 1;\nlet b = 2; // tidy: hash: x\n",
        );
        assert!(file.excuses("hash", 3));
        assert!(!file.excuses("clock", 3));
        assert!(!file.excuses("hash", 4), "one letter is no reason");
    }

    #[test]
    fn broken_rust_is_an_error_that_names_the_line() {
        let error = rust("a.rs", "fn f() {\n}}\n").tokens().unwrap_err();
        assert!(error.to_string().starts_with("a.rs:2: not Rust"), "{error}");
    }
}
