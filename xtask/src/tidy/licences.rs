//! Every crate that we build is under a licence that lets anybody do anything with the result.

use std::collections::BTreeMap;

use spdx::{Expression, ParseMode};

use super::Finding;
use super::workspace::Package;

const PERMISSIVE: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Crates under another licence that are used all the same: name, licence, and why that is harmless.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Finds crates whose licence is not permissive, or not stated.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let place = format!("{} {}", package.name, package.version);
        let Some(licence) = &package.licence else {
            findings.push(Finding::new(place, "licence", "states no licence"));
            continue;
        };
        let excused = EXCEPTIONS
            .iter()
            .any(|(name, accepted, _)| package.name == *name && licence == accepted);
        if !excused && !is_permissive(licence) {
            findings.push(Finding::new(
                place,
                "licence",
                format!("{licence} is not on the list of permissive licences"),
            ));
        }
    }
    findings
}

/// Whether one of the choices that the SPDX expression leaves is permissive throughout.
fn is_permissive(licence: &str) -> bool {
    // The lax mode takes the old `MIT/Apache-2.0` too.
    Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|expression| {
        expression.evaluate(|requirement| {
            // An exception after `WITH` only ever permits more.
            requirement
                .license
                .id()
                .is_some_and(|id| PERMISSIVE.contains(&id.name))
        })
    })
}

/// Reports crates that are built in more than one version: time and size that an update may save.
pub(crate) fn duplicates(packages: &[Package]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(&package.name)
            .or_default()
            .push(&package.version);
    }
    let several = versions
        .into_iter()
        .filter(|(_, versions)| versions.len() > 1);
    several
        .map(|(name, versions)| {
            Finding::new(
                name,
                "duplicate",
                format!("built as {}", versions.join(" and ")),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: licence.map(str::to_owned),
        }
    }

    #[test]
    fn permissive_expressions_pass() {
        for licence in [
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR GPL-3.0-only) AND Unicode-3.0",
            "ISC AND (Apache-2.0 OR ISC)",
        ] {
            assert_eq!(
                check(&[package("a", "1.0.0", Some(licence))]),
                [],
                "{licence}"
            );
        }
    }

    #[test]
    fn others_unknown_and_missing_ones_are_found() {
        for licence in [
            Some("GPL-3.0-only"),
            Some("MIT AND LGPL-2.1-only"),
            Some("MPL-2.0"),
            Some("Whatever"),
            None,
        ] {
            assert_eq!(
                check(&[package("a", "1.0.0", licence)]).len(),
                1,
                "{licence:?}"
            );
        }
    }

    #[test]
    fn crates_in_two_versions_are_reported_once() {
        let packages = [
            package("a", "1.0.0", None),
            package("b", "1.0.0", None),
            package("a", "2.0.0", None),
        ];
        let found: Vec<_> = duplicates(&packages)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["a: duplicate: built as 1.0.0 and 2.0.0"]);
    }
}
