//! Turns the compiled page core into a JavaScript module: `namecast-bindgen INPUT.wasm OUTPUT_DIRECTORY`.
//!
//! A program of its own, because compiling the bindings generator takes minutes that `cargo xtask tidy` need not wait for.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;
use wasmparser::{Parser, Payload};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("namecast-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = arguments.as_slice() else {
        bail!("usage: namecast-bindgen INPUT.wasm OUTPUT_DIRECTORY");
    };
    let input = Path::new(input);
    let octets =
        std::fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
    refuse_environment_imports(&octets)
        .with_context(|| format!("{} would not start in a browser", input.display()))?;

    Bindgen::new()
        .input_path(input)
        .web(true)?
        // A quarter of the file, which only names functions in the traces of errors, and in profiles.
        .remove_name_section(std::env::var_os("NAMECAST_NAMES").is_none())
        .remove_producers_section(true)
        .typescript(true)
        .generate(output)
        .context("cannot generate the bindings")
}

/// Fails if the module imports anything from `"env"`: C code or a missing symbol that no browser provides. It would
/// still link, and fail only when the page is opened.
fn refuse_environment_imports(module: &[u8]) -> Result<()> {
    let mut unwanted = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ImportSection(imports) = payload? {
            for import in imports.into_imports() {
                let import = import?;
                if import.module == "env" {
                    unwanted.push(import.name);
                }
            }
        }
    }
    if unwanted.is_empty() {
        return Ok(());
    }
    bail!("it imports from \"env\": {}", unwanted.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with one function type and one imported function.
    fn module(import_from: &str) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        module.extend([1, 4, 1, 0x60, 0, 0]);
        let name = import_from.len() as u8;
        module.extend([2, name + 7, 1, name]);
        module.extend(import_from.as_bytes());
        module.extend([2, b'f', b'n', 0, 0]);
        module
    }

    #[test]
    fn an_import_from_the_environment_is_refused_by_name() {
        let error = refuse_environment_imports(&module("env")).unwrap_err();
        assert_eq!(error.to_string(), "it imports from \"env\": fn");
    }

    #[test]
    fn imports_from_the_bindings_are_fine() {
        refuse_environment_imports(&module("./page_bg.js")).unwrap();
        refuse_environment_imports(b"\0asm\x01\0\0\0").unwrap();
    }

    #[test]
    fn a_damaged_module_is_an_error() {
        assert!(refuse_environment_imports(b"\0asm").is_err());
    }
}
