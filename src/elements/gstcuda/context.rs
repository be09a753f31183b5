//! The CUDA contexts that elements share: GstContexts of the type `gst.cuda.context`.
//!
//! Memory can be used only in the context that it was allocated in. nvcodec's elements ask their neighbours for one before
//! they make their own; the answer given here is the device's primary context, which trainers use as well.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use glib::translate::{ToGlibPtr, from_glib, from_glib_full, from_glib_none};
use gst::prelude::*;

use super::super::util::lock;
use super::library::{GstCudaContext, Unavailable, library};
use crate::cuda::{CudaError, Device};

/// The type of the GstContext, and the name of the field that holds the GstCudaContext.
const CONTEXT_TYPE: &str = "gst.cuda.context";
/// Under which a wrapped context keeps its device; nobody reads it.
const DEVICE: &str = "epochfeed-device";

/// A GstCudaContext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::elements) struct Context(gst::Object);

impl Context {
    /// The one that the application, or another element, has given to `element`.
    pub fn given_to(element: &impl IsA<gst::Element>) -> Option<Self> {
        let context = element.context(CONTEXT_TYPE)?;
        let library = library().ok()?;
        let object: gst::Object = context.structure().get(CONTEXT_TYPE).ok()?;
        // SAFETY: the function takes nothing and registers the type if need be.
        let wanted: glib::Type = unsafe { from_glib((library.context_get_type)()) };
        object.type_().is_a(wanted).then_some(Self(object))
    }

    /// The primary context of `device`, one object for the whole process as long as anybody holds it. It keeps the
    /// device.
    pub fn of_device(device: &Arc<Device>) -> Result<Self, Unavailable> {
        static SHARED: Mutex<BTreeMap<usize, glib::WeakRef<gst::Object>>> = Mutex::new(BTreeMap::new());
        let library = library()?;
        let mut shared = lock(&SHARED);
        if let Some(context) = shared.get(&device.ordinal()).and_then(glib::WeakRef::upgrade) {
            return Ok(Self(context));
        }
        // SAFETY: handle and device are those of one CUDA device, and stay as long as the object does, which is given a
        // reference on the device below. The result is a new reference or NULL.
        let object: Option<gst::Object> = unsafe {
            from_glib_full(
                (library.context_new_wrapped)(device.raw_context(), device.raw_device())
                    .cast::<gst::ffi::GstObject>(),
            )
        };
        let object = object.ok_or(Unavailable::Wrap(device.ordinal()))?;
        // SAFETY: nobody reads it as anything, or at all.
        unsafe { object.set_data(DEVICE, device.clone()) };
        shared.insert(device.ordinal(), object.downgrade());
        Ok(Self(object))
    }

    /// The context behind memory.
    ///
    /// # Safety
    /// `context` points to a living GstCudaContext.
    pub(super) unsafe fn from_memory(context: *mut GstCudaContext) -> Self {
        // SAFETY: it is a GstObject, and lives; the result holds a reference of its own.
        Self(unsafe { from_glib_none(context.cast::<gst::ffi::GstObject>()) })
    }

    /// The number of its device, as nvcodec's elements name it.
    pub fn ordinal(&self) -> usize {
        self.0.property::<u32>("cuda-device-id") as usize
    }

    /// A device for work in this context.
    ///
    /// # Safety
    /// It, and what is made from it, must not outlive the context, which `self` keeps.
    pub unsafe fn device(&self) -> Result<Arc<Device>, CudaError> {
        // SAFETY: the handle is that of a living context, and the caller drops the device before that.
        unsafe { Device::adopt(self.handle()) }
    }

    /// The CUcontext.
    fn handle(&self) -> *mut c_void {
        let object: *mut gst::ffi::GstObject = self.0.to_glib_none().0;
        match library() {
            // SAFETY: every constructor here makes sure that it is a GstCudaContext.
            Ok(library) => unsafe { (library.context_get_handle)(object.cast()) },
            Err(_) => unreachable!("a GstCudaContext comes from this library"),
        }
    }
}

/// Whether `query` asks for a CUDA context.
pub(in crate::elements) fn is_asked_for(query: &gst::QueryRef) -> bool {
    matches!(query.view(), gst::QueryView::Context(query) if query.context_type() == CONTEXT_TYPE)
}

/// Answers a query that [asks for](is_asked_for) a CUDA context.
pub(in crate::elements) fn answer(query: &mut gst::QueryRef, context: &Context) -> bool {
    let (gst::QueryViewMut::Context(query), Ok(library)) = (query.view_mut(), library()) else {
        return false;
    };
    let object: *mut gst::ffi::GstObject = context.0.to_glib_none().0;
    // SAFETY: the object is a GstCudaContext; the result is a new GstContext that holds a reference on it.
    let context: gst::Context = unsafe { from_glib_full((library.new_context)(object.cast())) };
    query.set_context(&context);
    true
}
