mod flow;
mod golden;
mod load;
mod pipe;
mod refusals;
mod setup;
