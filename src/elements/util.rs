use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use glib::HasParamSpec;
use glib::value::{FromValue, ValueType};
use gst::prelude::*;

/// Locks; a poisoned lock is used all the same. Under the elements' locks every change is a plain assignment, and a
/// panic is an element error already.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds since `start`.
pub(super) fn nanoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Whether the task of `pad` that a flush has `started` again goes on. The flush may come from another thread than a change
/// of state that has stopped the task in the meantime, and must not outlive that: then `stop` stops it once more, in time,
/// since the sink pad's deactivation waits for the flush.
pub(super) fn not_behind_a_stop(pad: &gst::Pad, started: bool, stop: impl FnOnce()) -> bool {
    if pad.is_active() {
        return started;
    }
    stop();
    false
}

/// A GstStructure as the value of a read-only property. gstreamer-rs has no property type for structures; to GObject
/// this is one.
#[derive(Clone, Debug)]
pub struct Statistics(pub gst::Structure);

impl StaticType for Statistics {
    fn static_type() -> glib::Type {
        gst::Structure::static_type()
    }
}

impl ValueType for Statistics {
    type Type = Self;
}

// SAFETY: the checker accepts values of GstStructure's type only, which is what the value is read as.
unsafe impl<'a> FromValue<'a> for Statistics {
    type Checker = glib::value::GenericValueTypeChecker<Self>;

    unsafe fn from_value(value: &'a glib::Value) -> Self {
        // SAFETY: the caller has checked the type, which is that of GstStructure.
        Self(unsafe { gst::Structure::from_value(value) })
    }
}

impl ToValue for Statistics {
    fn to_value(&self) -> glib::Value {
        self.0.to_value()
    }

    fn value_type(&self) -> glib::Type {
        Self::static_type()
    }
}

impl From<Statistics> for glib::Value {
    fn from(statistics: Statistics) -> Self {
        statistics.to_value()
    }
}

impl HasParamSpec for Statistics {
    type ParamSpec = glib::ParamSpecBoxed;
    type SetValue = Self;
    type BuilderFn = fn(&str) -> glib::ParamSpecBoxedBuilder<'_, Self>;

    fn param_spec_builder() -> Self::BuilderFn {
        |name| glib::ParamSpecBoxed::builder(name)
    }
}
