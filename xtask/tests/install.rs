//! Which WebAssembly toolchain the scripts choose and install, on machines made of stand-ins for `rustup`, `dpkg-query`
//! and `apt-get` that write down what they are asked to do.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; the exemption covers test functions only"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Does as `$STATE/rustup-server` says: `answers`, `refuses`, or says nothing until it is killed.
const RUSTUP: &str = r#"
echo "rustup $*" >> "$STATE/log"
case "$2 $(cat "$STATE/rustup-server")" in
  list*) cat "$STATE/targets" ;;
  "add answers") echo wasm32-unknown-unknown >> "$STATE/targets" ;;
  "add refuses") exit 1 ;;
  "add hangs") exec sleep 60 ;;
esac"#;
const DPKG_QUERY: &str = r#"
[ -e "$STATE/debian" ] || exit 1
printf 'installed\ninstalled\ninstalled\ninstalled\n'"#;
/// Knows no package while `$STATE/stale` is there.
const APT_GET: &str = r#"
echo "apt-get $*" >> "$STATE/log"
[ "$1" != update ] || exec rm "$STATE/stale"
[ ! -e "$STATE/stale" ] || exit 100
: > "$STATE/debian""#;
const SUDO: &str = r#"exec "$@""#;

struct Machine {
    state: PathBuf,
    /// `NAMECAST_WASM`, where the user insists.
    wish: Option<&'static str>,
}

impl Machine {
    fn new(name: &str, rustup_server: &str) -> Self {
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("install-{name}"));
        let _ = fs::remove_dir_all(&state);
        fs::create_dir_all(state.join("bin")).unwrap();
        let programs = [
            ("rustup", RUSTUP),
            ("dpkg-query", DPKG_QUERY),
            ("apt-get", APT_GET),
            ("sudo", SUDO),
        ];
        for (program, text) in programs {
            let path = state.join("bin").join(program);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(state.join("rustup-server"), rustup_server).unwrap();
        fs::write(state.join("targets"), "x86_64-unknown-linux-gnu\n").unwrap();
        fs::write(state.join("log"), "").unwrap();
        Self { state, wish: None }
    }

    fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut command = Command::new(root.join("scripts").join(script));
        command.args(arguments).env("STATE", &self.state);
        command.env(
            "PATH",
            format!("{}:/usr/bin:/bin", self.state.join("bin").display()),
        );
        command
            .env("NAMECAST_RUSTUP_SECONDS", "1")
            .env_remove("NAMECAST_WASM");
        if let Some(wish) = self.wish {
            command.env("NAMECAST_WASM", wish);
        }
        command.output().unwrap()
    }

    /// Installs, and gives back what the machine was asked to change.
    fn install(&self) -> Vec<String> {
        let output = self.run("install.sh", &["wasm"]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let log = fs::read_to_string(self.state.join("log")).unwrap();
        let changes = log
            .lines()
            .filter(|line| !line.starts_with("rustup target list"));
        changes.map(str::to_owned).collect()
    }

    fn toolchain(&self) -> String {
        String::from_utf8(self.run("wasm-toolchain.sh", &[]).stdout)
            .unwrap()
            .trim()
            .to_owned()
    }
}

const ADD: &str = "rustup target add wasm32-unknown-unknown";
const APT: &str =
    "apt-get install --yes --no-install-recommends rustc-web cargo-web rust-web-src lld-22";

#[test]
fn what_is_installed_is_used_and_nothing_is_said() {
    for (name, present, toolchain) in [
        ("has-rustup", "targets", "rustup"),
        ("has-debian", "debian", "debian"),
    ] {
        let machine = Machine::new(name, "refuses");
        assert_eq!(machine.toolchain(), "");
        fs::write(machine.state.join(present), "wasm32-unknown-unknown\n").unwrap();
        assert_eq!(machine.install(), [""; 0]);
        assert!(machine.run("install.sh", &["wasm"]).stderr.is_empty());
        assert_eq!(machine.toolchain(), toolchain);
    }
}

#[test]
fn rustup_is_asked_first() {
    let machine = Machine::new("answers", "answers");
    assert_eq!(machine.install(), [ADD]);
    assert_eq!(machine.toolchain(), "rustup");
}

#[test]
fn debian_steps_in_where_rustup_refuses_or_hangs() {
    for behaviour in ["refuses", "hangs"] {
        let machine = Machine::new(behaviour, behaviour);
        assert_eq!(machine.install(), [ADD, APT], "{behaviour}");
        assert_eq!(machine.toolchain(), "debian");
    }
}

#[test]
fn stale_package_lists_are_mended_by_one_update() {
    let machine = Machine::new("stale", "refuses");
    fs::write(machine.state.join("stale"), "").unwrap();
    assert_eq!(machine.install(), [ADD, APT, "apt-get update", APT]);
    assert_eq!(machine.toolchain(), "debian");
}

#[test]
fn a_wish_is_obeyed() {
    let mut machine = Machine::new("wish-debian", "answers");
    fs::write(machine.state.join("targets"), "wasm32-unknown-unknown\n").unwrap();
    machine.wish = Some("debian");
    assert_eq!(machine.install(), [APT]);
    assert_eq!(machine.toolchain(), "debian");

    let mut machine = Machine::new("wish-rustup", "refuses");
    machine.wish = Some("rustup");
    assert!(
        !machine.run("install.sh", &["wasm"]).status.success(),
        "no other way is taken"
    );
    assert!(!machine.state.join("debian").exists());

    machine.wish = Some("something");
    assert_eq!(machine.run("install.sh", &["wasm"]).status.code(), Some(2));
}

/// What a release build of the program does about its page, in a copy of the tree in which `cargo` and the installation are stand-ins: Cargo
/// shows lines that begin with `cargo::error=`, and ends with them.
#[test]
fn a_release_build_builds_the_page_that_is_missing_or_says_what_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install-page");
    let _ = fs::remove_dir_all(&copy);
    for directory in ["scripts", "crates/cli", "web/dist"] {
        fs::create_dir_all(copy.join(directory)).unwrap();
    }
    let script = copy.join("build-script");
    let compiled = Command::new("rustc")
        .args(["--edition", "2024", "-o"])
        .args([&script, &root.join("crates/cli/build.rs")])
        .status();
    assert!(compiled.unwrap().success());
    let write = |path: &str, text: &str| {
        let path = copy.join(path);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(
        "cargo",
        r#"echo "cargo $*" >> log; : > web/dist/index.html"#,
    );
    let build = |profile: &str, wish: &str| {
        let mut build = Command::new(&script);
        build.env("CARGO_MANIFEST_DIR", copy.join("crates/cli"));
        build
            .env("CARGO", copy.join("cargo"))
            .env("PROFILE", profile);
        let output = build.env("NAMECAST_PAGE", wish).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = printed.lines().filter(|it| it.starts_with("cargo::error="));
        let log = fs::read_to_string(copy.join("log")).unwrap_or_default();
        (errors.count(), log)
    };
    write("scripts/install.sh", "exit 1");
    let nothing = String::new();
    assert_eq!(build("debug", ""), (0, nothing.clone()));
    assert_eq!(build("release", "none"), (0, nothing.clone()));
    assert_eq!(build("release", ""), (1, nothing));
    write("scripts/install.sh", r#"echo "install $*" >> log"#);
    let built = "install page\ncargo xtask web\n".to_owned();
    assert_eq!(build("release", ""), (0, built.clone()));
    // Now it is there.
    assert_eq!(build("release", ""), (0, built));
}
