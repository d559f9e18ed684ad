//! Every library that we chose has a line in `docs/dependencies.md` that says why.

use std::collections::BTreeSet;

use super::Finding;
use super::workspace::Workspace;

const DOCUMENT: &str = "docs/dependencies.md";

/// Finds direct dependencies, of the crates and of the page, without a line.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let explained = explained(workspace.text(DOCUMENT));
    let ours: BTreeSet<&str> = workspace
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    let crates = workspace.members.iter().flat_map(|member| {
        let foreign = member
            .dependencies
            .iter()
            .filter(|name| !ours.contains(name.as_str()));
        foreign.map(|name| (name.clone(), member.name.as_str()))
    });
    let npm = npm_dependencies(workspace.text("web/package.json"));
    let npm = npm.into_iter().map(|name| (name, "web/package.json"));

    let mut missing = BTreeSet::new();
    for (name, user) in crates.chain(npm) {
        if !explained.contains(&name) {
            missing.insert(Finding::new(
                DOCUMENT,
                "dependencies",
                format!("no line for {name}, used by {user}"),
            ));
        }
    }
    missing.into_iter().collect()
}

/// First cells of the document's tables.
fn explained(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter_map(|line| line.strip_prefix('|'));
    let cells = rows.filter_map(|row| row.split('|').next());
    // One line may explain a family: `a`, `b`.
    cells
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

/// Names under `dependencies` and `devDependencies`.
fn npm_dependencies(manifest: &str) -> Vec<String> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap_or_default();
    let kinds = ["dependencies", "devDependencies"]
        .into_iter()
        .filter_map(|kind| manifest[kind].as_object());
    kinds.flat_map(|names| names.keys().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::super::workspace::Member;
    use super::*;

    fn missing(dependencies: &[&str], package_json: &str) -> Vec<String> {
        let names = dependencies.iter().map(|name| (*name).to_owned()).collect();
        let member = |name: &str, dependencies| Member {
            name: name.to_owned(),
            directory: String::new(),
            dependencies,
        };
        let table = "| crate | used by | why |\n|---|---|---|\n| `bytes` | packet | slices |\n| sha2, `hmac` | packet | digests |\n";
        let workspace = Workspace {
            members: vec![member("ours", Vec::new()), member("user", names)],
            files: vec![
                rust(DOCUMENT, table),
                rust("web/package.json", package_json),
            ],
        };
        check(&workspace)
            .into_iter()
            .map(|finding| finding.message)
            .collect()
    }

    #[test]
    fn a_dependency_without_a_line_is_found() {
        assert_eq!(
            missing(&["bytes", "tokio"], ""),
            ["no line for tokio, used by user"]
        );
        assert_eq!(
            missing(&[], r#"{"devDependencies": {"vite": "7"}}"#),
            ["no line for vite, used by web/package.json"]
        );
    }

    #[test]
    fn explained_and_own_crates_pass() {
        assert_eq!(
            missing(
                &["bytes", "hmac", "sha2", "ours"],
                r#"{"dependencies": {}}"#
            ),
            [""; 0]
        );
    }
}
