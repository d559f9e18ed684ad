mod flow;
mod pipe;
mod refusals;
mod setup;
