//! Whether a model that was decoded is a tree, and its signers end at an anchor.

use super::compiler::order;
use super::error::{ModelError, Shape};
use super::limits::Limits;
use super::model::{Model, NodeId};

/// Checks `model`: edges and signers lead to nodes, each node has one edge from its parent, names are not too long, and no signers sign
/// each other.
pub(super) fn check(model: &Model, limits: &Limits) -> Result<(), ModelError> {
    let count = model.nodes.len();
    let error = |node: NodeId, shape| ModelError::Node {
        node: node as u64,
        rules: model.rules_of(node),
        shape,
    };
    let Some(start) = model.nodes.get(model.start) else {
        return Err(error(model.start, Shape::Missing(model.start as u64)));
    };
    if start.parent.is_some() {
        return Err(error(model.start, Shape::StartHasParent));
    }
    let mut reached = vec![false; count];
    for (id, node) in model.nodes.iter().enumerate() {
        let values = node.values.iter().map(|edge| edge.to);
        for to in values.chain(node.patterns.iter().map(|edge| edge.to)) {
            let next = model.nodes.get(to);
            let next = next.ok_or_else(|| error(id, Shape::Missing(to as u64)))?;
            if next.parent != Some(id as u64) {
                return Err(error(id, Shape::Parent(to as u64)));
            }
            if core::mem::replace(&mut reached[to], true) {
                return Err(error(to, Shape::TwoEdges));
            }
        }
        if let Some(&missing) = node.signers.iter().find(|&&signer| signer >= count) {
            return Err(error(id, Shape::Missing(missing as u64)));
        }
    }
    if let Some(deep) = deeper_than(model, limits.max_components) {
        return Err(error(deep, Shape::TooDeep(limits.max_components)));
    }
    let edges: Vec<_> = model
        .nodes
        .iter()
        .map(|node| node.signers.clone())
        .collect();
    let order = order::topological(&edges);
    order
        .map(drop)
        .map_err(|circle| error(circle[0], Shape::SigningCircle))
}

/// Finds a node that more than `limit` components lead to.
fn deeper_than(model: &Model, limit: usize) -> Option<NodeId> {
    let mut level = vec![model.start];
    for _ in 0..=limit {
        let nodes = level.iter().map(|&id| &model.nodes[id]);
        let next = nodes.flat_map(|node| {
            let values = node.values.iter().map(|edge| edge.to);
            values.chain(node.patterns.iter().map(|edge| edge.to))
        });
        level = next.collect();
    }
    level.first().copied()
}
