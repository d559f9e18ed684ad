//! What the rules look at: the crates, what they depend on, and the files of the repository.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, MetadataCommand};

use super::layers;
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

/// A crate from elsewhere that is built on one of our platforms.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// As the crate states it, an SPDX expression.
    pub(crate) licence: Option<String>,
}

/// The repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<SourceFile>,
}

impl Workspace {
    /// Reads the workspace at `root`.
    ///
    /// # Errors
    ///
    /// `cargo metadata` fails, or a file cannot be read.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        // Only what is built somewhere: the lock file also names crates for systems that we do not build on.
        let platforms = ["x86_64-unknown-linux-gnu", "wasm32-unknown-unknown"];
        let filter = platforms
            .iter()
            .flat_map(|platform| ["--filter-platform".to_owned(), (*platform).to_owned()]);
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .features(CargoOpt::AllFeatures)
            .other_options(filter.chain(["--locked".to_owned()]).collect::<Vec<_>>())
            .exec()?;
        let built: Vec<_> = metadata
            .resolve
            .iter()
            .flat_map(|resolve| &resolve.nodes)
            .map(|node| &node.id)
            .collect();

        let mut workspace = Self::default();
        for package in &metadata.packages {
            if !metadata.workspace_members.contains(&package.id) {
                if built.contains(&&package.id) {
                    workspace.packages.push(Package {
                        name: package.name.to_string(),
                        version: package.version.to_string(),
                        licence: package.license.clone(),
                    });
                }
                continue;
            }
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

    /// The core crate that `file` belongs to, if it does and is not a measurement, which needs a clock.
    pub(crate) fn core_crate_of(&self, file: &SourceFile) -> Option<&Member> {
        self.members.iter().find(|member| {
            let inside = file
                .path
                .strip_prefix(&member.directory)
                .and_then(|rest| rest.strip_prefix('/'));
            layers::is_core(&member.name)
                && inside.is_some_and(|rest| !rest.starts_with("benches/"))
        })
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
    use super::super::source::rust;
    use super::*;

    fn member(name: &str, directory: &str) -> Member {
        Member {
            name: name.to_owned(),
            directory: directory.to_owned(),
            dependencies: Vec::new(),
        }
    }

    #[test]
    fn files_belong_to_core_crates_by_directory_but_measurements_do_not() {
        let workspace = Workspace {
            members: vec![
                member("namecast-net", "crates/net"),
                member("namecast-units", "crates/units"),
            ],
            ..Workspace::default()
        };
        let core = |path: &str| {
            workspace
                .core_crate_of(&rust(path, ""))
                .map(|member| member.name.as_str())
        };
        assert_eq!(core("crates/units/src/lib.rs"), Some("namecast-units"));
        assert_eq!(core("crates/units/tests/a.rs"), Some("namecast-units"));
        assert_eq!(core("crates/units/benches/a.rs"), None);
        assert_eq!(core("crates/units-more/src/lib.rs"), None);
        assert_eq!(core("crates/net/src/lib.rs"), None);
    }

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
        assert!(xtask.dependencies.iter().any(|name| name == "spdx"));
        assert!(
            workspace
                .packages
                .iter()
                .any(|package| package.name == "spdx" && package.licence.is_some())
        );
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
