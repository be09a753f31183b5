//! `gst-launch-1.0`, `gst-inspect-1.0` and Python, set up to see this build and nothing of the user's.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::process::Job;

/// cargo's target folder.
fn target() -> &'static Path {
    // cargo makes this folder, `tmp` inside the target folder, for integration tests.
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("cargo's tmp folder lies in its target folder")
}

/// The folder of the built plugin.
///
/// # Panics
/// If the plugin is not built, or older than one of its sources: a black-box test of yesterday's plugin shows nothing.
pub fn plugin_folder() -> PathBuf {
    let folder = target().join("release");
    let plugin = folder.join("libgstepochfeed.so");
    let built = modified(&plugin);
    // cargo lists what it was made of beside it: `PLUGIN: SOURCE SOURCE …`, spaces in names escaped.
    let listed = std::fs::read_to_string(plugin.with_extension("d")).unwrap_or_default();
    let sources = listed
        .split_once(": ")
        .map(|(_, sources)| sources.replace("\\ ", "\0"))
        .unwrap_or_default();
    for source in sources
        .split_whitespace()
        .map(|source| PathBuf::from(source.replace('\0', " ")))
    {
        assert!(
            built >= modified(&source),
            "{} is older than {}: run `cargo build --release` first",
            plugin.display(),
            source.display()
        );
    }
    folder
}

fn modified(file: &Path) -> SystemTime {
    let time = std::fs::metadata(file).and_then(|metadata| metadata.modified());
    time.unwrap_or_else(|error| panic!("{}: {error}; run `cargo build --release` first", file.display()))
}

/// `program` with this build's plugin and a registry of this test binary's own.
fn tool(program: &str) -> Job {
    let binary = std::env::current_exe().expect("a test knows its own path");
    let name = binary
        .file_name()
        .expect("a program has a name")
        .to_string_lossy()
        .into_owned();
    let registry = target().join("tmp").join(format!("registry-{name}.bin"));
    // The names with a version win over those without: whatever the user has set, these count.
    Job::new(program)
        .env("GST_PLUGIN_PATH", plugin_folder())
        .env("GST_PLUGIN_PATH_1_0", plugin_folder())
        .env("GST_REGISTRY", &registry)
        .env("GST_REGISTRY_1_0", &registry)
        // A critical or a warning of GLib's aborts the process: End::Signal.
        .env("G_DEBUG", "fatal_warnings")
        .env("GST_DEBUG", "")
        .env("GST_DEBUG_NO_COLOR", "1")
        .env("GST_TRACERS", "")
        .env("LC_ALL", "C.UTF-8")
}

/// `gst-launch-1.0 -q` with the words of `line`.
///
/// Without `--no-fault`, gst-launch catches a crash and spins for a debugger: it would look like a time-out.
pub fn launch(line: &str) -> Job {
    tool("gst-launch-1.0").args("-q --no-fault").args(line)
}

/// As [`launch`], for a pipeline that is meant to fail at once: where gst-launch itself hangs then (see
/// [`Job::expect_error`]), that is found soon.
pub fn launch_failing(line: &str) -> Job {
    launch(line)
        .expect_error()
        .limit(std::time::Duration::from_secs(10))
}

/// As [`launch`], but every message on the bus is printed to standard output.
pub fn launch_with_messages(line: &str) -> Job {
    // Not with -q, which silences -m as well.
    tool("gst-launch-1.0").arg("--no-fault").arg("-m").args(line)
}

/// `gst-inspect-1.0` with the words of `line`.
pub fn inspect(line: &str) -> Job {
    tool("gst-inspect-1.0").args(line)
}

/// `gst-launch-1.0 -v` with the words of `line`: it also prints the caps of every pad.
pub fn launch_verbose(line: &str) -> Job {
    tool("gst-launch-1.0").args("-v --no-fault").args(line)
}

/// Python with the packages of `tests/requirements.txt`.
///
/// # Panics
/// If there is none.
pub fn python() -> Job {
    if let Some(program) = std::env::var_os("EPOCHFEED_PYTHON") {
        return Job::new(program.to_string_lossy());
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(
        program.exists(),
        "{} does not exist: run `make setup`, or set EPOCHFEED_PYTHON",
        program.display()
    );
    Job::new(program.to_string_lossy())
}
