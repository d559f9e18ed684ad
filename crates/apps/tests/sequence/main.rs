//! Fetchers and a server on one narrow link, in virtual time: what each controller makes of it.

mod controllers;
mod path;
