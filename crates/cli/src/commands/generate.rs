//! `namecast generate`: what shells and `man` read, made from the arguments themselves.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;
use namecast_command::report::rfc3339;
use namecast_net::Clock;
use namecast_units::Timestamp;

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
/// What pages show at their foot.
const SOURCE: &str = concat!("namecast ", env!("CARGO_PKG_VERSION"));
/// When pages were made, in seconds since 1970, where the same sources are to make the same files.
const SOURCE_DATE: &str = "SOURCE_DATE_EPOCH";

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
    command.build();
    let written = write_pages(command, &date()?, &directory);
    written.with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

/// The day that pages show.
fn date() -> anyhow::Result<String> {
    let at = match env::var(SOURCE_DATE) {
        Err(_) => Clock::new().wall(),
        Ok(text) => {
            let seconds: Option<u64> = text.parse().ok();
            let micros = seconds.and_then(|seconds| seconds.checked_mul(1_000_000));
            Timestamp::from_micros(micros.with_context(|| {
                format!("{SOURCE_DATE} is '{text}': write a number of seconds since 1970")
            })?)
        }
    };
    let text = rfc3339(at);
    Ok(text.split('T').next().unwrap_or_default().to_owned())
}

/// Writes a page for `command`, and one for each below it.
fn write_pages(command: clap::Command, date: &str, directory: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_pages(below.clone(), date, directory)?;
    }
    let page = Man::new(command)
        .date(date)
        .source(SOURCE)
        .manual("Namecast");
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = readable(&String::from_utf8_lossy(&text));
    fs::write(directory.join(page.get_filename()), text)
}

/// A page as `man` and `mandoc` take it without a warning: one blank line where there were two, examples line by line under a heading
/// of their own.
fn readable(page: &str) -> String {
    let lines: Vec<_> = page.lines().map(str::trim_end).collect();
    let page = lines.join("\n").replace(".br\n\n.br", ".sp") + "\n";
    let Some((before, more)) = page.split_once(".SH EXTRA\n") else {
        return page;
    };
    let (text, after) = more.split_at(more.find(".SH ").unwrap_or(more.len()));
    let (heading, text) = match text.strip_prefix("Examples:\n") {
        Some(examples) => ("EXAMPLES", examples),
        None => ("NOTES", text),
    };
    format!("{before}.SH {heading}\n.nf\n{text}.fi\n{after}")
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
        let page = read("man/man1/namecast-put.1");
        let title = format!("\"namecast {}\" Namecast\n", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&title), "{page}");
        let examples = ".SH EXAMPLES\n.nf\n  namecast put /files/report.pdf report.pdf\n";
        assert!(page.contains(examples), "{page}");
        assert!(
            page.ends_with(".fi\n") && !page.contains(".br\n\n.br"),
            "{page}"
        );
    }
}
