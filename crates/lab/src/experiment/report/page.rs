//! The page itself.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser};

use super::Entry;
use crate::experiment::claim::Verdict;
use crate::experiment::figure::{bound, number, significant};
use crate::experiment::summary::{FigureEntry, Summary};

/// Rows of a table of metrics that are shown without being asked for.
const OPEN_ROWS: usize = 24;

/// The whole page, without anything from elsewhere.
pub(super) fn html(entries: &[Entry], skipped: &[String]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Namecast: experiments" }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    h1 { "What the experiments found" }
                    (introduction(entries))
                }
                main {
                    (contents(entries))
                    @if !skipped.is_empty() { (unreadable(skipped)) }
                    @for entry in entries { (experiment(entry)) }
                }
            }
        }
    };
    page.into_string()
}

fn introduction(entries: &[Entry]) -> Markup {
    let summaries = || entries.iter().map(|entry| &entry.summary);
    let checks: usize = summaries().map(|summary| summary.checks.len()).sum();
    let failed: usize = summaries().map(|summary| summary.failed().count()).sum();
    let quick = summaries().filter(|summary| summary.quick).count();
    html! {
        p {
            "Each section repeats one figure or table of a paper on real-time communication over Named Data Networking, with the "
            "program that runs on real networks. Most run in virtual time: a simulated network, but not simulated nodes. For "
            "these, the same file and seed give the same numbers to the last digit."
        }
        p {
            "Lines are means over all runs; the shade around them, and what follows ±, is the 95 % confidence interval of the mean. "
            "Open marks show what the paper reports, where it gives a number; dashed lines show what nothing could do better than."
        }
        p {
            @if checks == 0 { span.soft { "Nothing was checked." } }
            @else if failed == 0 { strong.good { "✓ All " (checks) " checks hold." } }
            @else { strong.bad { "✗ " (failed) " of " (checks) " checks do not hold." } }
            @if quick > 0 {
                span.soft { " " (quick) " of " (entries.len()) " experiments were run quickly, with few and short runs: nothing is claimed of them." }
            }
        }
    }
}

fn contents(entries: &[Entry]) -> Markup {
    html! {
        section {
            h2 { "Contents" }
            div.scroll {
                table {
                    thead { tr { th { "Experiment" } th { "Paper" } th { "Shows" } th { "Checks" } } }
                    tbody {
                        @for Entry { summary, .. } in entries {
                            tr {
                                td { a href={ "#" (anchor(&summary.id)) } { (summary.id) } }
                                td { (summary.source) " " (summary.item) }
                                td { (summary.title) }
                                td { (verdict(summary)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn unreadable(skipped: &[String]) -> Markup {
    html! {
        section.notice {
            h2 { "Left out" }
            p { "These results could not be read. Run the experiment again." }
            ul { @for reason in skipped { li { code { (reason) } } } }
        }
    }
}

fn anchor(id: &str) -> String {
    id.replace('/', "-")
}

fn verdict(summary: &Summary) -> Markup {
    let all = summary.checks.len();
    let failed = summary.failed().count();
    html! {
        @if summary.quick { span.soft { "quick run" } }
        @else if all == 0 { span.soft { "none" } }
        @else if failed == 0 { span.good { "✓ " (all) " of " (all) } }
        @else { span.bad { "✗ " (all - failed) " of " (all) } }
    }
}

fn experiment(entry: &Entry) -> Markup {
    let summary = &entry.summary;
    html! {
        section id=(anchor(&summary.id)) {
            p.item {
                @if !summary.source.is_empty() { (summary.source) " " (summary.item) " · " }
                (summary.id) " · " (verdict(summary))
            }
            h2 { @if summary.title.is_empty() { (summary.id) } @else { (summary.title) } }
            (markdown(&summary.about))
            @for (figure, picture) in summary.figures.iter().zip(&entry.pictures) {
                (drawing(figure, picture.as_deref()))
            }
            @if !summary.claims.is_empty() { (claims(summary)) }
            @if !summary.checks.is_empty() { (checks(summary)) }
            (metrics(summary))
            (facts(entry))
        }
    }
}

fn drawing(figure: &FigureEntry, picture: Option<&str>) -> Markup {
    html! {
        @if let Some(picture) = picture {
            figure { (PreEscaped(picture)) }
        } @else if let Some((head, rows)) = figure.table.split_first() {
            h3 { (figure.title) }
            div.scroll {
                table {
                    thead { tr { @for cell in head { th { (cell) } } } }
                    tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
                }
            }
        } @else {
            p.notice { "The picture “" (figure.title) "” is missing." }
        }
    }
}

fn claims(summary: &Summary) -> Markup {
    html! {
        h3 { "What the paper says" }
        div.scroll {
            table {
                thead { tr { th { "Where" } th { "What" } th { "Judged by" } th.number { "Holds with" } th.number { "Found" } th { "" } th { "Why" } } }
                tbody {
                    @for claim in &summary.claims {
                        tr {
                            td { (claim.place) }
                            td { (claim.says) }
                            td { (claim.metric) }
                            td.number { (claim.bound()) }
                            td.number { (claim.measured()) }
                            td { @if claim.verdict == Verdict::Holds { span.good { (claim.verdict.text()) } } @else { span.bad { (claim.verdict.text()) } } }
                            td { (claim.because) }
                        }
                    }
                }
            }
        }
    }
}

fn checks(summary: &Summary) -> Markup {
    html! {
        h3 { "Checks" }
        div.scroll {
            table {
                thead { tr { th { "" } th { "What" } th.number { "Found" } th.number { "Allowed" } th { "Why" } } }
                tbody {
                    @for check in &summary.checks {
                        tr {
                            td { @if check.ok { span.good { "✓" } } @else { span.bad { "✗" } } }
                            td { (check.name) }
                            td.number { (number(check.value)) }
                            td.number { (bound(check.min, check.max)) }
                            td { (summary.why.get(&check.name).map_or("", String::as_str)) }
                        }
                    }
                }
            }
        }
    }
}

fn metrics(summary: &Summary) -> Markup {
    let table = html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { "Value" @if !summary.sweeps.is_empty() { " / " (summary.sweeps.join(" / ")) } }
                        th.number { "Measured" } th.number { "Lowest … highest" } th.number { "Paper" } th.number { "Ideal" }
                    }
                }
                tbody { @for name in summary.metrics.keys() { (metric(summary, name)) } }
            }
        }
    };
    html! {
        @if summary.metrics.len() > OPEN_ROWS {
            details { summary { "All " (summary.metrics.len()) " values" } (table) }
        } @else if !summary.metrics.is_empty() {
            h3 { "Values" }
            (table)
        }
    }
}

fn metric(summary: &Summary, name: &str) -> Markup {
    let known = |numbers: &std::collections::BTreeMap<String, Option<f64>>| {
        number(numbers.get(name).copied().flatten())
    };
    let spread = summary.confidence.get(name);
    html! {
        tr {
            td { (name) }
            td.number {
                (known(&summary.metrics))
                @if let Some(spread) = spread {
                    @if spread.high > spread.low { " ± " (significant((spread.high - spread.low) / 2.0)) }
                    @if spread.missing > 0 { span.bad { " (" (spread.missing) " runs without)" } }
                }
            }
            td.number {
                @if let Some(spread) = spread { (significant(spread.min)) " … " (significant(spread.max)) }
            }
            td.number { (known(&summary.paper)) }
            td.number { (known(&summary.ideal)) }
        }
    }
}

fn facts(entry: &Entry) -> Markup {
    let summary = &entry.summary;
    html! {
        p.facts {
            (summary.runs) " runs of each point, seed " (summary.seed)
            @if let Some(timing) = entry.timing {
                " · " (timing.runs) " runs in all took " (significant(timing.cpu_seconds)) " s of processor time, "
                (significant(timing.wall_seconds)) " s one after another"
            }
            @if !summary.command.is_empty() { br; "Again: " code { (summary.command) } }
        }
    }
}

/// Markdown; what looks like HTML is shown as it is written.
fn markdown(text: &str) -> Markup {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        other => other,
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    PreEscaped(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_is_rendered_and_html_in_it_is_not() {
        let text = markdown("One *two*.\n\n<script>alert(1)</script>\n\na <b>c</b>").into_string();
        assert!(text.contains("<em>two</em>"), "{text}");
        assert!(
            !text.contains("<script>") && !text.contains("<b>"),
            "{text}"
        );
    }
}
