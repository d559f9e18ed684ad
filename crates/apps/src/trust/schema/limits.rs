//! How large a schema may be, and how long a check may take.

/// How large a schema may be, and how long a check may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct Limits {
    /// Longest text or model, in octets.
    #[default(1 << 20)]
    pub max_octets: usize,
    /// Number of definitions in a text.
    #[default(4_096)]
    pub max_rules: usize,
    /// Components of a name, including the rules that it refers to. The compiler recurses as deep.
    #[default(128)]
    pub max_components: usize,
    /// Values that one pattern may be compared with at one place.
    #[default(1_024)]
    pub max_options: usize,
    /// Components and options of all names together, each rule written out for each way to read the rules that it refers to.
    #[default(1 << 18)]
    pub max_expansion: usize,
    /// Nodes of the tree.
    #[default(1 << 16)]
    pub max_nodes: usize,
    /// Steps of one check: edges tried and values compared, for packet and key together.
    #[default(100_000)]
    pub max_steps: u64,
}
