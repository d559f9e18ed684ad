mod body;
mod flow;
mod hostile;
mod pipe;
mod setup;

use super::{exchange, message};
