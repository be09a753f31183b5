//! What a linked file needs: the loader's list, and the symbols.

use std::collections::BTreeSet;
use std::path::Path;

use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Object, ObjectSymbol};

use super::is_cuda;

/// The libraries without which the file cannot be loaded.
pub fn needed(file: &Path) -> Vec<String> {
    let data = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let elf = ElfFile64::<object::Endianness>::parse(&*data).unwrap();
    let endian = elf.endian();
    let sections = elf.elf_header().sections(endian, &*data).unwrap();
    let (dynamic, strings) = sections.dynamic(endian, &*data).unwrap().unwrap();
    let strings = sections.strings(endian, &*data, strings).unwrap();
    let needed = dynamic
        .iter()
        .filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED);
    needed
        .map(|entry| String::from_utf8_lossy(entry.string(endian, strings).unwrap()).into_owned())
        .collect()
}

/// The names of all symbols: the file's own, and those that are to come from libraries.
pub fn symbols(file: &Path) -> BTreeSet<String> {
    let data = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let elf = ElfFile64::<object::Endianness>::parse(&*data).unwrap();
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let names = symbols.filter_map(|symbol| symbol.name().ok());
    names.map(str::to_owned).collect()
}

/// Whether `symbol` is a function of CUDA's by its C name; cudarc's have Rust's.
fn is_cuda_symbol(symbol: &str) -> bool {
    let api = ["cuda", "cu", "nvrtc"].iter().any(|prefix| {
        let rest = symbol.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    });
    api || symbol.starts_with("gst_cuda_")
}

/// What is wrong with the file: it needs a library of CUDA's, or contains one, or a symbol is to come from one.
pub fn findings(file: &Path) -> Vec<String> {
    let place = file.display();
    let libraries = needed(file).into_iter().filter(|library| is_cuda(library));
    let mut findings: Vec<_> = libraries
        .map(|library| format!("{place}: needs {library}: it cannot be loaded where CUDA is not"))
        .collect();
    let symbols = symbols(file).into_iter().filter(|symbol| is_cuda_symbol(symbol));
    findings.extend(symbols.map(|symbol| format!("{place}: has the symbol {symbol}: CUDA is linked")));
    findings
}
