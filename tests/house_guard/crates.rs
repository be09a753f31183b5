//! What the crates link, as cargo itself says it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::is_cuda;

/// All that cudarc may be built with: how it finds the driver, and the modules that are used. Each further feature opens
/// another library; `dynamic-linking` and `static-linking` link them, `default` brings the whole toolkit.
const FEATURES: [&str; 5] = ["cuda-13000", "driver", "fallback-dynamic-loading", "nvrtc", "std"];

/// What `cargo build` made.
pub struct Built {
    /// What is wrong with what build scripts asked for.
    pub findings: Vec<String>,
    /// The shared objects.
    pub objects: Vec<PathBuf>,
}

fn cargo(root: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO"));
    let output = command.current_dir(root).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `cargo metadata` of the workspace at `root`, for this machine's kind.
pub fn metadata(root: &Path) -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(rustc).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let arguments = [
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        host,
    ];
    cargo(root, &arguments).remove(0)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// What is wrong with the crates that the workspace's members bring along: what they link by their own word, and how
/// cudarc is built and named.
pub fn findings(metadata: &Value) -> Vec<String> {
    let nodes: BTreeMap<_, _> = list(&metadata["resolve"], "nodes")
        .map(|node| (text(node, "id"), node))
        .collect();
    let members: BTreeSet<_> = list(metadata, "workspace_members")
        .filter_map(Value::as_str)
        .collect();
    let mut tree = BTreeSet::new();
    let mut open: Vec<_> = members.iter().copied().collect();
    while let Some(id) = open.pop() {
        if tree.insert(id) {
            // Not the build scripts' and the tests' own.
            let normal =
                |dependency: &&Value| list(dependency, "dep_kinds").any(|kind| kind["kind"].is_null());
            let next = list(nodes[id], "deps").filter(normal);
            open.extend(next.map(|dependency| text(dependency, "pkg")));
        }
    }

    let mut findings = Vec::new();
    for package in list(metadata, "packages").filter(|package| tree.contains(text(package, "id"))) {
        let (name, manifest) = (text(package, "name"), text(package, "manifest_path"));
        let links = text(package, "links");
        if is_cuda(links) {
            findings.push(format!(
                "{manifest}: links = \"{links}\": crate {name} links CUDA; open it at run time instead"
            ));
        }
        if name == "cudarc" {
            let features = list(nodes[text(package, "id")], "features").filter_map(Value::as_str);
            findings.extend(features.filter(|feature| !FEATURES.contains(feature)).map(|feature| {
                format!("cudarc is built with its feature {feature}; it may have {FEATURES:?} and no other")
            }));
        }
        if members.contains(text(package, "id")) {
            let renamed = list(package, "dependencies")
                .filter(|dependency| matches!(text(dependency, "name"), "cudarc" | "libloading"))
                .filter(|dependency| !dependency["rename"].is_null());
            findings.extend(renamed.map(|dependency| {
                let (name, rename) = (text(dependency, "name"), text(dependency, "rename"));
                format!(
                    "{manifest}: {name} is called {rename}; leave it its name, by which its uses are found"
                )
            }));
        }
    }
    findings
}

/// Builds the workspace at `root` into `target`, where nothing is to be done if it is built already.
pub fn build(root: &Path, target: &Path) -> Built {
    let target = target.to_str().unwrap();
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--message-format=json",
        "--target-dir",
        target,
    ];
    let mut built = Built {
        findings: Vec::new(),
        objects: Vec::new(),
    };
    for message in cargo(root, &arguments) {
        match text(&message, "reason") {
            "build-script-executed" => {
                let package = text(&message, "package_id");
                let libraries = list(&message, "linked_libs").filter_map(Value::as_str);
                built
                    .findings
                    .extend(libraries.filter(|library| is_cuda(name(library))).map(|library| {
                        format!("the build script of {package} links {library}; open it at run time instead")
                    }));
            }
            "compiler-artifact" => {
                let files = list(&message, "filenames").filter_map(Value::as_str);
                let objects = files.filter(|file| file.ends_with(".so")).map(PathBuf::from);
                // Procedural macros are shared objects too, of the compiler's.
                if list(&message["target"], "crate_types").any(|kind| kind == "cdylib") {
                    built.objects.extend(objects);
                }
            }
            _ => (),
        }
    }
    built
}

/// The name in `KIND:MODIFIERS=NAME:RENAME`.
fn name(library: &str) -> &str {
    let name = library.rsplit_once('=').map_or(library, |(_, name)| name);
    name.split(':').next().unwrap_or_default()
}
