//! Who may publish what: rules that say which key may sign which name.

pub mod schema;
