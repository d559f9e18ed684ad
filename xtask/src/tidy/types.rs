//! A type has one owner's state and one owner's work: few fields, few methods. Beyond, a second owner is in it.
//!
//! All `impl` blocks of a type in its crate count together, those of traits of ours as well; those of other traits (`Debug`, `Iterator`,
//! `Visit`) say what a type is, not what it does.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::Finding;
use super::rust::{Crate, ModulePath, is_for_tests};

/// Most of each that a type may have.
const LIMITS: [(&str, usize); 2] = [("fields", 20), ("methods", 60)];

/// What every application speaks, in methods that pass on what it does anyway: a type does no more for having them.
const DIALECT: &str = "Application";

/// Plain counters and statistics, read field by field: any number of them is one thing.
const RECORDS: &[(&str, &str)] = &[
    ("namecast-apps", "live::stats::Stats"),
    ("namecast-apps", "live::stats::StreamStats"),
    ("namecast-net", "node::status::NodeStatus"),
    ("namecast-stream", "consumer::counters::Counters"),
];

/// A type of one crate.
#[derive(Debug, Default)]
struct Type {
    place: String,
    fields: usize,
    methods: usize,
}

/// Where a type is declared, and its name.
type Key = (ModulePath, String);

/// Finds types with too many fields or methods.
pub(crate) fn check(crates: &[Crate<'_>]) -> Vec<Finding> {
    check_against(crates, RECORDS)
}

fn check_against(crates: &[Crate<'_>], records: &[(&str, &str)]) -> Vec<Finding> {
    let traits = traits(crates);
    let mut findings = Vec::new();
    for member in crates {
        for ((module, name), found) in types(member, &traits) {
            let name = [&module[..], &[name]].concat().join("::");
            let is_record = records.contains(&(member.name, &name));
            let fields = if is_record { 0 } else { found.fields };
            for ((part, limit), count) in LIMITS.into_iter().zip([fields, found.methods]) {
                if count > limit {
                    let message = format!(
                        "`{name}` has {count} {part}; more than {limit} are two owners' in one"
                    );
                    findings.push(Finding::new(found.place.clone(), "types", message));
                }
            }
        }
    }
    findings
}

/// Names of the traits of ours.
fn traits(crates: &[Crate<'_>]) -> BTreeSet<String> {
    let mut visitor = Traits::default();
    for file in crates.iter().flat_map(|member| &member.files) {
        visitor.visit_file(&file.parsed);
    }
    visitor.0
}

#[derive(Default)]
struct Traits(BTreeSet<String>);

impl<'ast> Visit<'ast> for Traits {
    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        if item.ident != DIALECT {
            self.0.insert(item.ident.to_string());
        }
    }
}

fn types(member: &Crate<'_>, traits: &BTreeSet<String>) -> BTreeMap<Key, Type> {
    let mut visitor = Types {
        traits,
        place: String::new(),
        module: Vec::new(),
        types: BTreeMap::new(),
        methods: Vec::new(),
    };
    for file in &member.files {
        visitor.place.clone_from(&file.source.path);
        visitor.module.clone_from(&file.module);
        visitor.visit_file(&file.parsed);
    }
    let mut types = visitor.types;
    for ((module, name), methods) in visitor.methods {
        let declared = types.keys().filter(|(_, other)| *other == name);
        // Of several with one name, the nearest.
        let nearest = declared
            .max_by_key(|(other, _)| shared(other, &module))
            .cloned();
        if let Some(found) = nearest.and_then(|key| types.get_mut(&key)) {
            found.methods += methods;
        }
    }
    types
}

/// Modules that two paths share, and, among equals, how few lie between.
fn shared(declared: &ModulePath, used: &ModulePath) -> (usize, usize) {
    let common = declared
        .iter()
        .zip(used)
        .take_while(|(one, other)| one == other)
        .count();
    (common, usize::MAX - declared.len())
}

struct Types<'c> {
    traits: &'c BTreeSet<String>,
    place: String,
    module: ModulePath,
    types: BTreeMap<Key, Type>,
    /// Methods of each `impl` block, and of what.
    methods: Vec<(Key, usize)>,
}

impl Types<'_> {
    fn declare(&mut self, name: &syn::Ident, fields: usize) {
        let found = Type {
            place: self.place.clone(),
            fields,
            methods: 0,
        };
        self.types
            .insert((self.module.clone(), name.to_string()), found);
    }
}

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(module) {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.declare(&item.ident, item.fields.len());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.declare(&item.ident, 0);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let last = |path: &syn::Path| path.segments.last().map(|part| part.ident.to_string());
        let is_ours = item
            .trait_
            .as_ref()
            .is_none_or(|(.., path, _)| last(path).is_some_and(|name| self.traits.contains(&name)));
        let syn::Type::Path(of) = &*item.self_ty else {
            return;
        };
        let methods = item
            .items
            .iter()
            .filter(|item| matches!(item, syn::ImplItem::Fn(_)))
            .count();
        if let Some(name) = last(&of.path).filter(|_| is_ours) {
            self.methods.push(((self.module.clone(), name), methods));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rust::crate_of;
    use super::super::source::rust;
    use super::*;

    fn found(files: &[(&str, String)], records: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| rust(&format!("x/src/{path}"), text))
            .collect();
        check_against(&[crate_of("x", "x", &files)], records)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn structure(name: &str, fields: usize) -> String {
        let fields: Vec<_> = (0..fields).map(|number| format!("f{number}: u8")).collect();
        format!("struct {name} {{ {} }}\n", fields.join(", "))
    }

    fn methods(of: &str, count: usize) -> String {
        let methods: String = (0..count)
            .map(|number| format!("fn m{number}() {{}}\n"))
            .collect();
        format!("impl {of} {{ {methods} }}\n")
    }

    #[test]
    fn a_struct_may_have_twenty_fields() {
        assert_eq!(found(&[("lib.rs", structure("A", 20))], &[]), [""; 0]);
        let text = [("lib.rs", structure("A", 21))];
        assert_eq!(
            found(&text, &[]),
            ["x/src/lib.rs: types: `A` has 21 fields; more than 20 are two owners' in one"]
        );
        assert_eq!(found(&text, &[("x", "A")]), [""; 0]);
    }

    #[test]
    fn all_blocks_of_a_type_count_together() {
        let files = |more: usize| {
            [
                (
                    "lib.rs",
                    structure("A", 1) + &methods("A", 30) + "trait Own { fn a(); }",
                ),
                (
                    "b.rs",
                    methods("super::A", 29) + &methods("Own for A", more),
                ),
                ("c.rs", methods("Iterator for A", 30)),
                ("tests.rs", methods("A", 30)),
            ]
        };
        assert_eq!(found(&files(1), &[]), [""; 0]);
        assert_eq!(
            found(&files(2), &[]),
            ["x/src/lib.rs: types: `A` has 61 methods; more than 60 are two owners' in one"]
        );
    }

    #[test]
    fn types_of_one_name_are_told_apart_by_where_they_are() {
        let files = [
            ("a/mod.rs", structure("T", 1) + &methods("T", 40)),
            ("a/more.rs", methods("super::T", 20)),
            ("b.rs", structure("T", 1) + &methods("T", 60)),
        ];
        assert_eq!(found(&files, &[]), [""; 0]);
    }
}
