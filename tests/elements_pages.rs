//! What `gst-inspect-1.0` shows of the plugin and its elements, against golden files.
//!
//! `EPOCHFEED_BLESS=1 cargo test --release --test elements_pages` writes the golden files anew; read the difference.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use common::process::Job;
use common::{inspect, plugin_folder};
use gst::prelude::*;

const ELEMENTS: [&str; 6] = [
    "epochbuffer",
    "epochdecode",
    "epochsink",
    "epochsrc",
    "hsvquantize",
    "nhwcpack",
];

/// Compares `text` with the golden file `name`.
#[track_caller]
fn golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/inspect")
        .join(name);
    if std::env::var_os("EPOCHFEED_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for (number, (is, wanted)) in text.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(is, wanted, "{name}, line {}", number + 1);
    }
    assert_eq!(text, wanted, "{name}");
}

/// The words of a field without its type in parentheses, which GStreamer 1.28 shows behind the value.
fn without_type<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let is_type = |word: &str| {
        let name = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
        name.is_some_and(|name| {
            name.starts_with(char::is_alphabetic) && name.chars().all(char::is_alphanumeric)
        })
    };
    match words {
        [field, value @ .., last] if field.ends_with(':') && !value.is_empty() && is_type(last) => {
            &words[..words.len() - 1]
        }
        _ => words,
    }
}

/// The page with single spaces, and without what changes from build to build and from place to place.
fn normalised(page: &str) -> Vec<String> {
    page.lines()
        .map(|line| {
            let indent = if line.starts_with(' ') { " " } else { "" };
            let words: Vec<_> = line.split_whitespace().collect();
            match without_type(&words) {
                ["Filename", path] => format!(" Filename {}", path.rsplit('/').next().unwrap()),
                ["Version", version] => {
                    let (number, commit) = version.split_once('-').expect("version-commit");
                    assert_eq!(number, env!("CARGO_PKG_VERSION"));
                    assert!(commit.len() >= 7, "{version}");
                    " Version VERSION-COMMIT".to_owned()
                }
                ["Source", "release", "date", date] => {
                    assert_eq!(date.split('-').count(), 3, "{date} is no date");
                    " Source release date DATE".to_owned()
                }
                words => format!("{indent}{}", words.join(" ")),
            }
        })
        .collect()
}

/// The properties that the element adds to those of its base classes, which differ between versions of GStreamer.
fn own_properties(element: &gst::Element) -> Vec<glib::ParamSpec> {
    element
        .list_properties()
        .iter()
        .filter(|property| property.owner_type() == element.type_())
        .cloned()
        .collect()
}

fn element(name: &str) -> gst::Element {
    common::pipeline::init();
    gst::ElementFactory::make(name).build().unwrap()
}

/// What the page says of ours: of the properties those called one of `keep`, of the signals their names and types, and
/// nothing of the flags. The rest differs between versions of gst-inspect-1.0.
fn only(lines: Vec<String>, page: &str, keep: &BTreeSet<&str>) -> String {
    // In the page as it is, a property begins in the third column.
    let begins =
        |line: &str| line.starts_with("  ") && line.as_bytes().get(2).is_some_and(|byte| *byte != b' ');
    let (mut text, mut section, mut kept) = (String::new(), "", true);
    for (line, raw) in lines.iter().zip(page.lines()) {
        if !raw.starts_with(' ') && !raw.is_empty() {
            section = raw;
            kept = section != "Element Flags:";
        } else if section == "Element Properties:" && begins(raw) {
            kept = keep.contains(raw.split_whitespace().next().unwrap());
        } else if section == "Element Actions:" {
            // `"NAME" :  TYPE user_function …` or, in newer ones, `"NAME" -> TYPE  :  g_signal_emit_by_name …`.
            if let [name, _, returned, ..] = line.split_whitespace().collect::<Vec<_>>()[..]
                && name.starts_with('"')
            {
                writeln!(text, " {name}: {returned}").unwrap();
            }
            continue;
        }
        let blank = line.trim().is_empty();
        if kept && !(blank && section == "Element Properties:") {
            writeln!(text, "{line}").unwrap();
        }
    }
    text
}

#[test]
fn the_plugin() {
    let page = inspect("epochfeed").run().success().stdout;
    golden("epochfeed.txt", &(normalised(&page).join("\n") + "\n"));
    assert!(page.contains("  6 features:"), "{page}");
}

#[test]
fn each_element() {
    for name in ELEMENTS {
        let page = inspect(name).run().success().stdout;
        let properties = own_properties(&element(name));
        let keep = properties.iter().map(|property| property.name()).collect();
        let mut text = only(normalised(&page), &page, &keep);
        // gst-inspect-1.0 does not show the nicks.
        writeln!(text, "Nicks:").unwrap();
        for property in &properties {
            writeln!(text, " {}: {}", property.name(), property.nick()).unwrap();
        }
        golden(&format!("{name}.txt"), &text);
    }
}

#[test]
fn every_property_explains_itself() {
    for name in ELEMENTS {
        let element = element(name);
        let properties = own_properties(&element);
        assert!(properties.len() >= 5, "{name}");
        for property in properties {
            let what = format!("{name} {}", property.name());
            let (nick, blurb) = (property.nick(), property.blurb().unwrap_or_default());
            assert!(
                !nick.is_empty() && nick != property.name(),
                "{what}: the nick is the name"
            );
            assert!(
                blurb.len() > nick.len() && blurb != nick,
                "{what}: {blurb:?} explains nothing"
            );
            assert!(
                nick.starts_with(char::is_uppercase) && blurb.starts_with(char::is_uppercase),
                "{what}"
            );
            assert!(!blurb.ends_with('.'), "{what}: a blurb is no sentence");
            assert!(property.flags().contains(glib::ParamFlags::READABLE), "{what}");
            // When a property may be changed is part of its page.
            let bits = property.flags().bits();
            let mutable = [
                gst::PARAM_FLAG_MUTABLE_READY,
                gst::PARAM_FLAG_MUTABLE_PAUSED,
                gst::PARAM_FLAG_MUTABLE_PLAYING,
            ]
            .iter()
            .any(|flag| bits & flag.bits() != 0);
            assert_eq!(
                mutable,
                property.flags().contains(glib::ParamFlags::WRITABLE),
                "{what}: mutability"
            );
            // What a new element has is what the page says.
            let default = property.default_value();
            let value = element.property_value(property.name());
            if property.value_type() != gst::Structure::static_type() {
                assert_eq!(
                    default.serialize().ok(),
                    value.serialize().ok(),
                    "{what}: default and value differ"
                );
            }
            if let Some(class) = glib::EnumClass::with_type(property.value_type()) {
                let (_, chosen) = glib::EnumValue::from_value(default).unwrap();
                assert_eq!(
                    chosen.value(),
                    class.values()[0].value(),
                    "{what}: the first value is the default"
                );
            }
        }
    }
}

#[test]
fn the_pads_the_class_and_the_rank() {
    let pads = |factory: &gst::ElementFactory| {
        let mut names: Vec<_> = factory
            .static_pad_templates()
            .iter()
            .map(|template| (template.name_template().to_owned(), template.presence()))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names
    };
    let both = ["sink", "src"];
    for (name, class, wanted) in [
        ("epochsrc", "Source/File/Image", &both[1..]),
        ("epochdecode", "Codec/Decoder/Image", &both[..]),
        ("hsvquantize", "Filter/Effect/Video", &both[..]),
        ("nhwcpack", "Converter/Video/Tensor", &both[..]),
        ("epochsink", "Sink/Tensor", &both[..1]),
    ] {
        let factory = element(name).factory().unwrap();
        assert_eq!(factory.metadata("klass"), Some(class), "{name}");
        // Nothing may be plugged by itself: playbin must not decode a user's photographs into 640x640.
        assert_eq!(factory.rank(), gst::Rank::NONE, "{name}");
        let found = pads(&factory);
        assert_eq!(
            found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            wanted,
            "{name}"
        );
        assert!(
            found
                .iter()
                .all(|(_, presence)| *presence == gst::PadPresence::Always),
            "{name}"
        );
    }
}

#[test]
fn the_action_signal() {
    let source = element("epochsrc");
    let id = glib::subclass::SignalId::lookup("next-epoch", source.type_()).expect("epochsrc has next-epoch");
    let query = id.query();
    assert!(query.flags().contains(glib::SignalFlags::ACTION));
    assert_eq!(query.return_type().type_(), glib::Type::BOOL);
    assert_eq!(query.n_params(), 0);
    // Without a run there is no next epoch to ask for.
    assert!(!source.emit_by_name::<bool>("next-epoch", &[]));
}

#[test]
fn no_cuda_library_is_linked() {
    let plugin = plugin_folder().join("libgstepochfeed.so");
    let libraries = Job::new("ldd").arg(&plugin).run().success().stdout.to_lowercase();
    assert!(libraries.contains("libgstreamer-1.0.so.0"), "{libraries}");
    for name in ["cuda", "nvrtc", "nvidia", "not found"] {
        assert!(!libraries.contains(name), "{name}: {libraries}");
    }
}
