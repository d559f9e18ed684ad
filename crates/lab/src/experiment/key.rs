//! Names of measured values: `utilisation/ARC/8 ms` is a metric and one label of each sweep, in the order of the sweeps.
//!
//! A pattern may have `*` in place of a label. An expression is a pattern, or two with ` - ` or ` / ` (and spaces) between them.

use core::fmt;

/// One metric of one or more points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Name of the metric.
    pub(super) metric: String,
    /// A label for each sweep; none where any will do.
    pub(super) labels: Vec<Option<String>>,
}

/// What a check or reference is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) left: Pattern,
    /// What is done with what; the asterisks of both sides stand for the same labels, in order.
    pub(super) right: Option<(Operator, Pattern)>,
}

/// What an expression does with its two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Minus,
    Over,
}

impl Operator {
    const fn text(self) -> &'static str {
        match self {
            Self::Minus => " - ",
            Self::Over => " / ",
        }
    }
}

impl Pattern {
    /// Reads a pattern, for sweeps that have these labels.
    ///
    /// # Errors
    /// What was expected instead.
    fn parse(text: &str, sweeps: &[(&str, Vec<&str>)]) -> Result<Self, String> {
        let form = || {
            let names = sweeps.iter().map(|(name, _)| format!("/<{name}>"));
            format!("<metric>{}", names.collect::<String>())
        };
        let mut parts: Vec<&str> = text.split('/').collect();
        if parts.len() <= sweeps.len() || parts.iter().any(|part| part.trim() != *part) {
            return Err(format!("'{text}' is not of the form {}", form()));
        }
        let labels = parts.split_off(parts.len() - sweeps.len());
        let metric = parts.join("/");
        if metric.is_empty() || metric.contains(['*', ' ']) {
            return Err(format!(
                "'{text}' names no metric: expected {}, with * and spaces in labels only",
                form()
            ));
        }
        let mut chosen = Vec::with_capacity(labels.len());
        for (label, (name, known)) in labels.into_iter().zip(sweeps) {
            if label != "*" && !known.contains(&label) {
                let known = known.join("', '");
                return Err(format!(
                    "'{text}': sweep '{name}' has no '{label}': expected '{known}' or *"
                ));
            }
            chosen.push((label != "*").then(|| label.to_owned()));
        }
        Ok(Self {
            metric,
            labels: chosen,
        })
    }

    /// The labels that the asterisks stand for, if this is about the point with `labels`.
    pub(super) fn matches<'a>(&self, labels: &'a [String]) -> Option<Vec<&'a str>> {
        let mut stars = Vec::new();
        for (wanted, label) in self.labels.iter().zip(labels) {
            match wanted {
                None => stars.push(label.as_str()),
                Some(wanted) if wanted == label => {}
                Some(_) => return None,
            }
        }
        Some(stars)
    }

    /// The labels with `stars` in place of the asterisks.
    pub(super) fn filled(&self, stars: &[&str]) -> Vec<String> {
        let mut stars = stars.iter();
        let fill = |label: &Option<String>| match label {
            Some(label) => label.clone(),
            None => stars
                .next()
                .map_or_else(String::new, |&star| star.to_owned()),
        };
        self.labels.iter().map(fill).collect()
    }

    fn stars(&self) -> usize {
        self.labels.iter().filter(|label| label.is_none()).count()
    }
}

impl Expression {
    /// Reads an expression, for sweeps that have these labels.
    ///
    /// # Errors
    /// What was expected instead.
    pub(super) fn parse(text: &str, sweeps: &[(&str, Vec<&str>)]) -> Result<Self, String> {
        let found = [Operator::Minus, Operator::Over]
            .into_iter()
            .filter_map(|operator| Some((operator, text.split_once(operator.text())?)))
            .min_by_key(|(_, (left, _))| left.len());
        let Some((operator, (left, right))) = found else {
            let left = Pattern::parse(text, sweeps)?;
            return Ok(Self { left, right: None });
        };
        if right.contains(" - ") || right.contains(" / ") {
            return Err(format!("'{text}': expected two metrics at most"));
        }
        let left = Pattern::parse(left, sweeps)?;
        let right = Pattern::parse(right, sweeps)?;
        if right.stars() != 0 && right.stars() != left.stars() {
            let message = "expected as many * on the right as on the left, or none";
            return Err(format!("'{text}': {message}"));
        }
        Ok(Self {
            left,
            right: Some((operator, right)),
        })
    }

    /// Its name where the asterisks stand for `stars`.
    pub(super) fn name(&self, stars: &[&str]) -> String {
        let left = key(&self.left.metric, &self.left.filled(stars));
        match &self.right {
            None => left,
            Some((operator, right)) => {
                let right = key(&right.metric, &right.filled(stars));
                format!("{left}{}{right}", operator.text())
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stars = vec!["*"; self.left.stars()];
        f.write_str(&self.name(&stars))
    }
}

/// The name of a metric at the point with `labels`.
pub(super) fn key(metric: &str, labels: &[String]) -> String {
    let mut key = metric.to_owned();
    for label in labels {
        key.push('/');
        key.push_str(label);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweeps() -> Vec<(&'static str, Vec<&'static str>)> {
        vec![
            ("controller", vec!["ARC", "AIMD"]),
            ("delay", vec!["3 ms", "8 ms"]),
        ]
    }

    fn labels(first: &str, second: &str) -> Vec<String> {
        vec![first.to_owned(), second.to_owned()]
    }

    #[test]
    fn a_pattern_matches_its_points_and_says_what_asterisks_stand_for() {
        let pattern = Pattern::parse("utilisation/*/8 ms", &sweeps()).unwrap();
        assert_eq!(pattern.metric, "utilisation");
        assert_eq!(pattern.matches(&labels("ARC", "8 ms")), Some(vec!["ARC"]));
        assert_eq!(pattern.matches(&labels("ARC", "3 ms")), None);
        assert_eq!(pattern.filled(&["AIMD"]), labels("AIMD", "8 ms"));
    }

    #[test]
    fn expressions_join_two_patterns_by_their_asterisks() {
        let text = "rate/ARC/* - rate/AIMD/*";
        let expression = Expression::parse(text, &sweeps()).unwrap();
        assert_eq!(expression.to_string(), text);
        assert_eq!(expression.name(&["3 ms"]), "rate/ARC/3 ms - rate/AIMD/3 ms");
        let ratio = Expression::parse("rate/*/8 ms / rate/ARC/8 ms", &sweeps()).unwrap();
        assert_eq!(ratio.right.unwrap().0, Operator::Over);
        assert_eq!(Expression::parse("gap", &[]).unwrap().name(&[]), "gap");
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text| Expression::parse(text, &sweeps()).unwrap_err();
        assert!(refused("rate/ARC").contains("of the form <metric>/<controller>/<delay>"));
        assert!(
            refused("rate/ARK/8 ms")
                .contains("sweep 'controller' has no 'ARK': expected 'ARC', 'AIMD' or *")
        );
        assert!(refused("*/ARC/8 ms").contains("names no metric"));
        assert!(refused("a/*/8 ms - b/*/*").contains("as many *"));
        assert!(refused("a/ARC/8 ms - b/ARC/8 ms - c/ARC/8 ms").contains("two metrics at most"));
        assert!(refused("a/ARC/8 ms -b/ARC/8 ms").contains("names no metric"));
    }
}
