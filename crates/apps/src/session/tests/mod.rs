mod flow;
mod golden;
mod load;
mod pipe;
mod refusals;
mod renewal;
mod setup;
