//! Reports long files, long functions and long argument lists.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::source::SourceFile;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
const ARGUMENTS: usize = 5;

/// Reports what is longer than `CONTRIBUTING.md` asks for. Tests count for the length of functions only.
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let Ok(parsed) = syn::parse_file(&file.text) else {
        return vec![Finding::new(
            &file.path,
            "sizes",
            "not measured: its syntax is not understood",
        )];
    };
    let mut visitor = Functions {
        file,
        findings: Vec::new(),
    };
    visitor.visit_file(&parsed);

    // One that is only declared here has its lines elsewhere.
    let tests = parsed.items.iter().find(|item| {
        is_test_module(item) && matches!(item, syn::Item::Mod(module) if module.content.is_some())
    });
    let code_lines = tests.map_or_else(
        || file.text.lines().count(),
        |tests| tests.span().start().line - 1,
    );
    if code_lines > FILE_LINES && !file.is_test() {
        let message =
            format!("{code_lines} lines before tests; more than {FILE_LINES} may be two things");
        visitor
            .findings
            .push(Finding::new(&file.path, "sizes", message));
    }
    visitor.findings
}

/// Returns whether `item` is a module of unit tests.
pub(super) fn is_test_module(item: &syn::Item) -> bool {
    matches!(item, syn::Item::Mod(module) if is_for_tests(module))
}

/// Returns whether `module` is compiled for tests only.
pub(super) fn is_for_tests(module: &syn::ItemMod) -> bool {
    module.attrs.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|condition| condition.is_ident("test"))
    })
}

struct Functions<'f> {
    file: &'f SourceFile,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let line = signature.fn_token.span.start().line;
        let lines = end.end().line - line + 1;
        let name = &signature.ident;
        if lines > FUNCTION_LINES {
            let message = format!(
                "`{name}` has {lines} lines; more than {FUNCTION_LINES} may be two functions"
            );
            self.findings
                .push(Finding::new(self.file.at(line), "sizes", message));
        }
        let arguments = signature.inputs.len();
        if arguments > ARGUMENTS {
            let message = format!(
                "`{name}` has {arguments} arguments; beyond {ARGUMENTS}, one struct per event"
            );
            self.findings
                .push(Finding::new(self.file.at(line), "sizes", message));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.measure(&function.sig, function.span());
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::rust;
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&rust(path, text))
            .into_iter()
            .map(|finding| format!("{} {}", finding.place, finding.message))
            .collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    call();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_may_have_seventy_lines() {
        assert_eq!(messages("a.rs", &function(70)), [""; 0]);
        let found = messages("a.rs", &format!("\nimpl A {{\n{}}}", function(71)));
        assert_eq!(
            found,
            ["a.rs:3 `long` has 71 lines; more than 70 may be two functions"]
        );
    }

    #[test]
    fn a_function_may_have_five_arguments() {
        assert_eq!(
            messages("a.rs", "fn f(a: A, b: B, c: C, d: D, e: E) {}"),
            [""; 0]
        );
        let found = messages(
            "a.rs",
            "trait T { fn f(&self, a: A, b: B, c: C, d: D, e: E); }",
        );
        assert_eq!(
            found,
            ["a.rs:1 `f` has 6 arguments; beyond 5, one struct per event"]
        );
    }

    #[test]
    fn a_file_may_have_five_hundred_lines_before_its_tests() {
        let code = "struct A;\n".repeat(500);
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "struct A;\n".repeat(99)
        );
        assert_eq!(messages("a.rs", &format!("{code}{tests}")), [""; 0]);
        let declared = format!("#[cfg(test)]\nmod tests;\n{code}");
        assert_eq!(messages("a.rs", &declared).len(), 1);
        let found = messages("a.rs", &format!("{code}struct B;\n{tests}"));
        assert_eq!(
            found,
            ["a.rs 501 lines before tests; more than 500 may be two things"]
        );
        assert_eq!(
            messages("crates/a/tests/a.rs", &format!("{code}struct B;\n")),
            [""; 0]
        );
    }
}
