//! What each kind of model is made of; [`ModelKind`](super::ModelKind) has the table.

use super::process::{Assignment, Contention, Parameters, Silence};

/// Fitted to the Verizon LTE downlink of 2012 that was published with [Sprout].
pub(super) const LTE: Parameters = Parameters {
    slow: (0.66, 6.0),
    fast: (0.3, 0.08),
    bounds: (0.03, 4.0),
    silence: Some(Silence {
        every: 9.0,
        shortest: 0.09,
        longest: 3.0,
        exponent: 1.8,
    }),
    clump: 1.2,
    contention: None,
    assignment: None,
};

/// Fitted to the T-Mobile UMTS downlink published there.
pub(super) const UMTS: Parameters = Parameters {
    slow: (0.95, 8.0),
    fast: (0.4, 0.08),
    bounds: (0.02, 5.0),
    silence: Some(Silence {
        every: 1.5,
        shortest: 0.12,
        longest: 10.0,
        exponent: 0.8,
    }),
    clump: 1.3,
    contention: None,
    assignment: None,
};

/// Between the two. A packet of the radio takes 1.67 ms slots and holds up to some datagrams.
pub(super) const EVDO: Parameters = Parameters {
    slow: (0.8, 6.0),
    fast: (0.4, 0.08),
    bounds: (0.02, 4.0),
    silence: Some(Silence {
        every: 1.6,
        shortest: 0.12,
        longest: 8.0,
        exponent: 1.0,
    }),
    clump: 2.0,
    contention: None,
    assignment: None,
};

/// Aggregation makes clumps; neighbours take airtime for a fraction of a second; retries and scans are stalls.
pub(super) const WIFI: Parameters = Parameters {
    slow: (0.2, 10.0),
    fast: (0.25, 0.05),
    bounds: (0.1, 2.0),
    silence: Some(Silence {
        every: 4.0,
        shortest: 0.02,
        longest: 0.2,
        exponent: 1.2,
    }),
    clump: 8.0,
    contention: Some(Contention {
        every: 2.5,
        lasts: 0.3,
        share: (0.15, 0.6),
    }),
    assignment: None,
};

/// Starlink assigns satellites anew at fixed times, 15 s apart, as measurements from several countries found.
pub(super) const SATELLITE: Parameters = Parameters {
    slow: (0.08, 5.0),
    fast: (0.1, 0.05),
    bounds: (0.2, 2.5),
    silence: None,
    clump: 2.0,
    contention: None,
    assignment: Some(Assignment {
        every: 15.0,
        deviation: 0.35,
        gap: (0.05, 0.1),
    }),
};
