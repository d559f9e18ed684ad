//! TOML as a tree in which every value knows where it was written.
//!
//! Overrides carry the place where they were written into the tree they change, so an error that reading a scenario finds later
//! leads to the line of the override.

use core::fmt;
use core::ops::Range;
use core::str::FromStr;

use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer};

use namecast_command::source::{Problem, Sources};

/// A table and its place.
pub(super) type Table<'l> = Spanned<DeTable<'l>>;
/// A value and its place.
pub(super) type Node<'l> = Spanned<DeValue<'l>>;
/// A key and its place.
pub(super) type Key<'l> = Spanned<DeString<'l>>;

/// Reads a file, whose spans begin at the offset that `sources` gives it.
///
/// # Errors
/// It is not TOML.
pub(super) fn parse<'l>(
    sources: &mut Sources<'l>,
    path: &'l str,
    text: &'l str,
) -> Result<Table<'l>, Problem> {
    let start = sources.add(path, text);
    match DeTable::parse(text) {
        Ok(table) => {
            let span = moved(table.span(), start);
            Ok(Spanned::new(span, move_table(table.into_inner(), start)))
        }
        Err(error) => {
            let span = moved(error.span().unwrap_or(0..0), start);
            Err(sources.problem(span, error.message()))
        }
    }
}

fn moved(span: Range<usize>, start: usize) -> Range<usize> {
    span.start + start..span.end + start
}

fn move_table(table: DeTable<'_>, start: usize) -> DeTable<'_> {
    let entries = table.into_iter().map(|(key, value)| {
        let key = Spanned::new(moved(key.span(), start), key.into_inner());
        (key, move_node(value, start))
    });
    entries.collect()
}

fn move_node(node: Node<'_>, start: usize) -> Node<'_> {
    let span = moved(node.span(), start);
    let value = match node.into_inner() {
        DeValue::Table(table) => DeValue::Table(move_table(table, start)),
        DeValue::Array(array) => {
            let items = array.into_iter().map(|item| move_node(item, start));
            DeValue::Array(items.collect())
        }
        other => other,
    };
    Spanned::new(span, value)
}

/// Reads a value of type `T`.
///
/// # Errors
/// The table says something that `T` does not take: what, and where if that is known.
pub(super) fn read<T: DeserializeOwned>(
    table: Table<'_>,
) -> Result<T, (Option<Range<usize>>, String)> {
    T::deserialize(Deserializer::from(table)).map_err(|error| {
        let message = error.message().trim_end().to_owned();
        (error.span(), message)
    })
}

/// Where the value at a path such as `flows.0.rate` was written, or the innermost table or list on the way to it.
pub(super) fn find(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, node) = table.get_key_value(first)?;
    Some(find_below(node, rest).unwrap_or_else(|| key.span()))
}

fn find_below(node: &Node<'_>, path: &str) -> Option<Range<usize>> {
    if path.is_empty() {
        return None;
    }
    match node.get_ref() {
        DeValue::Table(table) => find(table, path),
        DeValue::Array(items) => {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let item = items.get(first.parse::<usize>().ok()?)?;
            Some(find_below(item, rest).unwrap_or_else(|| item.span()))
        }
        _ => None,
    }
}

/// The innermost entry without which nobody `objects` as before.
pub(super) fn culprit<'l>(
    tree: &Table<'l>,
    objects: &dyn Fn(&Table<'l>) -> bool,
) -> Option<Range<usize>> {
    let mut path: Vec<Step> = Vec::new();
    let mut place = None;
    while let Some((step, span)) = steps(tree, &path)
        .into_iter()
        // Without the field that tells kinds apart, there is always another objection.
        .filter(|(step, _)| !matches!(step, Step::Key(key) if key == "kind"))
        .find(|(step, _)| {
            let mut without = tree.clone();
            let last = step.clone();
            remove(&mut without, &path, &last) && !objects(&without)
        })
    {
        path.push(step);
        place = Some(span);
    }
    place
}

/// A step into a table or a list.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Item(usize),
}

fn below<'a, 'l>(table: &'a DeTable<'l>, path: &[Step]) -> Option<&'a Node<'l>> {
    let (first, rest) = path.split_first()?;
    let Step::Key(key) = first else {
        return None;
    };
    let mut node = table.get(key.as_str())?;
    for step in rest {
        node = match (step, node.get_ref()) {
            (Step::Key(key), DeValue::Table(table)) => table.get(key.as_str())?,
            (Step::Item(index), DeValue::Array(items)) => items.get(*index)?,
            _ => return None,
        };
    }
    Some(node)
}

/// What is directly in the table or list at `path`, and where it was written.
fn steps(tree: &Table<'_>, path: &[Step]) -> Vec<(Step, Range<usize>)> {
    let keys = |table: &DeTable<'_>| {
        let keys = table.keys();
        keys.map(|key| (Step::Key(key.get_ref().to_string()), key.span()))
            .collect()
    };
    if path.is_empty() {
        return keys(tree.get_ref());
    }
    match below(tree.get_ref(), path).map(Spanned::get_ref) {
        Some(DeValue::Table(table)) => keys(table),
        Some(DeValue::Array(items)) => {
            let items = items.iter().enumerate();
            items
                .map(|(index, item)| (Step::Item(index), item.span()))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn remove(tree: &mut Table<'_>, path: &[Step], last: &Step) -> bool {
    fn from_table(table: &mut DeTable<'_>, path: &[Step], last: &Step) -> bool {
        match (path.split_first(), last) {
            (None, Step::Key(key)) => table.remove(key.as_str()).is_some(),
            (Some((Step::Key(key), rest)), _) => {
                let node = table.get_mut(key.as_str());
                node.is_some_and(|node| from_node(node, rest, last))
            }
            _ => false,
        }
    }
    fn from_node(node: &mut Node<'_>, path: &[Step], last: &Step) -> bool {
        match node.get_mut() {
            DeValue::Table(table) => from_table(table, path, last),
            DeValue::Array(items) => match (path.split_first(), last) {
                (None, Step::Item(index)) => {
                    let kept = items.iter().enumerate().filter(|(at, _)| at != index);
                    *items = kept.map(|(_, item)| item.clone()).collect();
                    true
                }
                (Some((Step::Item(index), rest)), _) => {
                    let item = items.get_mut(*index);
                    item.is_some_and(|item| from_node(item, rest, last))
                }
                _ => false,
            },
            _ => false,
        }
    }
    from_table(tree.get_mut(), path, last)
}

/// Puts `over` on top of `under`: tables are joined key by key, anything else is replaced.
pub(super) fn merge<'l>(under: &mut DeTable<'l>, over: DeTable<'l>) {
    for (key, value) in over {
        if let Some(place) = under.get_mut(&key)
            && let DeValue::Table(below) = place.get_mut()
            && let DeValue::Table(_) = value.get_ref()
        {
            if let DeValue::Table(above) = value.into_inner() {
                merge(below, above);
            }
            continue;
        }
        // Removed first, for the new key's place to be kept too.
        under.remove(&key);
        under.insert(key, value);
    }
}

/// One override: where, and what. In `path`, dots lead into tables, numbers into arrays, and `*` into all items of one.
#[derive(Clone, Debug)]
pub(super) struct Override<'l> {
    pub(super) path: Key<'l>,
    pub(super) value: Node<'l>,
}

impl<'l> Override<'l> {
    /// Changes `tree`.
    ///
    /// # Errors
    /// What the path meets instead of what it expects.
    pub(super) fn apply(&self, tree: &mut Table<'l>) -> Result<(), String> {
        let path: Vec<&str> = self.path.get_ref().split('.').collect();
        if path.iter().any(|step| step.is_empty()) {
            let message = "has an empty step: write names with one dot between them";
            return Err(format!("path '{}' {message}", self.path.get_ref()));
        }
        self.set_in_table(tree.get_mut(), &path)
    }

    fn set_in_table(&self, table: &mut DeTable<'l>, path: &[&str]) -> Result<(), String> {
        let Some((name, rest)) = path.split_first() else {
            return Ok(());
        };
        let key = Spanned::new(self.path.span(), DeString::Owned((*name).to_owned()));
        if rest.is_empty() {
            table.remove(&key);
            table.insert(key, self.value.clone());
            return Ok(());
        }
        let node = table
            .entry(key)
            .or_insert_with(|| Spanned::new(self.path.span(), DeValue::Table(DeTable::new())));
        self.set_below(node, name, rest)
    }

    fn set_below(&self, node: &mut Node<'l>, name: &str, rest: &[&str]) -> Result<(), String> {
        let path = self.path.get_ref();
        match node.get_mut() {
            DeValue::Table(table) => self.set_in_table(table, rest),
            DeValue::Array(items) => {
                let (step, rest) = rest.split_first().expect("callers have a rest");
                let count = items.len();
                let chosen = match step.parse::<usize>() {
                    Ok(index) if index < count => index..index + 1,
                    _ if *step == "*" => 0..count,
                    _ => {
                        return Err(format!(
                            "path '{path}': '{name}' is a list of {count}: expected a number below {count} or * after it, found '{step}'"
                        ));
                    }
                };
                items
                    .iter_mut()
                    .take(chosen.end)
                    .skip(chosen.start)
                    .try_for_each(|item| {
                        if rest.is_empty() {
                            *item = self.value.clone();
                            Ok(())
                        } else {
                            self.set_below(item, step, rest)
                        }
                    })
            }
            other => Err(format!(
                "path '{path}': '{name}' is a {}: expected a table or a list to lead into",
                other.type_str()
            )),
        }
    }
}

/// A factor for quantities, such as `topology.bottleneck.rate=0.8`. In the path, `*` leads into all items of a list or table, and
/// `**` through any number of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    path: String,
    factor: f64,
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, factor) = text.split_once('=').unwrap_or((text, ""));
        let factor = factor.parse::<f64>().ok();
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        let is_path = !path.is_empty() && path.split('.').all(|step| !step.is_empty());
        match factor.filter(|_| is_path) {
            Some(factor) => Ok(Self {
                path: path.to_owned(),
                factor,
            }),
            None => Err(format!(
                "'{text}' scales nothing: write the path of a quantity and a factor, as in topology.bottleneck.rate=0.8"
            )),
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.factor)
    }
}

impl Scale {
    /// Changes `tree`.
    ///
    /// # Errors
    /// The path leads to no quantity.
    pub(super) fn apply(&self, tree: &mut Table<'_>) -> Result<(), String> {
        let path: Vec<&str> = self.path.split('.').collect();
        match self.scale_table(tree.get_mut(), &path) {
            0 => Err(format!(
                "--scale {self} leads to no quantity such as '10 Mbit/s': write the path of one, or '**' for any tables and lists on the way"
            )),
            _ => Ok(()),
        }
    }

    fn scale_table(&self, table: &mut DeTable<'_>, path: &[&str]) -> usize {
        let entries = table.iter_mut();
        let scaled = entries.map(|(key, node)| self.scale_entry(key.get_ref(), node, path));
        scaled.sum()
    }

    /// How many quantities there were at `path`, of which this entry is named by the first step.
    fn scale_entry(&self, name: &str, node: &mut Node<'_>, path: &[&str]) -> usize {
        match path.split_first() {
            Some((&"**", rest)) => {
                self.scale_entry(name, node, rest) + self.scale_below(node, path)
            }
            Some((step, [])) if *step == name || *step == "*" => self.scale_value(node),
            Some((step, rest)) if *step == name || *step == "*" => self.scale_below(node, rest),
            _ => 0,
        }
    }

    fn scale_below(&self, node: &mut Node<'_>, path: &[&str]) -> usize {
        match node.get_mut() {
            DeValue::Table(table) => self.scale_table(table, path),
            DeValue::Array(items) => {
                let items = items.iter_mut().enumerate();
                let scaled = items.map(|(at, item)| self.scale_entry(&at.to_string(), item, path));
                scaled.sum()
            }
            _ => 0,
        }
    }

    fn scale_value(&self, node: &mut Node<'_>) -> usize {
        let DeValue::String(text) = node.get_mut() else {
            return 0;
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let Ok(number) = number.parse::<f64>() else {
            return 0;
        };
        // Twelve digits: 3 · 1.2 are 3.6 and not 3.5999999999999996.
        let scaled = (number * self.factor * 1e12).round() / 1e12;
        *text = format!("{scaled}{unit}").into();
        1
    }
}

/// The same content is the same JSON, whatever order and notation it was written in.
pub(super) fn canonical(table: &DeTable<'_>) -> Value {
    let entries = table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), canonical_value(value.get_ref())));
    Value::Object(entries.collect())
}

fn canonical_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::Table(table) => canonical(table),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| canonical_value(item.get_ref()));
            Value::Array(items.collect())
        }
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            parsed.map_or_else(|_| Value::String(number.to_string()), Value::from)
        }
        DeValue::Float(number) => Value::String(match number.as_str().parse::<f64>() {
            Ok(parsed) => format!("float {parsed:?}"),
            Err(_) => number.to_string(),
        }),
        DeValue::Datetime(time) => Value::String(time.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &'static str) -> Table<'static> {
        parse(&mut Sources::default(), "a.toml", text).unwrap()
    }

    fn overridden(text: &'static str, change: &'static str) -> Result<Value, String> {
        let mut target = tree(text);
        for (path, value) in tree(change).into_inner() {
            Override { path, value }.apply(&mut target)?;
        }
        Ok(canonical(target.get_ref()))
    }

    #[test]
    fn overrides_go_through_tables_and_lists() {
        let text = "a = { b = 1 }\nflows = [{ rate = 1 }, { rate = 2 }]";
        let changed = overridden(text, "\"a.b\" = 5\n\"c.d\" = true\n\"flows.1.rate\" = 'x'");
        let expected = serde_json::json!({
            "a": { "b": 5 }, "c": { "d": true }, "flows": [{ "rate": 1 }, { "rate": "x" }],
        });
        assert_eq!(changed.unwrap(), expected);
        let all = overridden(text, "\"flows.*.rate\" = 7").unwrap();
        assert_eq!(
            all["flows"],
            serde_json::json!([{ "rate": 7 }, { "rate": 7 }])
        );
        let whole = overridden(text, "\"flows.0\" = 3").unwrap();
        assert_eq!(whole["flows"], serde_json::json!([3, { "rate": 2 }]));
    }

    #[test]
    fn overrides_say_what_their_path_meets() {
        let text = "a = 1\nflows = [{ rate = 1 }]";
        let refused = |change| overridden(text, change).unwrap_err();
        assert!(refused("\"a.b\" = 1").contains("'a' is a integer: expected a table"));
        assert!(refused("\"flows.1.rate\" = 1").contains("a list of 1: expected a number below 1"));
        assert!(refused("\"flows.rate\" = 1").contains("found 'rate'"));
        assert!(refused("\"a..b\" = 1").contains("empty step"));
    }

    #[test]
    fn quantities_are_scaled_wherever_the_path_leads() {
        let text = "a = { rate = '10 Mbit/s', b = [{ rate = '3 kbit/s' }, { rate = 30, x = 'y' }] }\nrate = '1ms'";
        let scaled = |scale: &str| {
            let mut tree = tree(text);
            let scale: Scale = scale.parse()?;
            scale
                .apply(&mut tree)
                .map(|()| canonical(tree.get_ref()).to_string())
        };
        let all = scaled("**.rate=1.2").unwrap();
        for part in ["12 Mbit/s", "3.6 kbit/s", "30", "1.2ms"] {
            assert!(all.contains(part), "{all}");
        }
        let one = scaled("a.rate=0.5").unwrap();
        assert!(
            one.contains("5 Mbit/s") && one.contains("3 kbit/s") && one.contains("1ms"),
            "{one}"
        );
        assert!(scaled("a.b.*.rate=2").unwrap().contains("6 kbit/s"));
        assert!(scaled("a.b.0.rate=2").unwrap().contains("6 kbit/s"));
        for bad in [
            "a.b.1.rate=2",
            "a.b.1.x=2",
            "c=2",
            "a.rate=0",
            "a.rate",
            "=2",
            "a..b=2",
        ] {
            assert!(scaled(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn merging_joins_tables_and_replaces_the_rest() {
        let mut under = tree("x = 1\nt = { a = 1, b = [1, 2] }").into_inner();
        merge(&mut under, tree("y = 2\nt = { b = [3] }").into_inner());
        let expected = serde_json::json!({ "x": 1, "y": 2, "t": { "a": 1, "b": [3] } });
        assert_eq!(canonical(&under), expected);
    }

    #[test]
    fn the_canonical_form_ignores_notation_but_not_kind() {
        let form = |text| canonical(tree(text).get_ref()).to_string();
        assert_eq!(
            form("b = 0x10\na = 1.50"),
            form("a = 1.5\n[ignored]\n").replace("\"ignored\":{}", "\"b\":16")
        );
        assert_ne!(form("a = 1"), form("a = 1.0"));
        assert_ne!(form("a = 1"), form("a = '1'"));
    }
}
