//! Which threads are the pipeline's own, and how to do what they must not do themselves.
//!
//! A thread that brings its own pipeline to a stop waits for itself. An application comes to that easily: it drops the
//! feed inside a pad probe or while it handles a message. So a feed knows its streaming threads, from the messages with
//! which each task says that it begins and ends.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::ThreadId;

use crate::elements::util::lock;

/// The streaming threads of one pipeline.
#[derive(Debug, Default)]
pub(super) struct StreamingThreads(Mutex<HashSet<ThreadId>>);

impl StreamingThreads {
    /// Takes note of a STREAM_STATUS message, which is posted by the thread that it is about.
    pub fn note(&self, status: gst::StreamStatusType) {
        let thread = std::thread::current().id();
        match status {
            gst::StreamStatusType::Enter => lock(&self.0).insert(thread),
            gst::StreamStatusType::Leave => lock(&self.0).remove(&thread),
            _ => false,
        };
    }

    /// Whether the calling thread is one of them.
    pub fn has_current(&self) -> bool {
        lock(&self.0).contains(&std::thread::current().id())
    }

    /// Does `work` now; on one of these threads, has another thread do it, which this one does not wait for. If the system
    /// refuses a thread, `work` is left to GStreamer's own pool by way of `pipeline`.
    pub fn outside(&self, name: &str, pipeline: &gst::Pipeline, work: impl Fn() + Clone + Send + 'static) {
        if !self.has_current() {
            return work();
        }
        let thread = std::thread::Builder::new().name(name.to_owned());
        if thread.spawn(work.clone()).is_err() {
            use gst::prelude::*;
            pipeline.call_async(move |_| work());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn work_leaves_streaming_threads_only() {
        gst::init().unwrap();
        let pipeline = gst::Pipeline::new();
        let threads = StreamingThreads::default();
        let here = std::thread::current().id();
        let (send, receive) = std::sync::mpsc::channel();
        let work = move || send.send(std::thread::current().id()).unwrap();
        threads.outside("test", &pipeline, work.clone());
        assert_eq!(receive.recv().unwrap(), here);
        threads.note(gst::StreamStatusType::Create);
        assert!(!threads.has_current());
        threads.note(gst::StreamStatusType::Enter);
        assert!(threads.has_current());
        threads.outside("test", &pipeline, work.clone());
        assert_ne!(receive.recv().unwrap(), here);
        threads.note(gst::StreamStatusType::Leave);
        threads.outside("test", &pipeline, work);
        assert_eq!(receive.recv().unwrap(), here);
    }
}
