mod flow;
mod load;
mod pipe;
mod refusals;
mod setup;
