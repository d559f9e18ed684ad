//! `index.html`: everything that was found, to read.

mod claims;
mod page;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::library::is_chosen;
use super::output::{Timing, json};
use super::replay::{Kept, Replay};
use super::store::write_whole;
use super::summary::Summary;

/// Folders below each other that are searched for summaries.
const DEPTH: usize = 4;
/// Octets of a summary or picture, beyond which something is wrong with it.
const MAX_BYTES: u64 = 32 << 20;

/// What a report is made from.
#[derive(Debug)]
struct Entry {
    summary: Summary,
    timing: Option<Timing>,
    replay: Option<Replay>,
    /// Pictures in the order of the summary's figures; none where there is none, or none to read.
    pictures: Vec<Option<String>>,
}

/// What became of a report.
#[derive(Debug)]
pub struct Report {
    /// The page.
    pub path: PathBuf,
    /// IDs of what is in it, in order.
    pub ids: Vec<String>,
    /// What could not be read, and why.
    pub skipped: Vec<String>,
}

/// Joins all summaries below `folder` whose ID one of `patterns` means into `folder/index.html`; all of them without patterns.
/// `claims` is where a Markdown table of what the papers say goes; beside it, in a folder of the same name, goes what is
/// [kept](Kept) of each experiment that was not run quickly. Of experiments whose quantities were scaled the table alone tells.
///
/// # Errors
/// `folder` or `claims` cannot be read or written. A damaged summary is left out and reported.
pub fn write(folder: &Path, patterns: &[String], claims: Option<&Path>) -> io::Result<Report> {
    let mut entries = Vec::new();
    let mut skipped = Vec::new();
    for path in summaries(folder)? {
        match read(&path) {
            Ok(entry) => entries.push(entry),
            Err(why) => skipped.push(format!("{}: {why}", path.display())),
        }
    }
    entries.retain(|entry: &Entry| is_chosen(patterns, &entry.summary.id));
    entries.sort_by_key(|entry| natural(&entry.summary.id));
    let is_varied = |entry: &mut Entry| !entry.summary.scales.is_empty();
    let varied: Vec<Entry> = entries.extract_if(.., is_varied).collect();
    let path = folder.join("index.html");
    write_whole(&path, page::html(&entries, &skipped).as_bytes())?;
    if let Some(claims) = claims {
        let summaries = entries.iter().map(|entry| &entry.summary);
        let varied = varied.iter().map(|entry| &entry.summary);
        write_whole(claims, claims::document(summaries, varied).as_bytes())?;
        keep(&entries, &claims.with_extension(""))?;
    }
    let ids = entries.into_iter().map(|entry| entry.summary.id);
    Ok(Report {
        path,
        ids: ids.collect(),
        skipped,
    })
}

fn keep(entries: &[Entry], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for entry in entries.iter().filter(|entry| !entry.summary.quick) {
        let kept = Kept::new(&entry.summary, entry.replay.clone());
        let name = entry.summary.id.replace('/', "-");
        let text = json(&kept).map_err(io::Error::other)?;
        write_whole(&folder.join(name).with_extension("json"), &text)?;
    }
    Ok(())
}

/// Returns where summaries are below `folder`, in order.
///
/// # Errors
/// `folder` cannot be read.
pub(super) fn summaries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    find(folder, DEPTH, &mut found)?;
    Ok(found)
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "summary.json" {
            found.push(path);
        } else if depth > 0 && path.is_dir() && !name.starts_with('.') {
            find(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// Reads a file of results.
///
/// # Errors
/// Why that is not possible.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Entry, String> {
    let summary: Summary = read_json(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let figures = summary.figures.iter().map(|figure| {
        let name = figure.file.as_ref()?;
        // A summary speaks of pictures beside it only, wherever it comes from.
        let plain = Path::new(name)
            .file_name()
            .is_some_and(|plain| plain == name.as_str());
        let text = plain.then(|| read_text(&folder.join(name)).ok())??;
        themed(&text, &figure.title)
    });
    Ok(Entry {
        pictures: figures.collect(),
        summary,
        timing: read_json(&folder.join("timing.json")).ok(),
        replay: read_json(&folder.join("replay.json")).ok().flatten(),
    })
}

/// Reads a text that is not larger than one of results can be.
///
/// # Errors
/// Why that is not possible.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("{size} octets: expected at most {MAX_BYTES}"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// A picture in the page's colours, as wide as there is room. `None` if it is not one of ours.
fn themed(svg: &str, title: &str) -> Option<String> {
    let (head, body) = svg.split_once('>')?;
    if !head.starts_with("<svg") || svg.contains("<script") || svg.contains("javascript:") {
        return None;
    }
    let view = head.split_once("viewBox=\"")?.1.split_once('"')?.0;
    let label = maud::html! { svg role="img" viewBox=(view) aria-label=(title) xmlns="http://www.w3.org/2000/svg" {} };
    let label = label.into_string();
    let opening = label.strip_suffix("</svg>")?;
    let body = body
        .replace("#1D242B", "currentColor")
        .replace("#D9DEE3", "var(--faint)")
        .replace("#FFFFFF", "var(--ground)");
    Some(format!("{opening}{body}"))
}

/// A key that sorts `figure2` before `figure10`.
fn natural(id: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = id;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits);
        let end = tail
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        key.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut ids = [
            "arc/figure10",
            "arc/table1",
            "arc/figure2",
            "arc/figure2b",
            "a/z",
        ];
        ids.sort_by_key(|id| natural(id));
        assert_eq!(
            ids,
            [
                "a/z",
                "arc/figure2",
                "arc/figure2b",
                "arc/figure10",
                "arc/table1"
            ]
        );
    }

    #[test]
    fn pictures_take_the_pages_colours_and_foreign_ones_are_refused() {
        let ours = "<svg width=\"9\" viewBox=\"0 0 9 9\" xmlns=\"x\">\n<rect fill=\"#FFFFFF\" stroke=\"#1D242B\"/></svg>";
        let themed_one = themed(ours, "a \"b\"").unwrap();
        assert!(themed_one.contains("var(--ground)") && themed_one.contains("currentColor"));
        assert!(themed_one.contains("&quot;b&quot;") && !themed_one.contains("width=\"9\""));
        assert_eq!(
            themed("<svg viewBox=\"0 0 1 1\"><script>1</script></svg>", ""),
            None
        );
        assert_eq!(themed("no picture", ""), None);
    }
}
