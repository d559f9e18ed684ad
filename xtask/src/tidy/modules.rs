//! Modules of one crate depend on each other one way, as crates do: a circle has no part that can be read, tested or moved alone.
//!
//! What counts are the top-level modules of a crate, and every path that one names another by, tests apart. What stands in the root
//! belongs to no module: a root brings its modules together.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::Finding;
use super::rust::{Crate, ModulePath, Scanned, is_for_tests};

/// Where one module names another: the first place of each pair.
type Uses = BTreeMap<(String, String), String>;

/// Finds circles between modules.
pub(crate) fn check(crates: &[Crate<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in crates {
        let uses = uses(member);
        for circle in circles(&uses) {
            let message = format!("modules in a circle: {}", described(&circle, &uses));
            findings.push(Finding::new(member.name, "modules", message));
        }
    }
    findings
}

/// The pairs within `circle`, each with a place.
fn described(circle: &[&str], uses: &Uses) -> String {
    let inside = uses
        .iter()
        .filter(|((from, to), _)| circle.contains(&from.as_str()) && circle.contains(&to.as_str()));
    let pairs: Vec<_> = inside
        .map(|((from, to), place)| format!("{from} uses {to} ({place})"))
        .collect();
    pairs.join(", ")
}

/// Groups of modules of which each reaches each other, sorted.
fn circles(uses: &Uses) -> Vec<Vec<&str>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|&from| (from, reachable(from, &next)))
        .collect();
    let mut circles = BTreeSet::new();
    for (&module, others) in &reached {
        if others.contains(module) {
            let both = others
                .iter()
                .filter(|&other| reached.get(other).is_some_and(|back| back.contains(module)));
            circles.insert(both.copied().collect::<Vec<_>>());
        }
    }
    circles.into_iter().collect()
}

fn reachable<'u>(from: &'u str, next: &BTreeMap<&'u str, Vec<&'u str>>) -> BTreeSet<&'u str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for &other in next.get(module).into_iter().flatten() {
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    reached
}

fn uses(member: &Crate<'_>) -> Uses {
    let roots = || member.files.iter().filter(|file| file.module.is_empty());
    let mut modules = BTreeSet::new();
    for root in roots() {
        modules.extend(root.declared_modules());
    }
    let mut exported = BTreeMap::new();
    for root in roots() {
        exported.extend(exports(root, &modules));
    }
    let mut visitor = Paths {
        modules: &modules,
        exported: &exported,
        place: String::new(),
        module: Vec::new(),
        uses: Uses::new(),
    };
    for file in member.files.iter().filter(|file| !file.module.is_empty()) {
        visitor.place.clone_from(&file.source.path);
        visitor.module.clone_from(&file.module);
        visitor.visit_file(&file.parsed);
    }
    visitor.uses
}

/// What the root takes out of its modules and gives a name of its own: that name, and the module.
fn exports(root: &Scanned<'_>, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for item in &root.parsed.items {
        let syn::Item::Use(item) = item else { continue };
        for path in paths_of(&item.tree) {
            let mut parts = path
                .iter()
                .skip_while(|part| *part == "self" || *part == "crate");
            let module = parts.next().filter(|module| modules.contains(*module));
            if let (Some(module), Some(name)) = (module, parts.last()) {
                exports.insert(name.clone(), module.clone());
            }
        }
    }
    exports
}

/// Every path of a `use`; one that is renamed ends with its new name.
fn paths_of(tree: &syn::UseTree) -> Vec<Vec<String>> {
    match tree {
        syn::UseTree::Path(path) => {
            let head = path.ident.to_string();
            let rests = paths_of(&path.tree).into_iter();
            rests
                .map(|rest| [vec![head.clone()], rest].concat())
                .collect()
        }
        syn::UseTree::Group(group) => group.items.iter().flat_map(paths_of).collect(),
        syn::UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        syn::UseTree::Rename(rename) => {
            vec![vec![rename.ident.to_string(), rename.rename.to_string()]]
        }
        syn::UseTree::Glob(_) => vec![vec!["*".to_owned()]],
    }
}

struct Paths<'c> {
    modules: &'c BTreeSet<String>,
    exported: &'c BTreeMap<String, String>,
    place: String,
    /// Where the visitor is.
    module: ModulePath,
    uses: Uses,
}

impl Paths<'_> {
    fn note(&mut self, path: &[String]) {
        let ups = path.iter().take_while(|part| *part == "super").count();
        let rest = match path.first().map(String::as_str) {
            Some("crate") => &path[1..],
            Some("super") if ups == self.module.len() => &path[ups..],
            _ => return,
        };
        let Some(name) = rest.first() else { return };
        let module = Some(name)
            .filter(|name| self.modules.contains(*name))
            .or_else(|| self.exported.get(name));
        let from = &self.module[0];
        if let Some(to) = module.filter(|to| *to != from) {
            let pair = (from.clone(), to.clone());
            self.uses.entry(pair).or_insert_with(|| self.place.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(module) {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for path in paths_of(&item.tree) {
            self.note(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|part| part.ident.to_string());
        self.note(&parts.collect::<Vec<_>>());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // Code in a macro is tokens: `crate::a` is found there, and `super::a` is not.
        let code = call.tokens.to_string().replace(' ', "");
        for path in code.split("crate::").skip(1) {
            let name = path
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            self.note(&["crate".to_owned(), name.unwrap_or_default().to_owned()]);
        }
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust::crate_of;
    use super::super::source::rust;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| rust(&format!("crates/x/src/{path}"), text))
            .collect();
        let member = crate_of("x", "crates/x", &files);
        check(&[member]).iter().map(ToString::to_string).collect()
    }

    const ROOT: (&str, &str) = (
        "lib.rs",
        "mod a; mod b; mod c; pub use b::{Thing, inner::Deep as Low};",
    );

    #[test]
    fn one_way_passes() {
        let files = [
            ROOT,
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c::D;"),
            ("c/mod.rs", "mod d;"),
            ("c/d.rs", "use super::E;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn every_way_to_name_a_module_counts() {
        for back in [
            "use crate::a;",
            "use crate::{c, a::{B, C}};",
            "use super::a;",
            "fn f() { crate::a::g(); }",
            "fn f() { super::a::g(); }",
            "fn f(x: Vec<crate::a::T>) {}",
            "fn f() { vec![crate::a::T, (1)]; }",
            "mod inner { use super::super::a::T; }",
            "impl crate::a::T for X {}",
        ] {
            assert_eq!(
                found(&[ROOT, ("a.rs", "use crate::b::X;"), ("b.rs", back)]),
                [
                    "x: modules: modules in a circle: a uses b (crates/x/src/a.rs), b uses a (crates/x/src/b.rs)"
                ],
                "{back}"
            );
        }
    }

    #[test]
    fn a_name_that_the_root_exports_counts_as_its_module() {
        for use_of_b in ["use crate::Thing;", "use crate::Low;"] {
            let files = [
                ROOT,
                ("a.rs", use_of_b),
                ("b/mod.rs", "use crate::c;"),
                ("c.rs", "use crate::a;"),
            ];
            assert_eq!(found(&files).len(), 1, "{use_of_b}");
        }
    }

    #[test]
    fn tests_do_not_count() {
        let tests = "#[cfg(test)] mod tests { use crate::a; }";
        assert_eq!(
            found(&[ROOT, ("a.rs", "use crate::b;"), ("b.rs", tests)]),
            [""; 0]
        );
        let declared = [
            ROOT,
            ("a.rs", "use crate::b;"),
            ("b.rs", "#[cfg(test)] mod hostile;"),
            ("b/hostile.rs", "use crate::a;"),
            ("b/hostile/body.rs", "use crate::a;"),
        ];
        assert_eq!(found(&declared), [""; 0]);
    }
}
