//! A label file: one object a line.

/// Classes from here on are taken for a mistake: no dataset has so many, and a pixel coordinate in the wrong column
/// should not become one.
const CLASSES: f64 = 65_536.0;

/// A line's object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// The line, from 1.
    pub line: usize,
    /// The class, from 0, below 65,536.
    pub class: u32,
    /// x and y of the centre, width, height: fractions of the image, if the file keeps to that.
    pub bbox: [f32; 4],
}

/// A line that is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// The objects of a label file, whatever its bytes are; blank lines are passed over.
///
/// `class x y width height` is a box. `class x1 y1 x2 y2 x3 y3 …` is the outline of a segment or of a rotated box: what is
/// taken is the box around it, as Ultralytics does. It differs in that Ultralytics gives up the image of a bad line, and
/// reads all lines as outlines where one is.
///
/// ```
/// use epochfeed::dataset::yolo::parse_labels;
/// let labels: Vec<_> = parse_labels(b"3 0.5 0.5 0.2 0.4\n0 0.25 0.25 0.75 0.25 0.75 0.75\n").flatten().collect();
/// assert_eq!((labels[0].class, labels[0].bbox), (3, [0.5, 0.5, 0.2, 0.4]));
/// assert_eq!(labels[1].bbox, [0.5, 0.5, 0.5, 0.5]);
/// ```
pub fn parse_labels(bytes: &[u8]) -> impl Iterator<Item = Result<Label, BadLine>> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.split(|&byte| byte == b'\n')
        .zip(1..)
        // Old Macs end lines so: taken for one, several boxes would be the outline of another.
        .flat_map(|(text, line)| text.split(|&byte| byte == b'\r').map(move |text| (text, line)))
        .filter(|(text, _)| !text.trim_ascii().is_empty())
        .map(|(text, line)| parse_line(text, line).map_err(|problem| BadLine { line, problem }))
}

fn parse_line(text: &[u8], line: usize) -> Result<Label, &'static str> {
    let mut fields = text
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .map(|field| std::str::from_utf8(field).ok()?.parse::<f64>().ok());
    let class = fields.next().flatten().ok_or("the class is no number")?;
    if class.fract() != 0.0 || !(0.0..CLASSES).contains(&class) {
        return Err("the class is no whole number from 0 to 65535");
    }
    let numbers = fields
        .collect::<Option<Vec<_>>>()
        .ok_or("not all fields are numbers")?;
    let bbox = match numbers.as_slice() {
        &[x, y, width, height] => [x, y, width, height],
        outline if outline.len() >= 6 && outline.len().is_multiple_of(2) => around(outline),
        _ => return Err("neither 5 fields nor an outline of at least 3 points"),
    };
    Ok(Label {
        line,
        class: class as u32,
        bbox: bbox.map(|number| number as f32),
    })
}

/// The box around an outline.
fn around(outline: &[f64]) -> [f64; 4] {
    if !outline.iter().all(|number| number.is_finite()) {
        return [f64::NAN; 4];
    }
    let axis = |first: usize| {
        let numbers = outline.iter().skip(first).step_by(2);
        let (least, most) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &number| {
            (least.min(number), most.max(number))
        });
        ((least + most) / 2.0, most - least)
    };
    let ((x, width), (y, height)) = (axis(0), axis(1));
    [x, y, width, height]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Result<Label, BadLine> {
        let mut labels = parse_labels(text.as_bytes());
        let label = labels.next().unwrap();
        assert_eq!(labels.next(), None, "{text}");
        label
    }

    #[test]
    fn line_ends_of_another_time_make_no_outline() {
        let labels: Vec<_> = parse_labels(b"0 .5 .5 .2 .2\r1 .4 .4 .1 .1\r2 .3 .3 .1 .1\r").collect();
        let classes: Vec<_> = labels.iter().map(|label| label.as_ref().unwrap().class).collect();
        assert_eq!(classes, [0, 1, 2]);
    }

    #[test]
    fn lines_end_in_many_ways_and_keep_their_numbers() {
        let text = b"\xef\xbb\xbf0 .5 .5 1 1\r\n\r\n  \n\t1.0\t0.5 5e-1 0.1 0.1 \r\n2 0 0 0 0";
        let labels: Vec<_> = parse_labels(text).map(Result::unwrap).collect();
        let lines: Vec<_> = labels.iter().map(|label| (label.line, label.class)).collect();
        assert_eq!(lines, [(1, 0), (4, 1), (5, 2)]);
        assert_eq!(parse_labels(b"").count() + parse_labels(b"\n \r\n").count(), 0);
    }

    #[test]
    fn outlines_become_the_box_around_them() {
        assert_eq!(
            one("7 0.1 0.2 0.5 0.2 0.3 0.8").unwrap().bbox,
            [0.3, 0.5, 0.4, 0.6]
        );
        let not_finite = one("7 0.1 0.2 0.5 nan 0.3 0.8").unwrap();
        assert!(not_finite.bbox.iter().all(|number| number.is_nan()));
    }

    #[test]
    fn bad_lines_say_what_is_wrong() {
        for (text, problem) in [
            ("cat 0.5 0.5 1 1", "class is no number"),
            ("0.5 0.5 0.5 1 1", "whole number"),
            ("-1 0.5 0.5 1 1", "whole number"),
            ("nan 0.5 0.5 1 1", "whole number"),
            ("65536 0.5 0.5 1 1", "whole number"),
            ("0 0.5 0.5 1", "5 fields"),
            ("0", "5 fields"),
            ("0 0.5 0.5 1 1 0.9", "5 fields"),
            ("0 1 2 3 4 5 6 7", "5 fields"),
            ("0 0,5 0.5 1 1", "not all fields"),
            ("0,0.5,0.5,1,1", "class is no number"),
        ] {
            let bad = one(text).unwrap_err();
            assert!(bad.problem.contains(problem), "{text}: {bad:?}");
        }
        assert!(parse_labels(b"\xff 1 2 3 4").next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for label in parse_labels(&bytes).flatten() {
                prop_assert!(f64::from(label.class) < CLASSES);
            }
        }

        #[test]
        fn what_is_written_is_read(class in 0_u32..65_536, bbox: [f32; 4]) {
            let [x, y, width, height] = bbox;
            let label = one(&format!("{class} {x} {y} {width} {height}")).unwrap();
            prop_assert_eq!(label.class, class);
            for (read, written) in label.bbox.iter().zip(bbox) {
                prop_assert!(*read == written || written.is_nan());
            }
        }
    }
}
