//! An element that is given its properties.

use gst::prelude::*;

use super::error::FeedError;

/// An element whose properties are checked before they are set, against what the element itself says it takes: GObject
/// ends the process for a value out of range.
pub(super) struct Part(gst::Element);

impl Part {
    /// A new element, called as its factory.
    pub fn make(factory: &str) -> Result<Self, FeedError> {
        let made = gst::ElementFactory::make(factory).name(factory).build();
        made.map(Self).map_err(|error| FeedError::Element {
            name: factory.to_owned(),
            reason: error.to_string(),
        })
    }

    /// The element.
    pub fn element(&self) -> gst::Element {
        self.0.clone()
    }

    /// The error that `setting` cannot be `value`.
    pub fn refuse(setting: &str, value: impl std::fmt::Display, allowed: &str) -> FeedError {
        FeedError::Setting {
            setting: setting.to_owned(),
            value: value.to_string(),
            allowed: allowed.to_owned(),
        }
    }

    /// Sets a property to a value of its enumeration.
    pub fn choice(self, name: &str, value: impl Into<glib::Value>) -> Self {
        self.0.set_property(name, value);
        self
    }

    /// Sets an enumeration by the nick of its value.
    pub fn name(self, name: &str, nick: &str) -> Result<Self, FeedError> {
        let class = self
            .0
            .find_property(name)
            .and_then(|spec| glib::EnumClass::with_type(spec.value_type()));
        let value = class.as_ref().and_then(|class| class.to_value_by_nick(nick));
        match value {
            Some(value) => self.0.set_property_from_value(name, &value),
            None => {
                return Err(Self::refuse(
                    name,
                    nick,
                    "one of the values that the element knows",
                ));
            }
        }
        Ok(self)
    }

    /// Sets a property of type `guint` or `guint64`.
    pub fn number(self, name: &str, value: u64) -> Result<Self, FeedError> {
        let spec = self.0.find_property(name);
        let narrow = spec
            .as_ref()
            .and_then(|spec| spec.downcast_ref::<glib::ParamSpecUInt>())
            .map(|spec| (u64::from(spec.minimum()), u64::from(spec.maximum())));
        let wide = spec
            .as_ref()
            .and_then(|spec| spec.downcast_ref::<glib::ParamSpecUInt64>())
            .map(|spec| (spec.minimum(), spec.maximum()));
        let Some((least, most)) = narrow.or(wide) else {
            return Err(Self::refuse(name, value, "no number: the element takes none"));
        };
        if !(least..=most).contains(&value) {
            return Err(Self::refuse(name, value, &format!("{least} to {most}")));
        }
        match u32::try_from(value) {
            Ok(value) if narrow.is_some() => self.0.set_property(name, value),
            _ => self.0.set_property(name, value),
        }
        Ok(self)
    }

    /// Sets a property of type `gint`.
    pub fn signed(self, name: &str, value: i64) -> Result<Self, FeedError> {
        let spec = self.0.find_property(name);
        let range = spec
            .as_ref()
            .and_then(|spec| spec.downcast_ref::<glib::ParamSpecInt>())
            .map(|spec| (spec.minimum(), spec.maximum()));
        match (range, i32::try_from(value)) {
            (Some((least, most)), Ok(number)) if (least..=most).contains(&number) => {
                self.0.set_property(name, number);
                Ok(self)
            }
            (range, _) => {
                let (least, most) = range.unwrap_or_default();
                Err(Self::refuse(name, value, &format!("{least} to {most}")))
            }
        }
    }

    /// Sets a property of type `gdouble`.
    pub fn real(self, name: &str, value: f64) -> Result<Self, FeedError> {
        let spec = self.0.find_property(name);
        let range = spec
            .as_ref()
            .and_then(|spec| spec.downcast_ref::<glib::ParamSpecDouble>())
            .map(|spec| (spec.minimum(), spec.maximum()));
        match range {
            Some((least, most)) if (least..=most).contains(&value) => {
                self.0.set_property(name, value);
                Ok(self)
            }
            range => {
                let (least, most) = range.unwrap_or_default();
                Err(Self::refuse(name, value, &format!("{least} to {most}")))
            }
        }
    }

    /// Sets a text.
    pub fn text(self, name: &str, value: &str) -> Result<Self, FeedError> {
        // C would read up to the first one.
        if value.contains('\0') {
            return Err(Self::refuse(
                name,
                format!("{value:?}"),
                "text without NUL characters",
            ));
        }
        self.0.set_property(name, value);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_an_element_takes_is_set() {
        crate::plugin_register_static().unwrap();
        let refused = |result: Result<Part, FeedError>| match result {
            Err(FeedError::Setting { setting, allowed, .. }) => (setting, allowed),
            other => panic!("{:?}", other.map(|_| "taken")),
        };
        let part = || Part::make("epochsrc").unwrap();
        let of = |setting: &str, allowed: &str| (setting.to_owned(), allowed.to_owned());
        assert_eq!(refused(part().number("io-depth", 0)), of("io-depth", "1 to 1024"));
        assert_eq!(
            refused(part().number("world-size", 1 << 32)),
            of("world-size", "1 to 4294967295")
        );
        assert_eq!(
            refused(part().signed("epochs", -2)),
            of("epochs", "-1 to 2147483647")
        );
        assert_eq!(refused(part().signed("epochs", 1 << 31)).0, "epochs");
        assert_eq!(refused(part().name("shuffle", "coin")).0, "shuffle");
        assert_eq!(refused(part().text("location", "a\0b")).0, "location");
        let jitter = Part::make("hsvquantize").unwrap();
        assert_eq!(refused(jitter.real("hue", f64::NAN)), of("hue", "0 to 1"));
        assert!(matches!(
            Part::make("nothing-of-ours"),
            Err(FeedError::Element { .. })
        ));
        let part = part()
            .number("seed", u64::MAX)
            .unwrap()
            .signed("epochs", -1)
            .unwrap();
        assert_eq!(part.element().property::<u64>("seed"), u64::MAX);
        assert_eq!(part.element().property::<i32>("epochs"), -1);
    }
}
