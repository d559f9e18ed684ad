//! Checks the house rules of `CONTRIBUTING.md` that no compiler knows.
//!
//! Errors are what must not happen; the report is what deserves a look.

mod dependencies;
mod layers;
mod leftovers;
mod modules;
mod nonces;
mod papers;
mod readmes;
mod rust;
mod sizes;
mod source;
mod types;
mod words;
mod workspace;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use self::workspace::Workspace;

/// A breach of a rule, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// File and, where it has one, line; or a crate.
    place: String,
    rule: &'static str,
    message: String,
}

impl Finding {
    fn new(place: impl Into<String>, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            rule,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.rule, self.message)
    }
}

/// Checks the workspace at `root` and prints what it finds; fails if any of it is an error.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let workspace = Workspace::load(root)?;
    let mut errors = errors(&workspace);
    errors.sort();
    let report: Vec<_> = workspace.files.iter().filter_map(sizes::check).collect();

    for finding in &report {
        println!("note: {finding}");
    }
    for finding in &errors {
        println!("error: {finding}");
    }
    let (files, crates) = (workspace.files.len(), workspace.members.len());
    let lines: usize = workspace.files.iter().map(sizes::code_lines).sum();
    println!(
        "tidy: {} errors, {} notes in {files} files of {crates} crates with {lines} lines of Rust beside tests",
        errors.len(),
        report.len()
    );
    Ok(if errors.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn errors(workspace: &Workspace) -> Vec<Finding> {
    let mut errors = layers::check(&workspace.members);
    errors.extend(readmes::check(workspace));
    errors.extend(dependencies::check(workspace));
    errors.extend(leftovers::check(&workspace.files));
    errors.extend(workspace.files.iter().flat_map(words::check));
    let crates = rust::crates(workspace);
    errors.extend(modules::check(&crates));
    errors.extend(types::check(&crates));

    let cited = papers::keys(workspace.text("docs/papers.md"));
    for file in workspace.files.iter().filter(|file| file.is_rust()) {
        errors.extend(papers::check(file, &cited));
        errors.extend(nonces::check(file));
    }
    errors
}
