//! Who names cudarc and libloading.
//!
//! By the compiler's tokens: comments and texts do not count, and what a macro is given does.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::{read, rust_files};

/// A crate, and where below the root it may be named.
const RULES: [(&str, &[&str]); 2] = [
    ("cudarc", &["src/cuda/"]),
    (
        "libloading",
        &[
            "src/cuda/",
            "src/elements/gstcuda/",
            // Tests the library as a program does that has CUDA of its own.
            "tests/cuda/driver.rs",
        ],
    ),
];

/// What is wrong with the sources below `root`.
pub fn findings(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for file in rust_files(root) {
        let tokens: TokenStream = read(root, &file)
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let place = file.to_string_lossy();
        let forbidden = RULES
            .iter()
            .filter(|(_, allowed)| !allowed.iter().any(|allowed| place.starts_with(allowed)));
        for (name, allowed) in forbidden {
            for line in lines(tokens.clone(), name) {
                findings.push(format!(
                    "{place}:{line}: {name} is named outside of {}: use what crate::cuda offers",
                    allowed.join(", ")
                ));
            }
        }
    }
    findings
}

/// The lines on which the identifier `name` stands.
fn lines(tokens: TokenStream, name: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident.to_string().trim_start_matches("r#") == name => {
                lines.push(ident.span().start().line);
            }
            TokenTree::Group(group) => lines.extend(self::lines(group.stream(), name)),
            _ => (),
        }
    }
    lines
}
