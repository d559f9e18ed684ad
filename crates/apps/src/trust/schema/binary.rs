//! Compiled schemas as octets: Light VerSec's binary format, version 0x00011000.

use core::ops::Range;

use bytes::Bytes;
use namecast_packet::tlv::{Element, Reader, Writer, is_critical};
use namecast_packet::{DecodeError, Problem};

use super::VERSION as KNOWN_VERSION;
use super::error::{ModelError, Shape};
use super::limits::Limits;
use super::model::{
    Argument, Choice, Constraint, Function, Model, Node, NodeId, PatternEdge, Symbol, ValueEdge,
};

const COMPONENT_VALUE: u32 = 0x21;
const PATTERN_TAG: u32 = 0x23;
const NODE_ID: u32 = 0x25;
const FUNCTION_ID: u32 = 0x27;
const IDENTIFIER: u32 = 0x29;
const FUNCTION_CALL: u32 = 0x31;
const ARGUMENTS: u32 = 0x33;
const OPTION: u32 = 0x41;
const CONSTRAINT: u32 = 0x43;
const VALUE_EDGE: u32 = 0x51;
const PATTERN_EDGE: u32 = 0x53;
const KEY_NODE_ID: u32 = 0x55;
const PARENT_ID: u32 = 0x57;
const MODEL_VERSION: u32 = 0x61;
const NODE: u32 = 0x63;
const TAG_SYMBOL: u32 = 0x67;
const NAMED_PATTERNS: u32 = 0x69;

/// Returns `model` as octets.
pub(super) fn encode(model: &Model) -> Bytes {
    let mut writer = Writer::default();
    writer.number(MODEL_VERSION, KNOWN_VERSION);
    writer.number(NODE_ID, model.start as u64);
    writer.number(NAMED_PATTERNS, model.named_patterns);
    for (id, node) in model.nodes.iter().enumerate() {
        writer.nested(NODE, |writer| encode_node(writer, id, node));
    }
    for symbol in &model.symbols {
        writer.nested(TAG_SYMBOL, |writer| {
            writer.number(PATTERN_TAG, symbol.tag);
            writer.element(IDENTIFIER, symbol.name.as_bytes());
        });
    }
    writer.finish()
}

fn encode_node(writer: &mut Writer, id: NodeId, node: &Node) {
    writer.number(NODE_ID, id as u64);
    if let Some(parent) = node.parent {
        writer.number(PARENT_ID, parent);
    }
    for rule in &node.rules {
        writer.element(IDENTIFIER, rule.as_bytes());
    }
    for edge in &node.values {
        writer.nested(VALUE_EDGE, |writer| {
            writer.number(NODE_ID, edge.to as u64);
            writer.element(COMPONENT_VALUE, &edge.value);
        });
    }
    for edge in &node.patterns {
        writer.nested(PATTERN_EDGE, |writer| {
            writer.number(NODE_ID, edge.to as u64);
            writer.number(PATTERN_TAG, edge.tag);
            for constraint in &edge.constraints {
                writer.nested(CONSTRAINT, |writer| encode_constraint(writer, constraint));
            }
        });
    }
    for &signer in &node.signers {
        writer.number(KEY_NODE_ID, signer as u64);
    }
}

fn encode_constraint(writer: &mut Writer, constraint: &Constraint) {
    for choice in constraint {
        writer.nested(OPTION, |writer| match choice {
            Choice::Value(value) => {
                writer.element(COMPONENT_VALUE, value);
            }
            Choice::Tag(tag) => {
                writer.number(PATTERN_TAG, *tag);
            }
            Choice::Call(function, arguments) => {
                writer.nested(FUNCTION_CALL, |writer| {
                    writer.element(FUNCTION_ID, function.name().as_bytes());
                    for argument in arguments {
                        writer.nested(ARGUMENTS, |writer| match argument {
                            Argument::Value(value) => {
                                writer.element(COMPONENT_VALUE, value);
                            }
                            Argument::Tag(tag) => {
                                writer.number(PATTERN_TAG, *tag);
                            }
                        });
                    }
                });
            }
        });
    }
}

/// Reads a model that fills `octets` whole. Whether its nodes are a tree is checked afterwards.
pub(super) fn decode(octets: &Bytes, limits: &Limits) -> Result<Model, ModelError> {
    if octets.len() > limits.max_octets {
        return Err(ModelError::TooMany {
            what: "too many octets",
            offset: limits.max_octets,
            limit: limits.max_octets,
        });
    }
    Decoder { octets, limits }.model()
}

struct Decoder<'a> {
    octets: &'a Bytes,
    limits: &'a Limits,
}

type Decoded<T> = Result<T, ModelError>;

/// Types of a structure in their order, and whether each may come more than once.
type Order = [(u32, bool)];

impl Decoder<'_> {
    fn model(&self) -> Decoded<Model> {
        const ORDER: [(u32, bool); 5] = [
            (MODEL_VERSION, false),
            (NODE_ID, false),
            (NAMED_PATTERNS, false),
            (NODE, true),
            (TAG_SYMBOL, true),
        ];
        let (mut version, mut start, mut named) = (None, None, None);
        let (mut nodes, mut symbols) = (Vec::new(), Vec::new());
        self.fields(0..self.octets.len(), "LvsModel", &ORDER, |field| {
            match field.element_type {
                MODEL_VERSION => version = Some(self.version(field)?),
                NODE_ID => start = Some(self.node_id("start NodeId", field)?),
                NAMED_PATTERNS => {
                    named = Some(field.number("NamedPatternNum", self.octets)?);
                }
                NODE => {
                    self.bound("too many nodes", nodes.len(), self.limits.max_nodes, field)?;
                    nodes.push(self.node(field, nodes.len())?);
                }
                _ => symbols.push(self.symbol(field)?),
            }
            Ok(())
        })?;
        let missing = |field| DecodeError::new(field, self.octets.len(), Problem::Missing);
        version.ok_or(missing("Version"))?;
        let model = Model {
            start: start.ok_or(missing("start NodeId"))?,
            named_patterns: named.ok_or(missing("NamedPatternNum"))?,
            nodes,
            symbols,
        };
        Ok(model)
    }

    fn version(&self, field: &Element) -> Decoded<()> {
        match field.number("Version", self.octets)? {
            KNOWN_VERSION => Ok(()),
            other => Err(ModelError::Version(other)),
        }
    }

    fn node(&self, element: &Element, place: NodeId) -> Decoded<Node> {
        const ORDER: [(u32, bool); 6] = [
            (NODE_ID, false),
            (PARENT_ID, false),
            (IDENTIFIER, true),
            (VALUE_EDGE, true),
            (PATTERN_EDGE, true),
            (KEY_NODE_ID, true),
        ];
        let mut id = None;
        let mut node = Node::default();
        self.fields(element.value.clone(), "Node", &ORDER, |field| {
            match field.element_type {
                NODE_ID => id = Some(field.number("NodeId", self.octets)?),
                PARENT_ID => node.parent = Some(field.number("ParentId", self.octets)?),
                IDENTIFIER => node.rules.push(self.text("Identifier", field)?),
                VALUE_EDGE => node.values.push(self.value_edge(field)?),
                PATTERN_EDGE => node.patterns.push(self.pattern_edge(field)?),
                _ => node.signers.push(self.node_id("KeyNodeId", field)?),
            }
            Ok(())
        })?;
        let id = id.ok_or_else(|| element.error("NodeId", Problem::Missing))?;
        let values = node.values.iter().map(|edge| &edge.value);
        node.values_sorted = values.is_sorted_by(|one, next| one < next);
        if id == place as u64 {
            return Ok(node);
        }
        Err(ModelError::Node {
            node: place as u64,
            rules: None,
            shape: Shape::Number,
        })
    }

    fn value_edge(&self, element: &Element) -> Decoded<ValueEdge> {
        const ORDER: [(u32, bool); 2] = [(NODE_ID, false), (COMPONENT_VALUE, false)];
        let (mut to, mut value) = (None, None);
        self.fields(element.value.clone(), "ValueEdge", &ORDER, |field| {
            match field.element_type {
                NODE_ID => to = Some(self.node_id("NodeId", field)?),
                _ => value = Some(self.component(field)?),
            }
            Ok(())
        })?;
        let missing = |field| element.error(field, Problem::Missing);
        Ok(ValueEdge {
            to: to.ok_or(missing("NodeId"))?,
            value: value.ok_or(missing("ComponentValue"))?,
        })
    }

    fn pattern_edge(&self, element: &Element) -> Decoded<PatternEdge> {
        const ORDER: [(u32, bool); 3] =
            [(NODE_ID, false), (PATTERN_TAG, false), (CONSTRAINT, true)];
        let (mut to, mut tag) = (None, None);
        let mut constraints = Vec::new();
        self.fields(element.value.clone(), "PatternEdge", &ORDER, |field| {
            match field.element_type {
                NODE_ID => to = Some(self.node_id("NodeId", field)?),
                PATTERN_TAG => tag = Some(field.number("PatternTag", self.octets)?),
                _ => constraints.push(self.constraint(field)?),
            }
            Ok(())
        })?;
        let missing = |field| element.error(field, Problem::Missing);
        Ok(PatternEdge {
            to: to.ok_or(missing("NodeId"))?,
            tag: tag.ok_or(missing("PatternTag"))?,
            constraints,
        })
    }

    fn constraint(&self, element: &Element) -> Decoded<Constraint> {
        let mut constraint = Vec::new();
        self.fields(
            element.value.clone(),
            "Constraint",
            &[(OPTION, true)],
            |field| {
                let limit = self.limits.max_options;
                self.bound("too many options", constraint.len(), limit, field)?;
                constraint.push(self.option(field)?);
                Ok(())
            },
        )?;
        Ok(constraint)
    }

    fn option(&self, element: &Element) -> Decoded<Choice> {
        const ORDER: [(u32, bool); 3] = [
            (COMPONENT_VALUE, false),
            (PATTERN_TAG, false),
            (FUNCTION_CALL, false),
        ];
        let mut choice = None;
        self.fields(element.value.clone(), "Option", &ORDER, |field| {
            let read = match field.element_type {
                COMPONENT_VALUE => Choice::Value(self.component(field)?),
                PATTERN_TAG => Choice::Tag(field.number("PatternTag", self.octets)?),
                _ => self.call(field)?,
            };
            match choice.replace(read) {
                None => Ok(()),
                Some(_) => Err(element.error("Option", Problem::Malformed).into()),
            }
        })?;
        choice.ok_or_else(|| element.error("Option", Problem::Missing).into())
    }

    fn call(&self, element: &Element) -> Decoded<Choice> {
        const ORDER: [(u32, bool); 2] = [(FUNCTION_ID, false), (ARGUMENTS, true)];
        let mut function = None;
        let mut arguments = Vec::new();
        self.fields(element.value.clone(), "UserFnCall", &ORDER, |field| {
            if field.element_type == FUNCTION_ID {
                let name = self.text("FnId", field)?;
                let known = Function::named(&name);
                function = Some(known.ok_or(ModelError::UnknownFunction {
                    name: name.into(),
                    offset: element.start,
                })?);
                return Ok(());
            }
            let limit = self.limits.max_options;
            self.bound("too many arguments", arguments.len(), limit, field)?;
            arguments.push(self.argument(field)?);
            Ok(())
        })?;
        let function = function.ok_or_else(|| element.error("FnId", Problem::Missing))?;
        Ok(Choice::Call(function, arguments))
    }

    fn argument(&self, element: &Element) -> Decoded<Argument> {
        const ORDER: [(u32, bool); 2] = [(COMPONENT_VALUE, false), (PATTERN_TAG, false)];
        let mut argument = None;
        self.fields(element.value.clone(), "Args", &ORDER, |field| {
            let read = match field.element_type {
                COMPONENT_VALUE => Argument::Value(self.component(field)?),
                _ => Argument::Tag(field.number("PatternTag", self.octets)?),
            };
            match argument.replace(read) {
                None => Ok(()),
                Some(_) => Err(element.error("Args", Problem::Malformed).into()),
            }
        })?;
        argument.ok_or_else(|| element.error("Args", Problem::Missing).into())
    }

    fn symbol(&self, element: &Element) -> Decoded<Symbol> {
        const ORDER: [(u32, bool); 2] = [(PATTERN_TAG, false), (IDENTIFIER, false)];
        let (mut tag, mut name) = (None, None);
        self.fields(element.value.clone(), "TagSymbol", &ORDER, |field| {
            match field.element_type {
                PATTERN_TAG => tag = Some(field.number("PatternTag", self.octets)?),
                _ => name = Some(self.text("Identifier", field)?),
            }
            Ok(())
        })?;
        let missing = |field| element.error(field, Problem::Missing);
        Ok(Symbol {
            tag: tag.ok_or(missing("PatternTag"))?,
            name: name.ok_or(missing("Identifier"))?,
        })
    }

    /// Number of a node. Whether that exists is checked later.
    fn node_id(&self, field: &'static str, element: &Element) -> Decoded<NodeId> {
        let number = element.number(field, self.octets)?;
        let id = usize::try_from(number).ok();
        let id = id.filter(|&id| id < self.limits.max_nodes);
        id.ok_or_else(|| element.error(field, Problem::ValueOutOfRange).into())
    }

    /// A component is an element, and not empty. That it is a whole one need not be checked: it equals a component or it does not.
    fn component(&self, element: &Element) -> Decoded<Bytes> {
        match element.value.is_empty() {
            true => Err(element
                .error("ComponentValue", Problem::BadLength(0))
                .into()),
            false => Ok(self.octets.slice(element.value.clone())),
        }
    }

    fn text(&self, field: &'static str, element: &Element) -> Decoded<Box<str>> {
        let text = core::str::from_utf8(&self.octets[element.value.clone()]);
        let text = text.map_err(|_| element.error(field, Problem::Malformed))?;
        Ok(text.into())
    }

    fn bound(&self, what: &'static str, count: usize, limit: usize, at: &Element) -> Decoded<()> {
        let offset = at.start;
        match count < limit {
            true => Ok(()),
            false => Err(ModelError::TooMany {
                what,
                offset,
                limit,
            }),
        }
    }

    /// Reads the fields of `structure` in `range`, in `order`. Critical ones that are unknown or out of place are refused.
    fn fields(
        &self,
        range: Range<usize>,
        structure: &'static str,
        order: &Order,
        mut read: impl FnMut(&Element) -> Decoded<()>,
    ) -> Decoded<()> {
        let mut reader = Reader::within(self.octets, range);
        let mut passed = 0;
        while let Some(element) = reader.element(structure)? {
            let rest = &order[passed..];
            let known = rest
                .iter()
                .position(|(kind, _)| *kind == element.element_type);
            if let Some(index) = known {
                passed += index + usize::from(!rest[index].1);
                read(&element)?;
            } else if is_critical(element.element_type) {
                let problem = Problem::Critical(element.element_type);
                return Err(element.error(structure, problem).into());
            }
        }
        Ok(())
    }
}
