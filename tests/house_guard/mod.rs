//! What keeps CUDA optional, as functions over a folder, so that a test can show that a violation is found.
//!
//! - `crates`: what the dependencies and their build scripts link;
//! - `objects`: what a linked file needs;
//! - `uses`: which source file names cudarc or libloading;
//! - `doors`: that nothing in `src/cuda` reaches the driver before it is known to be there; `functions` reads the source
//!   for it.
//!
//! Each finding says where and what, and how to put it right.

pub mod crates;
pub mod doors;
pub mod functions;
pub mod objects;
pub mod uses;

use std::path::{Path, PathBuf};

/// Libraries of CUDA, as their file names begin behind `lib`.
const LIBRARIES: [&str; 20] = [
    "cublas",
    "cuda",
    "cudnn",
    "cufft",
    "cufile",
    "cupti",
    "curand",
    "cusolver",
    "cusparse",
    "cutensor",
    "gstcuda",
    "nccl",
    "npp",
    "nvcuvid",
    "nvidia",
    "nvjitlink",
    "nvjpeg",
    "nvrtc",
    "nvtoolsext",
    "nvtx",
];

/// Whether `library` (`cuda`, `libnvrtc.so.12`) is one of CUDA's.
pub fn is_cuda(library: &str) -> bool {
    let name = library.to_ascii_lowercase();
    let name = name.strip_prefix("lib").unwrap_or(&name);
    LIBRARIES.iter().any(|cuda| name.starts_with(cuda))
}

/// The Rust files below `folder`, relative to it and in order; not those of hidden folders and of `target`.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display())) {
            let entry = entry.unwrap();
            let (name, path) = (entry.file_name(), entry.path());
            if entry.file_type().unwrap().is_dir() {
                let name = name.to_string_lossy();
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

/// The text of `file` below `folder`.
pub fn read(folder: &Path, file: &Path) -> String {
    let path = folder.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
