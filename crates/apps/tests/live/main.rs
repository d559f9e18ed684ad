//! Publisher and watchers in virtual time.

mod joining;
mod playing;
mod trouble;
mod world;
