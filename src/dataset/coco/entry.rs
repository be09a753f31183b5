//! The entries of a COCO file, as leniently as they are written: numbers as floats or in quotes, fields that are missing
//! or null, entries that are none. What does not fit becomes "nothing", and is counted where the entry is used.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The methods of a visitor for values that are neither arrays nor objects, all of which come to `$nothing`.
macro_rules! scalars_are {
    ($nothing:expr) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($nothing)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

#[derive(Default, Deserialize)]
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

#[derive(Default, Deserialize)]
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

#[derive(Default, Deserialize)]
pub(super) struct CategoryEntry {
    #[serde(default)]
    pub id: Scalar,
    #[serde(default)]
    pub name: Scalar,
}

/// An entry, or `None` where another value stands.
pub(super) struct Lenient<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entry<T> {
            type Value = Lenient<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entry")
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Lenient<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(entries)).map(|entry| Lenient(Some(entry)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Lenient<T>, A::Error> {
                pass_over(entries)?;
                Ok(Lenient(None))
            }

            scalars_are!(Lenient(None));
        }
        deserializer.deserialize_any(Entry(PhantomData))
    }
}

fn pass_over<'de, A: SeqAccess<'de>>(mut entries: A) -> Result<(), A::Error> {
    while entries.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
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
            Self::Text(number) => number.trim().parse().unwrap_or(f32::NAN),
            Self::Nothing | Self::Bool(_) => f32::NAN,
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(_) => !matches!(self.number(), number if number == 0.0 || number.is_nan()),
            Self::Nothing => false,
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

            fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Scalar, A::Error> {
                pass_over(entries)?;
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

            scalars_are!(Bbox(None));

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Bbox, A::Error> {
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
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
        impl<'de> Visitor<'de> for Name {
            type Value = FileName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file name")
            }

            fn visit_none<E>(self) -> Result<FileName, E> {
                Ok(FileName(None))
            }

            /// As bytes, since a text that is not UTF-8 would be refused.
            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<FileName, D::Error> {
                deserializer.deserialize_bytes(self)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<FileName, A::Error> {
                pass_over(entries)?;
                Ok(FileName(None))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<FileName, E> {
                self.visit_bytes(name.as_bytes())
            }

            fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<FileName, E> {
                Ok(FileName(Some(without_surrogates(name))))
            }
        }
        deserializer.deserialize_option(Name)
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
