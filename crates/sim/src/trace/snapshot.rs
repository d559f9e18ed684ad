//! A node's counters at one moment, for tables that are written period by period.

use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use namecast_forward::{Counters, FaceCounters, Node};
use namecast_units::Instant;

use super::Sink;
use crate::topology::NodeIndex;

/// A node's counters at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// The moment.
    pub at: Instant,
    /// The node.
    pub node: NodeIndex,
    /// Its name.
    pub name: &'a str,
    /// Its faces, in order of number.
    pub faces: Vec<FaceSnapshot<'a>>,
    /// What the whole node has seen.
    pub counters: Counters,
}

/// A face's counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct FaceSnapshot<'a> {
    /// Its number.
    pub id: u64,
    /// For people: where it leads.
    pub description: &'a str,
    /// What it has seen.
    pub counters: FaceCounters,
}

impl<'a> Snapshot<'a> {
    /// The counters of node `node`, called `name`, as its forwarder and links have them.
    pub fn of(at: Instant, node: NodeIndex, name: &'a str, of: &'a Node) -> Self {
        let faces = of.forwarder.faces().map(|face| FaceSnapshot {
            id: face.id.number(),
            description: &face.config.description,
            counters: of.face_counters(face.id).unwrap_or_default(),
        });
        Self {
            at,
            node,
            name,
            faces: faces.collect(),
            counters: of.counters(),
        }
    }

    /// The moment in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.at.since(Instant::ZERO).as_secs_f64()
    }
}

/// A sink that also wants to see counters, once in each period.
pub trait Sampler: Sink {
    /// Time between two samples of a node.
    fn period(&self) -> Duration;

    /// A node's counters at the end of a period. Each node is shown once a period, in order of index.
    fn sample(&mut self, snapshot: &Snapshot<'_>);
}

impl<S: Sampler + ?Sized> Sampler for Rc<RefCell<S>> {
    fn period(&self) -> Duration {
        self.borrow().period()
    }

    fn sample(&mut self, snapshot: &Snapshot<'_>) {
        self.borrow_mut().sample(snapshot);
    }
}
