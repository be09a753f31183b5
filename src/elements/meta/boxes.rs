use gst::glib::translate::*;

use super::{read, write};
use crate::dataset::{Annotation, BoxFormat, Target};

/// `epochfeed-boxes`: the boxes of an image, or of the frame that it became.
///
/// epochsrc says what the annotation says; epochdecode puts the boxes of the frame in its place. It is tagged as dependent on
/// size and orientation, so that an element which changes the geometry of frames (videoscale, videocrop, videoflip) drops it,
/// and it says for which size it holds, so that nhwcpack notices one that does not.
///
/// In the structure `format` is `corner-pixels`, `center-normalized` or `frame-corners`; `boxes` is a `GBytes` of 20 bytes a
/// box, little-endian: the class as an unsigned integer of 32 bits, and four float32. With `frame-corners` there are also
/// `scale-x`, `scale-y`, `pad-left` and `pad-top`.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxesMeta {
    /// COCO's id of the image; where the format has none, its index in the dataset.
    pub image_id: i64,
    /// Width and height: the image's as its annotation says, if it does; the frame's.
    pub size: Option<(u32, u32)>,
    /// What the boxes are of, and how they are written.
    pub of: BoxesOf,
    /// The boxes, in the annotation's order.
    pub targets: Vec<Target>,
}

/// What the boxes of a [`BoxesMeta`] are of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoxesOf {
    /// The image as it was annotated.
    Image(BoxFormat),
    /// The frame: left, top, right, bottom, in pixels of it.
    Frame(Fitted),
}

/// How an image was fitted into its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fitted {
    /// Pixels of the frame for a pixel of the image, horizontally and vertically; the image turned as it is in the frame.
    pub scale: [f64; 2],
    /// Pixels of the frame left of the image and above it.
    pub pad: [u32; 2],
}

/// Bytes of a box.
const BOX: usize = 20;
const FRAME: &str = "frame-corners";

impl BoxesMeta {
    /// The meta's name.
    pub const NAME: &'static str = "epochfeed-boxes";

    /// The boxes of `annotation`.
    pub fn of(annotation: &Annotation<'_>) -> Self {
        Self {
            image_id: annotation.image_id,
            size: annotation.size,
            of: BoxesOf::Image(annotation.format),
            targets: annotation.targets.to_vec(),
        }
    }

    /// How the image was fitted, if these are boxes of a frame of `size`.
    pub fn fitted(&self, size: (u32, u32)) -> Option<Fitted> {
        match self.of {
            BoxesOf::Frame(fitted) if self.size == Some(size) => Some(fitted),
            _ => None,
        }
    }

    /// The meta of `buffer`, if it has one.
    pub fn get(buffer: &gst::BufferRef) -> Option<Self> {
        let meta = read(buffer, Self::NAME)?;
        let fields = meta.structure();
        let of = match fields.get::<&str>("format").ok()? {
            "corner-pixels" => BoxesOf::Image(BoxFormat::CornerPixels),
            "center-normalized" => BoxesOf::Image(BoxFormat::CenterNormalized),
            FRAME => BoxesOf::Frame(Fitted {
                scale: [fields.get("scale-x").ok()?, fields.get("scale-y").ok()?],
                pad: [fields.get("pad-left").ok()?, fields.get("pad-top").ok()?],
            }),
            _ => return None,
        };
        let size = (fields.get("width").ok()?, fields.get("height").ok()?);
        Some(Self {
            image_id: fields.get("image-id").ok()?,
            size: (size != (0, 0)).then_some(size),
            of,
            targets: unpack(&fields.get::<glib::Bytes>("boxes").ok()?)?,
        })
    }

    /// Adds the meta to `buffer`, or replaces it.
    ///
    /// # Errors
    /// If the meta is not registered, that is, before [`register`](crate::elements::register).
    pub fn set(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        let mut meta = write(buffer, Self::NAME)?;
        let fields = meta.mut_structure();
        let (width, height) = self.size.unwrap_or_default();
        fields.set("image-id", self.image_id);
        fields.set("width", width);
        fields.set("height", height);
        fields.set(
            "format",
            match self.of {
                BoxesOf::Image(BoxFormat::CornerPixels) => "corner-pixels",
                BoxesOf::Image(BoxFormat::CenterNormalized) => "center-normalized",
                BoxesOf::Frame(_) => FRAME,
            },
        );
        match self.of {
            BoxesOf::Frame(Fitted { scale, pad }) => {
                fields.set("scale-x", scale[0]);
                fields.set("scale-y", scale[1]);
                fields.set("pad-left", pad[0]);
                fields.set("pad-top", pad[1]);
            }
            BoxesOf::Image(_) => fields.remove_fields(["scale-x", "scale-y", "pad-left", "pad-top"]),
        }
        fields.set("boxes", pack(&self.targets));
        Ok(())
    }
}

fn pack(targets: &[Target]) -> glib::Bytes {
    let mut bytes = Vec::with_capacity(targets.len() * BOX);
    for target in targets {
        bytes.extend_from_slice(&target.class.to_le_bytes());
        for number in target.bbox {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    glib::Bytes::from_owned(bytes)
}

/// `None` if it is not a whole number of boxes.
fn unpack(bytes: &[u8]) -> Option<Vec<Target>> {
    let (boxes, rest) = bytes.as_chunks::<BOX>();
    let number = |bytes: &[u8; BOX], at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    rest.is_empty().then(|| {
        boxes
            .iter()
            .map(|bytes| Target {
                class: u32::from_le_bytes(number(bytes, 0)),
                bbox: [4, 8, 12, 16].map(|at| f32::from_le_bytes(number(bytes, at))),
            })
            .collect()
    })
}

/// Makes the meta known to GStreamer.
pub(super) fn register() {
    let tags = [c"video", c"size", c"orientation"].map(std::ffi::CStr::as_ptr);
    let mut tags = [tags[0], tags[1], tags[2], std::ptr::null()];
    // SAFETY: GStreamer is initialised before elements are registered; the name and the tags, which end with a null, are copied
    // by the call; `keep` has the type that is asked for and needs no data, so that there is none to free.
    unsafe {
        gst::ffi::gst_meta_register_custom(
            BoxesMeta::NAME.to_glib_none().0,
            tags.as_mut_ptr(),
            Some(keep),
            std::ptr::null_mut(),
            None,
        );
    }
}

/// Decides for elements which make a new buffer whether the boxes go with it: with a copy, and through a converter that keeps
/// the size and the pixels' aspect. Without this, videoconvert, which is one element with videoscale, would drop them.
///
/// # Safety
/// As GStreamer calls it: `source` carries `meta`, `target` is writable, and `data` is what `kind` says.
unsafe extern "C" fn keep(
    target: *mut gst::ffi::GstBuffer,
    meta: *mut gst::ffi::GstCustomMeta,
    _source: *mut gst::ffi::GstBuffer,
    kind: glib::ffi::GQuark,
    data: glib::ffi::gpointer,
    _user_data: glib::ffi::gpointer,
) -> glib::ffi::gboolean {
    // SAFETY: no arguments.
    let scale = unsafe { gst_video::ffi::gst_video_meta_transform_scale_get_quark() };
    let is_copy = kind == glib::Quark::from_str("gst-copy").into_glib();
    let alike = if is_copy {
        let copy = data.cast::<gst::ffi::GstMetaTransformCopy>();
        // SAFETY: of this kind is the data of a copy, which is there while we are called.
        unsafe { copy.as_ref() }.is_none_or(|copy| copy.region == glib::ffi::GFALSE)
    } else if kind == scale {
        let scaling = data.cast::<gst_video::ffi::GstVideoMetaTransform>();
        // SAFETY: of this kind are the two descriptions of frames, which are there while we are called.
        unsafe { scaling.as_ref() }.is_some_and(|scaling| {
            // SAFETY: as above; both are filled in.
            let (from, to) = unsafe { (&*scaling.in_info, &*scaling.out_info) };
            // Between pixels of unequal aspect a scaler adds borders to keep the picture's, within the same size.
            let shape =
                |info: &gst_video::ffi::GstVideoInfo| (info.width, info.height, info.par_n, info.par_d);
            shape(from) == shape(to)
        })
    } else {
        false
    };
    if !alike {
        return glib::ffi::GFALSE;
    }
    // SAFETY: the meta is on a buffer that is there while we are called, and the target is writable.
    let (fields, target) = unsafe {
        let fields = gst::ffi::gst_custom_meta_get_structure(meta);
        (
            gst::StructureRef::from_glib_borrow(fields),
            gst::BufferRef::from_mut_ptr(target),
        )
    };
    let Ok(mut copy) = write(target, BoxesMeta::NAME) else {
        return glib::ffi::GFALSE;
    };
    let copied = copy.mut_structure();
    for (name, value) in fields.iter() {
        copied.set_value(name, value.clone());
    }
    glib::ffi::GTRUE
}
