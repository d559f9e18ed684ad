//! The `[[sweep]]` tables of an experiment file.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{Choice, Reader, Sweep, overrides};
use crate::experiment::tree::{self, Node, Override, Table};

impl<'l> Reader<'_, 'l> {
    /// All sweeps, in the order of the file.
    pub(super) fn sweeps(&mut self, node: Node<'l>) -> Vec<Sweep<'l>> {
        let mut sweeps: Vec<Sweep<'l>> = Vec::new();
        for table in self.tables(node, "[[sweep]]") {
            let span = table.span();
            let Some(sweep) = self.sweep(table) else {
                continue;
            };
            if sweeps.iter().any(|other| other.name == sweep.name) {
                let message = format!("a second sweep named '{}': names differ", sweep.name);
                self.refuse(span, message);
                continue;
            }
            sweeps.push(sweep);
        }
        let points = sweeps.iter().try_fold(1_usize, |product, sweep| {
            product.checked_mul(sweep.choices.len())
        });
        if points.is_none_or(|points| points > self.limits.points) {
            let message = format!("more than {} points", self.limits.points);
            self.refuse(sweeps[0].choices[0].span.clone(), message);
        }
        sweeps
    }

    fn sweep(&mut self, table: Table<'l>) -> Option<Sweep<'l>> {
        let span = table.span();
        let mut table = table.into_inner();
        let name = self.text(&mut table, "name", &span)?;
        let values = table.remove("values");
        let parameter = table.remove("parameter");
        let x = table.remove("x");
        for (key, _) in table {
            let message = format!(
                "unknown field `{}`, expected one of `name`, `values`, `parameter`, `x`",
                key.get_ref()
            );
            self.refuse(key.span(), message);
        }
        let Some(values) = values else {
            self.refuse(span, format!("sweep '{name}' has no values"));
            return None;
        };
        let values_span = values.span();
        let mut choices = match (parameter, values.into_inner()) {
            (None, DeValue::Table(table)) => self.labelled(table),
            (Some(parameter), DeValue::Array(values)) => {
                let paths = self.parameters(parameter)?;
                values
                    .into_iter()
                    .filter_map(|value| self.short(&paths, value))
                    .collect()
            }
            _ => {
                let message = "expected either a table 'values' (label → overrides), or a 'parameter' and a list 'values'";
                self.refuse(values_span, message);
                return None;
            }
        };
        if choices.is_empty() {
            self.refuse(values_span, format!("sweep '{name}' has no values"));
            return None;
        }
        self.check_labels(&choices);
        if let Some(x) = x {
            self.place_on_axis(&mut choices, x);
        }
        Some(Sweep { name, choices })
    }

    fn text(
        &mut self,
        table: &mut DeTable<'l>,
        field: &str,
        span: &Range<usize>,
    ) -> Option<String> {
        let node = table.remove(field);
        match node.as_ref().map(Spanned::get_ref) {
            Some(DeValue::String(text)) if !text.is_empty() => Some(text.to_string()),
            _ => {
                let span = node.map_or_else(|| span.clone(), |node| node.span());
                self.refuse(span, format!("expected `{field}`, a text"));
                None
            }
        }
    }

    fn parameters(&mut self, node: Node<'l>) -> Option<Vec<tree::Key<'l>>> {
        let span = node.span();
        let items = match node.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            other => vec![Spanned::new(span.clone(), other)],
        };
        let mut paths = Vec::new();
        for item in items {
            let place = item.span();
            let DeValue::String(path) = item.into_inner() else {
                self.refuse(
                    span,
                    "expected a path such as \"topology.delay\", or a list of them",
                );
                return None;
            };
            paths.push(Spanned::new(place, path));
        }
        Some(paths)
    }

    fn labelled(&mut self, table: DeTable<'l>) -> Vec<Choice<'l>> {
        let mut choices = Vec::new();
        for (label, value) in table {
            let span = label.span();
            let label: DeString<'l> = label.into_inner();
            let what = format!("values of '{label}'");
            if let Some(changes) = self.table(value, &what) {
                choices.push(Choice {
                    x: leading_number(&label),
                    label: label.into_owned(),
                    overrides: overrides(changes),
                    span,
                });
            }
        }
        // Points are in the order of the file, which a map does not keep.
        choices.sort_by_key(|choice| choice.span.start);
        choices
    }

    /// `"3 ms"` as label and value.
    fn short(&mut self, paths: &[tree::Key<'l>], value: Node<'l>) -> Option<Choice<'l>> {
        let span = value.span();
        let label = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            other => {
                let kind = other.type_str();
                self.refuse(
                    span,
                    format!("a {kind} has no label: write a table 'values'"),
                );
                return None;
            }
        };
        let overrides = paths.iter().map(|path| Override {
            // An error is about the value, not about the parameter that others take too.
            path: Spanned::new(span.clone(), path.get_ref().clone()),
            value: value.clone(),
        });
        Some(Choice {
            x: leading_number(&label),
            label,
            overrides: overrides.collect(),
            span,
        })
    }

    fn check_labels(&mut self, choices: &[Choice<'l>]) {
        for (index, choice) in choices.iter().enumerate() {
            let label = &choice.label;
            let forbidden = label.is_empty()
                || label.trim() != label
                || label.contains(" - ")
                || label.contains(['/', '*'])
                || label.contains(char::is_control);
            if forbidden {
                let message = format!(
                    "label '{}': expected a text without '/', '*', ' - ', line breaks, and spaces at its ends",
                    label.escape_debug()
                );
                self.refuse(choice.span.clone(), message);
            }
            if choices[..index].iter().any(|other| other.label == *label) {
                self.refuse(
                    choice.span.clone(),
                    format!("a second '{label}': labels differ"),
                );
            }
        }
    }

    fn place_on_axis(&mut self, choices: &mut [Choice<'l>], x: Node<'l>) {
        let span = x.span();
        let numbers: Option<Vec<f64>> = x.get_ref().as_array().and_then(|items| {
            let items = items.iter().map(|item| number(item.get_ref()));
            items.collect()
        });
        match numbers {
            Some(numbers) if numbers.len() == choices.len() => {
                for (choice, x) in choices.iter_mut().zip(numbers) {
                    choice.x = Some(x);
                }
            }
            _ => {
                let count = choices.len();
                self.refuse(
                    span,
                    format!("expected one number for each of the {count} values"),
                );
            }
        }
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The number that `3.5 ms` begins with.
fn leading_number(label: &str) -> Option<f64> {
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(label.len());
    label[..end]
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}
