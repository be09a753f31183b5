//! What the elements say: errors end the feed, the rest is for whoever listens.

use std::sync::Arc;

use super::error::FeedError;
use super::exchange::Exchange;
use super::threads::StreamingThreads;

/// What the application does with messages.
pub(super) type Listener = dyn Fn(&gst::Message) + Send + Sync;

/// Looks at every message on the thread that posts it. None is left on the bus: nobody may be there to take it off, and a
/// run without end would fill it.
pub(super) fn watch(
    bus: &gst::Bus,
    exchange: Arc<Exchange>,
    threads: Arc<StreamingThreads>,
    listener: Option<Arc<Listener>>,
) {
    bus.set_sync_handler(move |_, message| {
        match message.view() {
            gst::MessageView::StreamStatus(status) => threads.note(status.get().0),
            gst::MessageView::Error(error) => exchange.fail(FeedError::from_message(error)),
            _ => (),
        }
        if let Some(listener) = &listener {
            listener(message);
        }
        gst::BusSyncReply::Drop
    });
}
