//! The real command: trust schemas are compiled and checked.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod program;

use std::path::Path;
use std::process::Output;

use program::command;
use serde_json::{Value, json};

fn run(home: &Path, arguments: &str) -> Output {
    command(home, arguments).current_dir(home).output().unwrap()
}

fn printed(home: &Path, arguments: &str) -> Vec<u8> {
    let output = run(home, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    output.stdout
}

/// The standard error of a command that ends with 1.
fn refused(home: &Path, arguments: &str) -> String {
    let output = run(home, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_template_compiles_and_is_checked_as_text_and_compiled() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    std::fs::write(
        home.join("site.trust"),
        printed(home, "trust template /site"),
    )
    .unwrap();
    let summary = printed(home, "trust compile site.trust --output site.lvs");
    let summary = String::from_utf8(summary).unwrap();
    assert!(
        summary.contains("21 rules") && summary.ends_with("anchors: #anchor\n"),
        "{summary}"
    );
    let octets = std::fs::read(home.join("site.lvs")).unwrap();
    assert_eq!(printed(home, "trust compile site.trust -o -"), octets);
    let about: Value =
        serde_json::from_slice(&printed(home, "trust compile site.lvs --json")).unwrap();
    assert_eq!(
        (&about["bytes"], &about["anchors"]),
        (&json!(octets.len()), &json!(["#anchor"]))
    );

    let packet = "/site/cam/catalogue/v=1/seg=0";
    let own = "/site/cam/KEY/1/site/v=1";
    for schema in ["site.trust", "site.lvs"] {
        let check = |key: &str| format!("trust check {packet} {key} --schema {schema}");
        let allowed = printed(home, &check(own));
        let allowed = String::from_utf8(allowed).unwrap();
        assert_eq!(
            allowed,
            format!("allowed: {packet} matches #stream1, {own} matches #key1\n")
        );
        let said = refused(home, &check("/site/door/KEY/1/site/v=1"));
        assert!(
            said.contains("does not allow /site/door/KEY/1/site/v=1 to sign"),
            "{said}"
        );
        let json = printed(home, &format!("{} --json", check(own)));
        let json: Value = serde_json::from_slice(&json).unwrap();
        let expected = json!({
            "allowed": true,
            "rules": ["#stream1"],
            "patterns": { "p1": "cam" },
            "signer_rules": ["#key1"],
        });
        assert_eq!(json, expected);
    }
}

#[test]
fn mistakes_are_said_with_file_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    std::fs::write(home.join("bad.trust"), "#a: \"x\"\n#b: \"y\" <= #c\n").unwrap();
    let said = refused(home, "trust compile bad.trust");
    assert!(
        said.contains("bad.trust") && said.contains("line 2, column 12"),
        "{said}"
    );
    assert!(said.contains("in rule #b: there is no rule #c"), "{said}");
    std::fs::write(home.join("bad.lvs"), b"a\x04\0\x01\x10\x01").unwrap();
    let said = refused(home, "trust compile bad.lvs");
    assert!(
        said.contains("0x00011001 of Light VerSec is unknown"),
        "{said}"
    );
    assert!(refused(home, "trust check /a /b --schema none").contains("cannot read none"));
}
