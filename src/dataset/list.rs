//! A text list of paths, one a line, taken literally: no globs, no `printf` patterns, no comments, no quoting.

use std::path::Path;

use super::DatasetError;
use super::paths::Paths;

/// The entries of the list in `bytes`, in their order; `path` is for messages.
///
/// Lines may end in CRLF, a UTF-8 byte order mark may stand in front, lines without any text are skipped. Entries need
/// not be UTF-8.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Paths, DatasetError> {
    let not_a_list = |what: &str| DatasetError::NotADataset {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(not_a_list("text in UTF-16"));
    }
    if bytes.contains(&0) {
        return Err(not_a_list("neither a known image nor text"));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut paths = Paths::default();
    for line in text.split(|&byte| byte == b'\n') {
        let entry = line.strip_suffix(b"\r").unwrap_or(line);
        // Spaces inside and around a name belong to it; a line of nothing else is blank.
        if !entry.trim_ascii().is_empty() {
            paths.push(entry);
        }
    }
    if paths.len() == 0 {
        return Err(DatasetError::EmptyList(path.to_owned()));
    }
    Ok(paths)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn entries(bytes: &[u8]) -> Vec<Vec<u8>> {
        let paths = parse(Path::new("list.txt"), bytes).unwrap();
        (0..paths.len())
            .map(|i| paths.get(i).unwrap().as_os_str().as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn windows_line_ends_marks_and_blank_lines() {
        assert_eq!(
            entries(b"\xef\xbb\xbfa.jpg\r\n\r\n  \nb c.jpg\n\n"),
            [&b"a.jpg"[..], b"b c.jpg"]
        );
        assert_eq!(entries(b"only one, no line end"), [b"only one, no line end"]);
    }

    #[test]
    fn entries_are_literal() {
        let text = b"#1.jpg\n*.jpg\n%05d.jpg\n\"q\".jpg\n a \ncaf\xe9.jpg\na\rb\n~/x";
        let expected: Vec<&[u8]> = vec![
            b"#1.jpg",
            b"*.jpg",
            b"%05d.jpg",
            b"\"q\".jpg",
            b" a ",
            b"caf\xe9.jpg",
            b"a\rb",
            b"~/x",
        ];
        assert_eq!(entries(text), expected);
    }

    #[test]
    fn what_is_no_list_is_named() {
        let message = |bytes| parse(Path::new("l.txt"), bytes).unwrap_err().to_string();
        assert!(message(b"").contains("l.txt lists no images"));
        assert!(message(b"\r\n \n").contains("l.txt lists no images"));
        assert!(message(b"\xff\xfea\0").contains("UTF-16"));
        assert!(message(b"\x7fELF\0").contains("neither"));
    }
}
