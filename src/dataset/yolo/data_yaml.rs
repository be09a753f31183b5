//! `data.yaml`: where the images of each part are, and what the classes are called.
//!
//! Read from the parser's events, so that nothing is built of what is not needed: no recursion, and an alias is never
//! expanded.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScanError, Span};

/// Largest file that is read. The names of 20,000 classes are half of that.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Deepest nesting. Beyond, what is passed over would be quick to write and slow to scan.
const MAX_DEPTH: usize = 64;

/// What of a `data.yaml` is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataYaml {
    /// What `train` and `val` are relative to; it is itself relative to the file.
    pub path: Option<String>,
    /// Folders or lists of images to train with.
    pub train: Vec<String>,
    /// Folders or lists of images to validate with.
    pub val: Vec<String>,
    /// The name of each class, by its number.
    pub names: Vec<String>,
}

/// Why a text is no `data.yaml`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataYamlError {
    /// It is no YAML at all.
    #[error("{0}")]
    Yaml(#[from] ScanError),
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is too long.
    #[error("it has {0} bytes; no data.yaml is so long (limit {MAX_BYTES})")]
    TooLarge(usize),
    /// It is YAML and says something else.
    #[error("line {line}: {problem}")]
    Meaning {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
}

type Node<'a> = (Event<'a>, Span);

/// Reads a `data.yaml`, whatever its bytes are. `names` may be a list or a map from numbers, `train` and `val` one entry
/// or a list; other keys are passed over.
///
/// # Errors
/// [`DataYamlError`]: no YAML, or one of these keys with a value that cannot be meant.
///
/// ```
/// let text = "path: coco8\ntrain: images/train\nval: [a, b]\nnames:\n  0: cat\n  1: dog\n";
/// let data = epochfeed::dataset::yolo::parse_data_yaml(text.as_bytes())?;
/// assert_eq!((data.path.as_deref(), data.train[0].as_str(), data.val.len()), (Some("coco8"), "images/train", 2));
/// assert_eq!(data.names, ["cat", "dog"]);
/// # Ok::<(), epochfeed::dataset::yolo::DataYamlError>(())
/// ```
pub fn parse_data_yaml(bytes: &[u8]) -> Result<DataYaml, DataYamlError> {
    if bytes.len() > MAX_BYTES {
        return Err(DataYamlError::TooLarge(bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| DataYamlError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut nodes = Nodes(Parser::new_from_str(text));
    let start = loop {
        match nodes.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            node => break node,
        }
    };
    if !matches!(start.0, Event::MappingStart(..)) {
        return Err(meaning(&start.1, "expected keys like train: and names:"));
    }
    let (mut data, mut nc) = (DataYaml::default(), None);
    loop {
        let key = match nodes.next()? {
            (Event::MappingEnd, _) => break,
            (Event::Scalar(key, ..), _) => key,
            // A key that is a list or a map: passed over with its value.
            other => {
                nodes.pass_over(other)?;
                Cow::Borrowed("")
            }
        };
        let value = nodes.next()?;
        let line = value.1;
        match &*key {
            "path" => data.path = nodes.scalar(value, "path")?,
            "train" => data.train = nodes.entries(value, "train")?,
            "val" => data.val = nodes.entries(value, "val")?,
            "names" => data.names = nodes.names(value)?,
            "nc" => nc = nodes.scalar(value, "nc")?.map(|nc| (nc, line)),
            "kpt_shape" => return Err(meaning(&line, "labels with keypoints (kpt_shape) are not read")),
            _ => nodes.pass_over(value)?,
        }
    }
    if let Some((nc, line)) = nc {
        data.names = check_number(data.names, &nc, &line)?;
    }
    Ok(data)
}

/// `nc` must be the number of names; alone it gives them.
fn check_number(names: Vec<String>, nc: &str, line: &Span) -> Result<Vec<String>, DataYamlError> {
    match nc.parse::<u16>() {
        Ok(nc) if names.is_empty() => Ok((0..nc).map(|number| format!("class_{number}")).collect()),
        Ok(nc) if names.len() == usize::from(nc) => Ok(names),
        Ok(nc) => Err(meaning(
            line,
            format!("nc is {nc}, and there are {} names", names.len()),
        )),
        Err(_) => Err(meaning(line, format!("nc is {nc:?}, not a number up to 65535"))),
    }
}

fn meaning(span: &Span, problem: impl Into<String>) -> DataYamlError {
    DataYamlError::Meaning {
        line: span.start.line(),
        problem: problem.into(),
    }
}

/// The events, with the values that are looked for.
struct Nodes<'a>(Parser<'a, saphyr_parser::StrInput<'a>>);

impl<'a> Nodes<'a> {
    fn next(&mut self) -> Result<Node<'a>, DataYamlError> {
        match self.0.next_event() {
            Some(node) => Ok(node?),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Leaves `node` with all that is in it behind.
    fn pass_over(&mut self, node: Node<'a>) -> Result<(), DataYamlError> {
        let (mut depth, mut node) = (0, node);
        loop {
            match node.0 {
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                Event::StreamEnd => return Err(meaning(&node.1, "the text ends too early")),
                _ => {}
            }
            match depth {
                0 => return Ok(()),
                MAX_DEPTH => return Err(meaning(&node.1, "nested too deeply")),
                _ => node = self.next()?,
            }
        }
    }

    /// One text, or none where it is null.
    fn scalar(&mut self, node: Node<'a>, key: &str) -> Result<Option<String>, DataYamlError> {
        match node.0 {
            Event::Scalar(text, style, ..) => {
                let null = style == saphyr_parser::ScalarStyle::Plain && matches!(&*text, "" | "~" | "null");
                Ok((!null).then(|| text.into_owned()))
            }
            _ => Err(meaning(
                &node.1,
                format!("{key} must be one value (aliases are not read)"),
            )),
        }
    }

    /// One text or a list of them.
    fn entries(&mut self, node: Node<'a>, key: &str) -> Result<Vec<String>, DataYamlError> {
        if !matches!(node.0, Event::SequenceStart(..)) {
            return Ok(self.scalar(node, key)?.into_iter().collect());
        }
        let mut entries = Vec::new();
        loop {
            let node = self.next()?;
            if node.0 == Event::SequenceEnd {
                return Ok(entries);
            }
            entries.extend(self.scalar(node, key)?);
        }
    }

    /// A list of names, or a map to them from their numbers, which must be 0 to the last without a gap.
    fn names(&mut self, node: Node<'a>) -> Result<Vec<String>, DataYamlError> {
        if !matches!(node.0, Event::MappingStart(..)) {
            return self.entries(node, "names");
        }
        let start = node.1;
        let mut names = Vec::new();
        loop {
            let node = self.next()?;
            if node.0 == Event::MappingEnd {
                break;
            }
            let line = node.1;
            let number = self.scalar(node, "the number of a name")?.unwrap_or_default();
            let number: u16 = number
                .parse()
                .map_err(|_| meaning(&line, format!("{number:?} is not the number of a class")))?;
            let value = self.next()?;
            let name = self.scalar(value, "a name")?.unwrap_or_default();
            names.push((number, name));
        }
        names.sort_by_key(|&(number, _)| number);
        if let Some(at) = (0..names.len()).find(|&at| usize::from(names[at].0) != at) {
            let problem = format!("the numbers of the names do not run from 0 without a gap: look at {at}");
            return Err(meaning(&start, problem));
        }
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<DataYaml, DataYamlError> {
        parse_data_yaml(text.as_bytes())
    }

    #[test]
    fn the_file_of_a_known_set_is_read() {
        // As Ultralytics' coco8.yaml is written.
        let text = "# Ultralytics\npath: coco8 # dataset root dir\ntrain: images/train # 4 images\nval: images/val\n\
                    test: # test images (optional)\n\n# Classes\nnames:\n  0: person\n  2: 'car'\n  1: \"bi cycle\"\n\n\
                    download: |\n  from x import y\n  y(dir='a: b')\n";
        let data = read(text).unwrap();
        assert_eq!(data.path.as_deref(), Some("coco8"));
        assert_eq!(
            (data.train, data.val),
            (vec!["images/train".to_owned()], vec!["images/val".to_owned()])
        );
        assert_eq!(data.names, ["person", "bi cycle", "car"]);
        // As Roboflow writes it.
        let text = "train: ../train/images\r\nval: ../valid/images\r\nnc: 2\r\nnames: ['a', \"b: c\"]\r\n\
                    roboflow:\r\n  workspace: &x {a: [1, {b: *x}]}\r\n";
        let data = read(text).unwrap();
        assert_eq!(
            (data.path, data.names),
            (None, vec!["a".to_owned(), "b: c".to_owned()])
        );
        assert_eq!(read("nc: 2").unwrap().names, ["class_0", "class_1"]);
    }

    #[test]
    fn what_cannot_be_meant_says_where() {
        for (text, words) in [
            ("", "keys like train"),
            ("- a", "keys like train"),
            ("names: [a, b]\nnc: 3", "line 2: nc is 3, and there are 2 names"),
            ("nc: many", "not a number"),
            ("nc: 99999", "not a number"),
            ("names: {0: a, 2: b}", "look at 1"),
            ("names: {0: a, 0: b}", "look at 1"),
            ("names: {cat: 0}", "\"cat\" is not the number"),
            ("names:\n  - [a]", "line 2: names must be one value"),
            ("path: [a]", "path must be one value"),
            ("a: &x b\npath: *x", "aliases are not read"),
            ("kpt_shape: [17, 3]", "keypoints"),
            ("a: [", "line"),
            ("a: b: c", "line"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
        assert!(matches!(parse_data_yaml(b"\xff"), Err(DataYamlError::NotText)));
        let long = vec![b' '; MAX_BYTES + 1];
        assert!(matches!(parse_data_yaml(&long), Err(DataYamlError::TooLarge(_))));
    }

    #[test]
    fn depth_and_aliases_cost_nothing() {
        let deep = format!("a: {}", "[".repeat(100_000));
        assert!(read(&deep).is_err());
        // Ten to the tenth, if it were expanded.
        let mut laughs = "a0: &a0 x\n".to_owned();
        for level in 1..10 {
            let below = vec![format!("*a{}", level - 1); 10].join(",");
            laughs += &format!("a{level}: &a{level} [{below}]\n");
        }
        assert_eq!(read(&(laughs + "names: [a]")).unwrap().names, ["a"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(train|names|nc|path|[-:\\[\\]{}&*!|>'\"#%@ \n\ta0,?~]){0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_data_yaml(&bytes);
        }
    }
}
