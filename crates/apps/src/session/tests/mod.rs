mod body;
mod flow;
mod golden;
mod hostile;
mod load;
mod pipe;
mod refusals;
mod renewal;
mod setup;

use super::{exchange, message};
