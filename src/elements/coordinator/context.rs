use std::sync::Arc;

use gst::prelude::*;

use super::Coordinator;

/// Type of the GstContext that carries the coordinator.
const CONTEXT_TYPE: &str = "epochfeed.coordinator";
const FIELD: &str = "coordinator";

/// The coordinator as a value of GObject's type system.
#[derive(Clone, Debug, glib::SharedBoxed)]
#[shared_boxed_type(name = "EpochfeedCoordinator")]
pub struct CoordinatorHandle(pub Arc<Coordinator>);

/// Answers a CONTEXT query for the coordinator; false if it is another query.
pub fn answer(query: &mut gst::QueryRef, coordinator: &Arc<Coordinator>) -> bool {
    let gst::QueryViewMut::Context(query) = query.view_mut() else {
        return false;
    };
    if query.context_type() != CONTEXT_TYPE {
        return false;
    }
    let mut context = gst::Context::new(CONTEXT_TYPE, false);
    if let Some(context) = context.get_mut() {
        context
            .structure_mut()
            .set(FIELD, CoordinatorHandle(coordinator.clone()));
    }
    query.set_context(&context);
    true
}

/// The coordinator of the `epochsrc` upstream of the sink pad `pad`, if there is one and it is linked already.
pub fn find(pad: &gst::Pad) -> Option<Arc<Coordinator>> {
    let mut query = gst::query::Context::new(CONTEXT_TYPE);
    if !pad.peer_query(&mut query) {
        return None;
    }
    let context = query.context_owned()?;
    context
        .structure()
        .get::<CoordinatorHandle>(FIELD)
        .ok()
        .map(|handle| handle.0)
}
