//! Builds the page: its core as WebAssembly, the core's JavaScript module, the bundle.
//!
//! Each stage leaves a stamp that lists what it read, by path, length and time of change. A stage whose list is
//! unchanged is left out, so that a second `make demo` takes no longer than looking at the files.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};

const TARGET: &str = "wasm32-unknown-unknown";

/// What compiles for [`TARGET`] on this machine; `scripts/wasm-toolchain.sh` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Toolchain {
    /// The toolchain that runs this program, with a standard library from rustup.
    Rustup,
    /// Debian's compiler, which builds the standard library from source.
    Debian,
}

impl Toolchain {
    fn installed(root: &Path) -> Result<Self> {
        let output = Command::new(root.join("scripts/wasm-toolchain.sh"))
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run scripts/wasm-toolchain.sh")?;
        match String::from_utf8_lossy(&output.stdout).trim() {
            "rustup" => Ok(Self::Rustup),
            "debian" => Ok(Self::Debian),
            _ => bail!(
                "no toolchain for {TARGET} is installed; `scripts/install.sh wasm` installs one"
            ),
        }
    }

    /// A `cargo` command of this toolchain, to which the subcommand and its arguments are added.
    fn cargo(self) -> Command {
        match self {
            Self::Rustup => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                // What rustup and the cargo around us set would lead to the other toolchain's files.
                for (variable, _) in env::vars_os() {
                    let name = variable.to_string_lossy();
                    let ours = name.starts_with("RUST") || name.starts_with("CARGO");
                    if (ours && name != "CARGO_HOME") || name == "LD_LIBRARY_PATH" {
                        command.env_remove(&variable);
                    }
                }
                command
                    .env("PATH", "/usr/bin:/bin")
                    .env("RUSTC", "/usr/bin/rustc")
                    // `-Zbuild-std` is refused by a stable compiler without it.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "lld-22");
                command
            }
        }
    }

    fn extra_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Rustup => &[],
            Self::Debian => &["-Zbuild-std=std,panic_abort"],
        }
    }
}

/// Compiles `crates/web` and writes its JavaScript module to `web/src/wasm`.
pub(crate) fn build_core(root: &Path) -> Result<()> {
    let toolchain = Toolchain::installed(root)?;
    // A directory of its own: another version of the compiler may be at work, whose files must not mix with ours.
    let target_directory = target_directory(root).join("wasm");
    let build = toolchain
        .cargo()
        .args(["build", "--locked", "--package", "namecast-web", "--lib"])
        .args(["--profile", "wasm", "--target", TARGET, "--target-dir"])
        .arg(&target_directory)
        .args(toolchain.extra_arguments())
        .current_dir(root)
        .status();
    succeed("compiling the page's core", build)?;

    let module = target_directory.join(TARGET).join("wasm/namecast_web.wasm");
    let output = root.join("web/src/wasm");
    let inputs = vec![
        module.clone(),
        root.join("xtask/bindgen/src"),
        root.join("Cargo.lock"),
    ];
    let stamp = Stamp::new(target_directory.join("module.stamp"), &inputs)?;
    if stamp.is_current() && output.join("namecast_web_bg.wasm").exists() {
        return Ok(());
    }
    eprintln!("[build] the core's JavaScript module");
    let bindgen = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "namecast-bindgen",
            "--target-dir",
        ])
        .arg(&target_directory)
        .arg("--")
        .args([&module, &output])
        .current_dir(root)
        .status();
    succeed("generating the JavaScript module", bindgen)?;
    stamp.write()
}

/// Builds the core, then bundles the page into `web/dist`.
pub(crate) fn build_page(root: &Path) -> Result<()> {
    build_core(root)?;
    let web = root.join("web");
    if !web.join("package.json").exists() {
        bail!("web/package.json is missing: there is no page to bundle");
    }
    let mut inputs = Vec::new();
    for entry in fs::read_dir(&web).context("cannot read web/")? {
        let entry = entry?;
        // What is made here, installed according to the lock file (an input itself), or never bundled.
        if !["dist", "node_modules", "player", "test", "e2e"]
            .iter()
            .any(|made| entry.file_name() == *made)
        {
            inputs.push(entry.path());
        }
    }
    let stamp = Stamp::new(target_directory(root).join("wasm/page.stamp"), &inputs)?;
    if stamp.is_current() && web.join("dist/index.html").exists() {
        return Ok(());
    }
    eprintln!("[build] the page's bundle");
    let bundle = Command::new("npm")
        .args(["run", "--silent", "build"])
        .current_dir(&web)
        .status();
    succeed("bundling the page", bundle)?;
    stamp.write()
}

fn target_directory(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |directory| root.join(directory))
}

fn succeed(what: &str, status: std::io::Result<std::process::ExitStatus>) -> Result<()> {
    let status = status.with_context(|| format!("{what}: cannot start"))?;
    if !status.success() {
        bail!("{what} failed");
    }
    Ok(())
}

/// A record of what a stage read, kept where the stage succeeded.
struct Stamp {
    path: PathBuf,
    inputs: String,
}

impl Stamp {
    /// Lists the files in `inputs`, directories with all they hold.
    fn new(path: PathBuf, inputs: &[PathBuf]) -> Result<Self> {
        let mut pending = inputs.to_vec();
        let mut files = Vec::new();
        while let Some(input) = pending.pop() {
            let metadata =
                fs::metadata(&input).with_context(|| format!("cannot read {}", input.display()))?;
            if metadata.is_dir() {
                for entry in fs::read_dir(&input)? {
                    pending.push(entry?.path());
                }
                continue;
            }
            let changed = metadata.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
            files.push((input, metadata.len(), changed));
        }
        files.sort();
        let mut inputs = String::new();
        for (file, length, changed) in files {
            writeln!(inputs, "{}\t{length}\t{changed}", file.display())?;
        }
        Ok(Self { path, inputs })
    }

    fn is_current(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|inputs| inputs == self.inputs)
    }

    fn write(&self) -> Result<()> {
        fs::write(&self.path, &self.inputs)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_ages_with_any_change_of_its_inputs() {
        let directory = env::temp_dir().join(format!("namecast-stamp-{}", std::process::id()));
        let inputs = [directory.join("in")];
        fs::create_dir_all(inputs[0].join("deep")).unwrap();
        fs::write(inputs[0].join("deep/a"), "1").unwrap();
        let stamp = || Stamp::new(directory.join("stamp"), &inputs).unwrap();

        assert!(!stamp().is_current(), "nothing was built yet");
        stamp().write().unwrap();
        assert!(stamp().is_current());

        fs::write(inputs[0].join("deep/a"), "longer").unwrap();
        assert!(!stamp().is_current(), "a file grew");
        stamp().write().unwrap();
        fs::write(inputs[0].join("b"), "").unwrap();
        assert!(!stamp().is_current(), "a file was added");
        stamp().write().unwrap();
        fs::remove_file(inputs[0].join("b")).unwrap();
        assert!(!stamp().is_current(), "a file was removed");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn debian_builds_the_standard_library_and_rustup_does_not() {
        assert_eq!(
            Toolchain::Debian.extra_arguments(),
            ["-Zbuild-std=std,panic_abort"]
        );
        assert!(Toolchain::Rustup.extra_arguments().is_empty());
        assert_eq!(Toolchain::Debian.cargo().get_program(), "/usr/bin/cargo");
    }
}
