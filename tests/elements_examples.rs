//! The pipelines in the elements' documentation run as they are written there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{gpu, launch};

/// The command lines between `|[` and `]|` in a documentation section.
fn commands(source: &str) -> Vec<String> {
    let mut rest = source;
    let mut found = Vec::new();
    while let Some((_, after)) = rest.split_once("|[") {
        let (block, after) = after.split_once("]|").expect("every |[ is closed by ]|");
        let lines = block
            .lines()
            .map(|line| line.trim_start_matches([' ', '*']))
            .filter(|line| !line.is_empty());
        found.extend(lines.map(|line| line.trim().to_owned()));
        rest = after;
    }
    found
}

#[test]
fn every_pipeline_in_the_documentation_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/elements");
    for element in ["epochsrc", "epochdecode", "hsvquantize", "nhwcpack", "epochsink"] {
        let source = std::fs::read_to_string(folder.join(element).join("mod.rs")).unwrap();
        assert!(
            source.contains(&format!("SECTION:element-{element}\n")),
            "{element} has no section"
        );
        let commands = commands(&source);
        assert!(!commands.is_empty(), "{element} has no example pipeline");
        for command in commands {
            let pipeline = command
                .strip_prefix("gst-launch-1.0 ")
                .unwrap_or_else(|| panic!("{element}: {command}"));
            assert!(
                pipeline.contains(element),
                "{element}: the example is about it: {command}"
            );
            let on_gpu: Vec<_> = pipeline
                .split_whitespace()
                .filter(|word| word.starts_with("cuda") || word.starts_with("nv"))
                .collect();
            if !on_gpu.is_empty() && !gpu::has(&on_gpu) {
                continue;
            }
            // gst-launch-1.0 joins its arguments before it reads them, so that quotes mean the same as in a shell here.
            // Paths in the examples are relative to the project, where cargo runs tests.
            launch(pipeline).run().success();
        }
    }
}

#[test]
fn blocks_are_found() {
    let source =
        " * text\n * |[\n * gst-launch-1.0 a ! b\n * ]| says\n *\n * |[\n * gst-launch-1.0 c\n * ]|\n";
    assert_eq!(commands(source), ["gst-launch-1.0 a ! b", "gst-launch-1.0 c"]);
}
