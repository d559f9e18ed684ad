//! Golden vectors: packets of other implementations decode to the stated fields, verify, and encode to the same octets.
//!
//! `tests/vectors/README.md` says where they come from.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod data;
mod interests;
mod lp;
mod malformed;
mod names;
mod support;

/// Vectors in each file. A file that lost one would make its tests pass for less.
const COUNTS: [(&str, usize); 10] = [
    ("names", 37),
    ("interests", 21),
    ("signed-interests", 10),
    ("data", 22),
    ("certificates", 7),
    ("lp", 24),
    ("malformed", 86),
    ("management", 21),
    ("sync-rdr", 6),
    ("trust-schema", 1),
];

#[test]
fn no_vector_is_lost() {
    for (file, count) in COUNTS {
        assert_eq!(support::vectors(file).len(), count, "{file}");
    }
}

/// What is not a packet is walked as a sequence of elements, and written again.
#[test]
fn other_structures_are_sequences_of_elements() {
    let mut walked = 0;
    for file in ["management", "sync-rdr", "trust-schema"] {
        for vector in support::vectors(file) {
            if ["tlv", "lvs"].contains(&vector.text("kind")) {
                support::assert_walks(&vector.wire());
                walked += 1;
            }
        }
    }
    assert_eq!(walked, 10 + 3 + 1);
}
