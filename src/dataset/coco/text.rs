//! JSON as Python writes it: with a byte order mark where the editor likes one, and with `NaN` and `Infinity`, which JSON
//! does not have.

use std::io::{self, Read};

/// Longest token that is replaced.
const LONGEST: usize = b"-Infinity".len();

const CHUNK: usize = 128 * 1024;

/// Hands on what `inner` reads, with every number that JSON cannot write replaced by an empty string of the same length
/// (`NaN` by `""` and a space), so that a box with one is counted instead of the whole file being refused, and lines and
/// columns in errors stay right.
pub(super) struct Standard<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Given out so far.
    start: usize,
    /// Looked through so far.
    ready: usize,
    /// Read so far.
    filled: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl<R: Read> Standard<R> {
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: vec![0; CHUNK],
            start: 0,
            ready: 0,
            filled: 0,
            in_string: false,
            escaped: false,
            begun: false,
        }
    }

    /// Reads the next chunk behind what could not be decided yet, and looks through it.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.ready..self.filled, 0);
        self.filled -= self.ready;
        (self.start, self.ready) = (0, 0);
        let mut at_end = false;
        // A token that began needs its end, else more is not known than before.
        while self.filled < LONGEST && !at_end {
            match self.inner.read(&mut self.buffer[self.filled..]) {
                Ok(0) => at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if !std::mem::replace(&mut self.begun, true)
            && self.buffer[..self.filled].starts_with(b"\xef\xbb\xbf")
        {
            // Three spaces are as good as nothing.
            self.buffer[..3].fill(b' ');
        }
        self.ready = self.look_through(at_end);
        Ok(())
    }

    /// Replaces tokens; returns up to where everything is decided.
    fn look_through(&mut self, at_end: bool) -> usize {
        let mut at = 0;
        while at < self.filled {
            let byte = self.buffer[at];
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
            } else if byte == b'"' {
                self.in_string = true;
            } else if matches!(byte, b'N' | b'I' | b'-') {
                if !at_end && self.filled - at < LONGEST {
                    return at;
                }
                let rest = &mut self.buffer[at..self.filled];
                let token = [&b"NaN"[..], b"Infinity", b"-Infinity"]
                    .into_iter()
                    .find(|token| rest.starts_with(token));
                if let Some(token) = token {
                    rest[..token.len()].fill(b' ');
                    rest[..2].fill(b'"');
                    at += token.len() - 1;
                }
            }
            at += 1;
        }
        at
    }
}

impl<R: Read> Read for Standard<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.ready {
            self.fill()?;
        }
        let count = out.len().min(self.ready - self.start);
        out[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives `step` bytes a time, so that every token meets the border of a chunk.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(out.len());
            let (now, later) = self.0.split_at(count);
            out[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    fn standard(text: &[u8], step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        Standard::new(Slow(text, step)).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn numbers_that_are_none_become_empty_strings_of_their_length() {
        let text = "\u{feff}[NaN,-Infinity, Infinity,-1,\"NaN \\\" -Infinity\",{\"a\\\\\":NaN}]N";
        let expected = "   [\"\" ,\"\"       , \"\"      ,-1,\"NaN \\\" -Infinity\",{\"a\\\\\":\"\" }]N";
        for step in 1..text.len() + 1 {
            let out = standard(text.as_bytes(), step);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{step}");
        }
    }

    #[test]
    fn more_than_a_chunk_comes_through() {
        let text = "[-12.5,NaN,\"x\\\"NaN\"]".repeat(CHUNK / 7);
        let out = standard(text.as_bytes(), usize::MAX);
        assert_eq!(String::from_utf8(out).unwrap(), text.replace(",NaN,", ",\"\" ,"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_chunks_do_not_matter(text in "[NaIinfty\"\\\\,\\-1 ]{0,64}", step in 1_usize..9) {
            let whole = standard(text.as_bytes(), usize::MAX);
            prop_assert_eq!(whole.len(), text.len());
            prop_assert_eq!(standard(text.as_bytes(), step), whole);
        }
    }
}
