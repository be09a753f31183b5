//! The awkward image files in `tests/data/cases`.

use std::path::{Path, PathBuf};

/// Where they are.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases/img")
}

/// Files that end before their last pixel: `truncated` decides.
pub const TRUNCATED: [&str; 3] = [
    "a08_trunc_half.jpg",
    "a08_trunc_progressive.jpg",
    "a14_png_trunc_idat.png",
];

/// Files that the manifest leaves to us, and that are refused: with 400 million pixels one is over the limit, and a
/// wrong checksum is an error.
const REFUSED_BY_CHOICE: [&str; 2] = ["a09_bomb_png_20000sq_1bit.png", "a14_png_idat_badcrc_only.png"];

/// The classes of fault, with the beginnings of the names of those that have them.
const CLASSES: [(&str, &[&str]); 5] = [
    ("empty", &["a10_empty"]),
    ("unsupported", &["a06_", "a10_tiff"]),
    ("truncated", &["a08_trunc_", "a14_png_trunc_"]),
    ("corrupt", &["a08_leading_garbage", "a10_zeros", "a14_png_idat_"]),
    ("too-large", &["a09_"]),
];

/// The class of fault of the file `name`, which does not decode.
pub fn class(name: &str) -> &'static str {
    let has = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let found = CLASSES.iter().find(|(_, starts)| has(starts));
    found.unwrap_or_else(|| panic!("{name} has no class")).0
}

/// One file.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// It decodes with the default policy.
    pub good: bool,
}

/// All of them in dataset order, which is the byte order of their names.
pub fn all() -> Vec<Case> {
    let manifest = folder().with_file_name("manifest.tsv");
    let text = std::fs::read_to_string(&manifest).unwrap_or_else(|e| panic!("{}: {e}", manifest.display()));
    let mut cases: Vec<_> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut cells = line.split('\t');
            let (name, want) = (cells.next().unwrap().to_owned(), cells.next().unwrap());
            let good = match want {
                "reject" => false,
                "decode" => true,
                // The rest is decided by us; see the constants.
                "decode-warn" | "policy" | "decode-or-unsupported" => {
                    !TRUNCATED.contains(&name.as_str()) && !REFUSED_BY_CHOICE.contains(&name.as_str())
                }
                other => panic!("the manifest says {other:?} of {name}"),
            };
            Case { name, good }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.iter().filter(|case| case.good).count() > 50);
    cases
}
