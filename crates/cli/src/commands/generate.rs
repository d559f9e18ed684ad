//! `namecast generate`: what shells and `man` read, made from the arguments themselves.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate_to};

use super::Arguments;

/// `namecast generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// Directory, as /usr/share has them: bash-completion/completions, zsh/site-functions, fish/vendor_completions.d and man/man1
    /// below it are made.
    #[arg(value_name = "DIRECTORY")]
    pub into: PathBuf,
}

/// Where each shell looks.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Zsh, "zsh/site-functions"),
    (Shell::Fish, "fish/vendor_completions.d"),
];
const MAN: &str = "man/man1";

/// Writes all of them.
pub(super) fn run(arguments: &Generate) -> anyhow::Result<()> {
    let mut command = without_help(Arguments::command());
    for (shell, below) in SHELLS {
        let directory = directory(arguments, below)?;
        let written = generate_to(shell, &mut command, "namecast", &directory);
        let written = written
            .with_context(|| format!("cannot write completions to {}", directory.display()))?;
        if shell == Shell::Bash {
            // Found by the name of the command.
            fs::rename(written, directory.join("namecast"))?;
        }
    }
    let directory = directory(arguments, MAN)?;
    let written = clap_mangen::generate_to(command, &directory);
    written.with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

/// `namecast face help list` needs no page of its own.
fn without_help(command: clap::Command) -> clap::Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

fn directory(arguments: &Generate, below: &str) -> anyhow::Result<PathBuf> {
    let directory = arguments.into.join(below);
    fs::create_dir_all(&directory).with_context(|| {
        format!(
            "cannot make {}: name another directory",
            directory.display()
        )
    })?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_and_each_command_has_its_file() {
        let place = tempfile::tempdir().unwrap();
        let into = place.path().to_owned();
        run(&Generate { into }).unwrap();
        let read = |file: &str| fs::read_to_string(place.path().join(file)).unwrap();
        let words = [
            ("bash-completion/completions/namecast", "--upstream"),
            ("zsh/site-functions/_namecast", "--upstream"),
            ("fish/vendor_completions.d/namecast.fish", "upstream"),
            ("man/man1/namecast.1", "namecast\\-forwarder(1)"),
            ("man/man1/namecast-forwarder.1", "\\-\\-upstream"),
            ("man/man1/namecast-face-create.1", "\\-\\-persistency"),
        ];
        let pages = fs::read_dir(place.path().join(MAN)).unwrap();
        let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
        assert!(!pages.into_iter().any(|page| page.contains("-help")));
        for (file, word) in words {
            assert!(read(file).contains(word), "{file} has no {word}");
        }
    }
}
