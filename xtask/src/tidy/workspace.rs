//! What the rules look at: the crates, what they depend on, and the files of the repository.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::MetadataCommand;

use super::source::SourceFile;

/// Directories of what is made, installed or foreign: nobody here wrote it. By name, wherever they are.
const SKIPPED_NAMES: [&str; 7] = [
    ".git",
    "artifacts",
    "corpus",
    "dist",
    "node_modules",
    "target",
    "vectors",
];

/// The same, by path: the generated JavaScript module.
const SKIPPED_PATHS: [&str; 1] = ["web/src/wasm"];

/// Kinds of files that hold text of ours.
const TEXT_EXTENSIONS: [&str; 11] = [
    "rs", "toml", "md", "sh", "ts", "tsx", "js", "mjs", "css", "html", "py",
];

/// A crate of this repository.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Relative to the root.
    pub(crate) directory: String,
    /// Names of all crates it names as a dependency, for whatever purpose.
    pub(crate) dependencies: Vec<String>,
}

/// The repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
    pub(crate) files: Vec<SourceFile>,
}

impl Workspace {
    /// Reads the workspace at `root`.
    ///
    /// # Errors
    ///
    /// `cargo metadata` fails, or a file cannot be read.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()?;
        let mut workspace = Self::default();
        for package in &metadata.packages {
            let directory = package
                .manifest_path
                .parent()
                .context("a manifest lies in a directory")?;
            workspace.members.push(Member {
                name: package.name.to_string(),
                directory: relative(root, directory.as_std_path())?,
                dependencies: package
                    .dependencies
                    .iter()
                    .map(|dependency| dependency.name.clone())
                    .collect(),
            });
        }
        read_files(root, root, &mut workspace.files)?;
        workspace.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(workspace)
    }

    /// Text of the file at `path`, empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        self.files
            .iter()
            .find(|file| file.path == path)
            .map_or("", |file| &file.text)
    }
}

fn read_files(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() {
            let inside = relative(root, &path)?;
            if !SKIPPED_NAMES.contains(&name.as_str()) && !SKIPPED_PATHS.contains(&inside.as_str())
            {
                read_files(root, &path, files)?;
            }
            continue;
        }
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default();
        if kind.is_file()
            && (TEXT_EXTENSIONS.contains(&extension)
                || name == "Makefile"
                || name == "package.json")
        {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.push(SourceFile {
                path: relative(root, &path)?,
                text,
            });
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> Result<String> {
    let inside = path
        .strip_prefix(root)
        .with_context(|| format!("{} lies elsewhere", path.display()))?;
    Ok(inside.to_string_lossy().replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let workspace = Workspace::load(root).unwrap();
        let xtask = workspace
            .members
            .iter()
            .find(|member| member.name == "xtask")
            .unwrap();
        assert_eq!(xtask.directory, "xtask");
        assert!(xtask.dependencies.iter().any(|name| name == "syn"));
        assert!(
            workspace
                .text("xtask/src/main.rs")
                .contains("Project chores")
        );
        assert!(
            !workspace
                .files
                .iter()
                .any(|file| file.path.starts_with("target/"))
        );
    }
}
