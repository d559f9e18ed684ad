//! Every crate has a README that says what it is for and what it does not do.

use super::Finding;
use super::workspace::Workspace;

/// Lines that fit a page, at the 120 columns that we write.
const PAGE: usize = 60;

/// Finds crates without README, and READMEs that say nothing or too much.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &workspace.members {
        let path = format!("{}/README.md", member.directory);
        let lines = workspace.text(&path).lines().count();
        if lines < 3 {
            findings.push(Finding::new(
                path,
                "readme",
                format!("{} needs a README", member.name),
            ));
        } else if lines > PAGE {
            findings.push(Finding::new(
                path,
                "readme",
                format!("{lines} lines; at most a page of {PAGE}"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::super::workspace::Member;
    use super::*;

    fn found(readme: &str) -> usize {
        let member = Member {
            name: "a".to_owned(),
            directory: "crates/a".to_owned(),
            dependencies: Vec::new(),
        };
        let files = vec![rust("crates/a/README.md", readme)];
        check(&Workspace {
            members: vec![member],
            files,
        })
        .len()
    }

    #[test]
    fn a_readme_holds_at_least_a_sentence_and_at_most_a_page() {
        assert_eq!(found(""), 1);
        assert_eq!(found("# a\n"), 1);
        assert_eq!(found("# a\n\nDoes this, not that.\n"), 0);
        assert_eq!(found(&"line\n".repeat(60)), 0);
        assert_eq!(found(&"line\n".repeat(61)), 1);
    }
}
