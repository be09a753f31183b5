//! YOLO's label files.

use epochfeed::dataset::yolo::{BadLine, Label, parse_labels};
use epochfeed::dataset::{Format, Options};

use super::boxes;

/// What comparing needs: the bits of a box, since NaN is a number like others here.
type Line = (usize, Result<(u32, [u32; 4]), &'static str>);

fn plain(line: Result<Label, BadLine>) -> Line {
    match line {
        Ok(Label { line, class, bbox }) => (line, Ok((class, bbox.map(f32::to_bits)))),
        Err(BadLine { line, problem }) => (line, Err(problem)),
    }
}

/// Reads `bytes` as the labels of an image, whole and line by line, and opens the dataset that has them.
pub fn yolo_labels(bytes: &[u8]) {
    let whole: Vec<Line> = parse_labels(bytes).map(plain).collect();
    // A bad line spoils no other: each says alone what it says among the others.
    let mut each = whole.iter();
    for (text, number) in bytes.split(|&byte| byte == b'\n').zip(1_usize..) {
        // Only the first line of a file may begin with a byte order mark.
        let text = if number > 1 {
            [b"\n", text].concat()
        } else {
            text.to_vec()
        };
        for line in parse_labels(&text).map(plain) {
            assert_eq!(line.0, text.iter().filter(|&&byte| byte == b'\n').count() + 1);
            assert_eq!(each.next(), Some(&(number, line.1)));
        }
    }
    assert_eq!(each.next(), None);
    for (_, label) in &whole {
        match label {
            Ok((class, _)) => assert!(*class < 65_536),
            Err(problem) => assert!(!problem.is_empty()),
        }
    }
    if whole.is_empty() {
        return;
    }
    let folder = boxes::folder("labels/a.txt", bytes);
    let options = Options {
        format: Format::Yolo,
        ..Options::default()
    };
    boxes::open(folder.path(), &options);
}
