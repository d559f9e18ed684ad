//! Crates as the rules about modules and types see them: parsed files without tests, each with its place among the modules.

use std::collections::BTreeSet;

use super::source::SourceFile;
use super::workspace::Workspace;

/// Names of modules from the root of the crate on; empty for the root.
pub(crate) type ModulePath = Vec<String>;

/// The library or program of one crate.
pub(crate) struct Crate<'w> {
    pub(crate) name: &'w str,
    pub(crate) files: Vec<Scanned<'w>>,
}

/// A file that holds no tests, or more than tests.
pub(crate) struct Scanned<'w> {
    pub(crate) source: &'w SourceFile,
    pub(crate) module: ModulePath,
    pub(crate) parsed: syn::File,
}

impl Scanned<'_> {
    /// Modules that the file declares or holds, tests apart.
    pub(crate) fn declared_modules(&self) -> impl Iterator<Item = String> {
        self.modules(false)
    }

    fn modules(&self, for_tests: bool) -> impl Iterator<Item = String> {
        self.parsed.items.iter().filter_map(move |item| match item {
            syn::Item::Mod(module) if is_for_tests(module) == for_tests => {
                Some(module.ident.to_string())
            }
            _ => None,
        })
    }
}

/// Parses all crates. What cannot be parsed is found by the compiler, and left out here.
pub(crate) fn crates(workspace: &Workspace) -> Vec<Crate<'_>> {
    let members = workspace.members.iter();
    members
        .map(|member| crate_of(&member.name, &member.directory, &workspace.files))
        .collect()
}

/// The crate `name` in `directory`, out of `files`.
pub(crate) fn crate_of<'w>(name: &'w str, directory: &str, files: &'w [SourceFile]) -> Crate<'w> {
    let source = format!("{directory}/src/");
    let mut scanned: Vec<_> = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
        .filter_map(|file| {
            let inside = file.path.strip_prefix(&source)?;
            Some(Scanned {
                source: file,
                module: module_path(inside),
                parsed: syn::parse_file(&file.text).ok()?,
            })
        })
        .collect();
    let tests = test_modules(&scanned);
    scanned.retain(|file| !(1..=file.module.len()).any(|to| tests.contains(&file.module[..to])));
    Crate {
        name,
        files: scanned,
    }
}

/// Modules that are compiled for tests only, whatever their files are called.
fn test_modules(files: &[Scanned<'_>]) -> BTreeSet<ModulePath> {
    let inside = |file: &Scanned<'_>| {
        let modules = file.modules(true);
        modules
            .map(|module| [&file.module[..], &[module]].concat())
            .collect::<Vec<_>>()
    };
    files.iter().flat_map(inside).collect()
}

/// Returns whether `module` is compiled for tests only.
pub(crate) fn is_for_tests(module: &syn::ItemMod) -> bool {
    module.attrs.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// Module of the file at `path` inside `src`.
fn module_path(path: &str) -> ModulePath {
    let parts: Vec<_> = path.trim_end_matches(".rs").split('/').collect();
    let named = match parts.split_last() {
        Some((&"mod" | &"lib" | &"main", rest)) => rest,
        _ => &parts[..],
    };
    named.iter().map(|&part| part.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_modules() {
        assert_eq!(module_path("lib.rs"), [""; 0]);
        assert_eq!(module_path("main.rs"), [""; 0]);
        assert_eq!(module_path("a.rs"), ["a"]);
        assert_eq!(module_path("a/mod.rs"), ["a"]);
        assert_eq!(module_path("a/b.rs"), ["a", "b"]);
    }
}
