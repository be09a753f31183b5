//! The entries of a COCO file, as leniently as they are written: numbers as floats or in quotes, fields that are missing
//! or null. What does not fit becomes "nothing", and is counted where the entry is used.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

#[derive(Deserialize)]
pub(super) struct ImageEntry {
    #[serde(default)]
    pub id: Scalar,
    #[serde(default)]
    pub width: Scalar,
    #[serde(default)]
    pub height: Scalar,
    #[serde(default)]
    pub file_name: FileName,
}

#[derive(Deserialize)]
pub(super) struct BoxEntry {
    #[serde(default)]
    pub id: Scalar,
    #[serde(default)]
    pub image_id: Scalar,
    #[serde(default)]
    pub category_id: Scalar,
    #[serde(default)]
    pub bbox: Bbox,
    #[serde(default)]
    pub iscrowd: Scalar,
}

#[derive(Deserialize)]
pub(super) struct CategoryEntry {
    #[serde(default)]
    pub id: Scalar,
    #[serde(default)]
    pub name: Scalar,
}

/// Any value; what is inside arrays and objects is passed over.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Scalar {
    #[default]
    Nothing,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// An id: 64-bit, also where it is written as `7.0` or `"7"`.
    pub fn id(&self) -> Option<i64> {
        // Beyond, a float does not name one integer.
        const EXACT: f64 = (1_u64 << 53) as f64;
        match self {
            Self::Integer(id) => Some(*id),
            Self::Float(id) if id.fract() == 0.0 && id.abs() <= EXACT => Some(*id as i64),
            Self::Text(id) => id.trim().parse().ok(),
            _ => None,
        }
    }

    /// The side of an image.
    pub fn side(&self) -> Option<u32> {
        self.id()
            .and_then(|side| u32::try_from(side).ok())
            .filter(|&side| side > 0)
    }

    /// A number; NaN stands for everything that is none.
    fn number(&self) -> f32 {
        match self {
            Self::Integer(number) => *number as f32,
            Self::Float(number) => *number as f32,
            _ => f32::NAN,
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Nothing | Self::Text(_) => false,
        }
    }

    pub fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Integer(number) => Some(number.to_string()),
            Self::Nothing | Self::Bool(_) | Self::Float(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Nothing)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Integer(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
                Ok(i64::try_from(value).map_or(Scalar::Nothing, Scalar::Integer))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Float(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Scalar, A::Error> {
                while entries.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nothing)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Scalar, A::Error> {
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Nothing)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// x, y, width, height; `None` where that is not what stands there.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Bbox(pub Option<[f32; 4]>);

impl<'de> Deserialize<'de> for Bbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Bbox;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a box [x, y, width, height]")
            }

            fn visit_unit<E>(self) -> Result<Bbox, E> {
                Ok(Bbox(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Bbox, A::Error> {
                let (mut numbers, mut count) = ([0.0; 4], 0_u64);
                while let Some(entry) = entries.next_element::<Scalar>()? {
                    if let Some(number) = usize::try_from(count).ok().and_then(|at| numbers.get_mut(at)) {
                        *number = entry.number();
                    }
                    count += 1;
                }
                Ok(Bbox((count == 4).then_some(numbers)))
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}

/// The bytes of a name. Python writes those that are not UTF-8 as lone surrogates (`os.fsdecode`), and others leave them
/// as they are.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileName(pub Option<Vec<u8>>);

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = FileName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file name")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<FileName, E> {
                self.visit_bytes(name.as_bytes())
            }

            fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<FileName, E> {
                Ok(FileName(Some(without_surrogates(name))))
            }
        }
        deserializer.deserialize_bytes(Name)
    }
}

/// Turns the surrogates U+DC80 to U+DCFF, which stand for the bytes 0x80 to 0xFF, back into those.
fn without_surrogates(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [first, more @ ..] = rest {
        // ED B2 80 to ED B3 BF: what UTF-8 would make of them.
        if let [0xed, high @ (0xb2 | 0xb3), low @ 0x80..=0xbf, after @ ..] = rest {
            bytes.push(((high & 3) << 6) | (low & 0x3f));
            rest = after;
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn scalar(json: &str) -> Scalar {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn ids_are_64_bit_and_come_in_many_clothes() {
        for (json, id) in [
            ("9223372036854775807", Some(i64::MAX)),
            ("-1", Some(-1)),
            ("7.0", Some(7)),
            ("\" 7\"", Some(7)),
            ("7.5", None),
            ("1e300", None),
            ("18446744073709551615", None),
            ("null", None),
            ("[7]", None),
            ("{\"id\":[[7]]}", None),
            ("\"\"", None),
        ] {
            assert_eq!(scalar(json).id(), id, "{json}");
        }
        assert_eq!(scalar("640.0").side(), Some(640));
        assert_eq!((scalar("0").side(), scalar("-4").side()), (None, None));
    }

    #[test]
    fn boxes_have_four_numbers() {
        let bbox = |json| serde_json::from_str::<Bbox>(json).unwrap().0;
        assert_eq!(bbox("[1,2.5,3,4]"), Some([1.0, 2.5, 3.0, 4.0]));
        assert_eq!(bbox("[1,2,3]"), None);
        assert_eq!(bbox("[1,2,3,4,5]"), None);
        assert_eq!(bbox("null"), None);
        assert!(
            bbox("[1,\"\",null,[]]").unwrap()[1..]
                .iter()
                .all(|number| number.is_nan())
        );
    }

    #[test]
    fn names_are_bytes() {
        let name = |json: &[u8]| serde_json::from_slice::<FileName>(json).unwrap().0.unwrap();
        // json.dumps(os.fsdecode(b"caf\xe9.jpg")) and a file that has the byte itself.
        assert_eq!(name(br#""caf\udce9.jpg""#), b"caf\xe9.jpg");
        assert_eq!(name(b"\"caf\xe9.jpg\""), b"caf\xe9.jpg");
        assert_eq!(name("\"café \u{1f600}\"".as_bytes()), "café \u{1f600}".as_bytes());
        assert_eq!(
            name(br#""\udc80\udcff\ud83d\ude00""#),
            "\u{1f600}".bytes().fold(vec![0x80, 0xff], |mut v, b| {
                v.push(b);
                v
            })
        );
    }
}
