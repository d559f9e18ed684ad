mod flow;
mod pipe;
mod setup;
