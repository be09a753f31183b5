//! CUDA is optional, at build time and at run time: nothing links it, one module names it, and that module asks first.
//!
//! Every rule is shown to be found when it is broken: violations are planted into copies and into a small workspace.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod house_guard;

use std::path::Path;
use std::process::Command;

use common::{plugin_folder, scratch};
use house_guard::{crates, doors, objects, uses};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn assert_clean(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Each of `expected`, which are words, has to be in a finding of its own, and there has to be no other.
#[track_caller]
fn assert_found(findings: &[String], expected: &[&[&str]]) {
    let text = findings.join("\n");
    assert_eq!(findings.len(), expected.len(), "\n{text}\n");
    for words in expected {
        let found = |finding: &String| words.iter().all(|word| finding.contains(word));
        assert!(findings.iter().any(found), "{words:?} is not in\n{text}\n");
    }
}

#[test]
fn no_crate_links_cuda() {
    assert_clean(&crates::findings(&crates::metadata(root())));
    // Built already; asked for what the build scripts said.
    let built = crates::build(root(), plugin_folder().parent().unwrap());
    assert_clean(&built.findings);
    assert_eq!(built.objects, [plugin_folder().join("libgstepochfeed.so")]);
}

#[test]
fn what_is_built_loads_without_cuda() {
    // So that all of the library is in this program.
    epochfeed::plugin_register_static().unwrap();
    for file in [
        plugin_folder().join("libgstepochfeed.so"),
        std::env::current_exe().unwrap(),
    ] {
        let needed = objects::needed(&file);
        assert!(
            needed.iter().any(|library| library == "libgstreamer-1.0.so.0"),
            "{needed:?}"
        );
        let symbols = objects::symbols(&file);
        assert!(
            symbols.iter().any(|symbol| symbol.contains("cudarc")),
            "{}: without cudarc, or without symbols, this shows nothing",
            file.display()
        );
        assert_clean(&objects::findings(&file));
    }
}

#[test]
fn only_one_module_names_cudarc() {
    assert_clean(&uses::findings(root()));
}

#[test]
fn every_door_asks_for_the_driver_first() {
    assert_clean(&doors::findings(root()));
    let doors = doors::doors(root());
    for door in ["Device::open", "Device::adopt", "Device::count"] {
        assert!(
            doors.iter().any(|found| found == door),
            "{door} is not in {doors:?}"
        );
    }
}

/// Writes files, given as path and content, below `folder`.
fn plant(folder: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

/// A workspace whose plugin links a library of CUDA's name, through a crate between, and which has a cudarc that is told to
/// link. Everything is built for real; only the library is a stand-in.
fn linking_workspace(folder: &Path) {
    let package = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\n{rest}")
    };
    let libraries = folder.join("libraries");
    let plugin = "[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\nbetween = { path = \"../between\" }\n";
    let between = "[dependencies]\ndriver-sys = { path = \"../driver\" }\n\
                   other = { package = \"cudarc\", path = \"../cudarc\", features = [\"dynamic-linking\"] }\n";
    let script = format!(
        "fn main() {{\n    println!(\"cargo::rustc-link-search=native={}\");\n    \
         println!(\"cargo::rustc-link-lib=dylib=cuda\");\n}}\n",
        libraries.display()
    );
    plant(
        folder,
        &[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"plugin\", \"between\"]\nresolver = \"3\"\n",
            ),
            ("plugin/Cargo.toml", &package("plugin", plugin)),
            (
                "plugin/src/lib.rs",
                "#[unsafe(no_mangle)]\npub extern \"C\" fn start() -> i32 { between::start() }\n",
            ),
            ("between/Cargo.toml", &package("between", between)),
            (
                "between/src/lib.rs",
                "pub fn start() -> i32 { unsafe { driver_sys::cuInit(0) } }\n",
            ),
            ("driver/Cargo.toml", &package("driver-sys", "links = \"cuda\"\n")),
            ("driver/build.rs", &script),
            (
                "driver/src/lib.rs",
                "unsafe extern \"C\" { pub fn cuInit(flags: u32) -> i32; }\n",
            ),
            (
                "cudarc/Cargo.toml",
                &package("cudarc", "[features]\ndynamic-linking = []\n"),
            ),
            ("cudarc/src/lib.rs", ""),
            (
                "libraries/cuda.c",
                "int cuInit(unsigned flags) { return (int)flags; }\n",
            ),
        ],
    );
    let library = Command::new("cc")
        .current_dir(&libraries)
        .args("-shared -nostdlib -Wl,-soname,libcuda.so.1 -o libcuda.so cuda.c".split(' '))
        .status();
    assert!(library.unwrap().success());
    let lock = Command::new(env!("CARGO"))
        .current_dir(folder)
        .args(["generate-lockfile", "--offline", "--quiet"])
        .status();
    assert!(lock.unwrap().success());
}

#[test]
fn a_crate_that_links_is_found() {
    let folder = scratch();
    linking_workspace(folder.path());
    assert_found(
        &crates::findings(&crates::metadata(folder.path())),
        &[
            &["driver/Cargo.toml", "links = \"cuda\"", "driver-sys"],
            &["cudarc", "dynamic-linking"],
            &["between/Cargo.toml", "cudarc is called other"],
        ],
    );
    let built = crates::build(folder.path(), &folder.path().join("target"));
    assert_found(&built.findings, &[&["driver-sys", "dylib=cuda"]]);
    assert_eq!(built.objects.len(), 1);
    assert_found(
        &objects::findings(&built.objects[0]),
        &[
            &["libplugin.so", "needs libcuda.so.1"],
            &["libplugin.so", "the symbol cuInit"],
        ],
    );
}

#[test]
fn a_use_outside_of_the_module_is_found() {
    let folder = scratch();
    plant(
        folder.path(),
        &[
            (
                "src/cuda/device.rs",
                "use cudarc::driver::sys;\nuse libloading as l;\n",
            ),
            ("src/elements/gstcuda/library.rs", "use libloading::Library;\n"),
            (
                "src/elements/clean.rs",
                "//! cudarc\n/* cudarc */ /// use cudarc::x;\nconst A: &str = \"cudarc\"; const B: char = 'c';\n",
            ),
            (
                "src/elements/path.rs",
                "fn a() {\n    cudarc::driver::result::init();\n}\n",
            ),
            ("src/elements/gstcuda2.rs", "use libloading::Library;\n"),
            ("plugins/p/build.rs", "\nuse r#cudarc as other;\n"),
            (
                "tests/a.rs",
                "fn a() {\n    assert!(\n        cudarc::is(),\n    );\n}\n",
            ),
            ("target/debug/build/x.rs", "use cudarc;\n"),
        ],
    );
    assert_found(
        &uses::findings(folder.path()),
        &[
            &["plugins/p/build.rs:2:", "cudarc"],
            &["src/elements/gstcuda2.rs:1:", "libloading"],
            &["src/elements/path.rs:2:", "cudarc"],
            &["tests/a.rs:3:", "cudarc"],
        ],
    );
}

/// Copies `src/cuda`, and appends `code` to one of its files. Gives the number of lines that were there.
fn with_code(folder: &Path, file: &str, code: &str) -> usize {
    for source in house_guard::rust_files(&root().join("src/cuda")) {
        let from = house_guard::read(&root().join("src/cuda"), &source);
        let to = Path::new("src/cuda").join(source);
        plant(folder, &[(to.to_str().unwrap(), &from)]);
    }
    let file = folder.join("src/cuda").join(file);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{code}")).unwrap();
    text.lines().count()
}

#[test]
fn a_door_that_does_not_ask_is_found() {
    for (code, line, name) in [
        (
            "pub fn devices() -> i32 {\n    result::device::get_count().unwrap_or(0)\n}\n",
            1,
            "devices",
        ),
        (
            "impl Device {\n    pub fn first() -> i32 { lookup() }\n}\nfn lookup() -> i32 { result::init().map_or(0, |()| 1) }\n",
            2,
            "Device::first",
        ),
        (
            "impl Device {\n    pub fn late() -> usize {\n        let _ = Current::save();\n        Self::count().unwrap_or(0)\n    }\n}\n",
            2,
            "Device::late",
        ),
        (
            "pub struct Plain { pub ordinal: i32 }\nimpl Plain {\n    pub fn name(&self) -> bool { format!(\"{}\", result::init().is_ok()).is_empty() }\n}\n",
            3,
            "Plain::name",
        ),
        (
            "pub struct Plain;\nimpl Default for Plain {\n    fn default() -> Self { result::init().ok(); Self }\n}\n",
            3,
            "Plain::default",
        ),
    ] {
        let folder = scratch();
        let before = with_code(folder.path(), "device.rs", code);
        let place = format!("src/cuda/device.rs:{}:", before + line);
        assert_found(
            &doors::findings(folder.path()),
            &[&[&place, name, "before is_culib_present"]],
        );
    }
}

#[test]
fn a_function_that_asks_or_is_given_a_device_is_none_of_these() {
    let folder = scratch();
    let code = "pub fn asks() -> Result<i32, CudaError> {\n    driver()?;\n    Ok(result::device::get_count().unwrap_or(0))\n}\n\
                pub fn is_given(device: &Arc<Device>) -> bool { device.context.name().is_ok() }\n\
                pub fn is_plain() -> usize { Vec::<u8>::new().len() }\n";
    with_code(folder.path(), "device.rs", code);
    assert_clean(&doors::findings(folder.path()));
}

#[test]
fn a_second_question_is_found() {
    let folder = scratch();
    let code = "pub fn is_there() -> bool {\n    unsafe { sys::is_culib_present() }\n}\n";
    let before = with_code(folder.path(), "device.rs", code);
    let place = format!("src/cuda/device.rs:{}", before + 2);
    assert_found(
        &doors::findings(folder.path()),
        &[&["is_culib_present is asked in 2 places", &place]],
    );
}

#[test]
fn what_shows_cudarc_to_others_is_found() {
    for (code, line, name) in [
        ("pub use cudarc::driver::CudaSlice;\n", 1, "use"),
        ("pub(crate) use sys::cuInit;\n", 1, "use"),
        ("pub type Handle = sys::CUcontext;\n", 1, "Handle"),
        (
            "pub struct Plain {\n    pub(crate) handle: Option<sys::CUcontext>,\n}\n",
            2,
            "handle",
        ),
        (
            "impl Device {\n    pub fn inner(&self) -> &Arc<CudaContext> { &self.context }\n}\n",
            2,
            "inner",
        ),
        (
            "impl std::ops::Deref for Device {\n    type Target = CudaContext;\n    fn deref(&self) -> &CudaContext { &self.context }\n}\n",
            2,
            "Target",
        ),
    ] {
        let folder = scratch();
        let before = with_code(folder.path(), "device.rs", code);
        let place = format!("src/cuda/device.rs:{}:", before + line);
        assert_found(
            &doors::findings(folder.path()),
            &[&[&place, name, "shows something of cudarc"]],
        );
    }
}

#[test]
fn imports_that_cannot_be_followed_are_found() {
    for (code, name) in [
        ("use cudarc::nvrtc::compile_ptx;\n", "NVRTC"),
        ("use cudarc::driver::{safe::*, sys as s};\n", "name what is used"),
    ] {
        let folder = scratch();
        let before = with_code(folder.path(), "device.rs", code);
        let place = format!("src/cuda/device.rs:{}:", before + 1);
        assert_found(&doors::findings(folder.path()), &[&[&place, name]]);
    }
}
