//! The end of an epoch in the stream: SEGMENT_DONE, with the epoch's ledger as far as it is known there.
//!
//! Custom events get stuck in C decoders until the next frame; SEGMENT_DONE drains them and is forwarded at once.
//! Each element adds what it alone knows, so that the ledger of an epoch that nobody takes vanishes with its data.

use crate::sampler::Ledger;

/// What a SEGMENT_DONE event of ours says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch, from 0.
    pub epoch: u64,
    /// Position at which this run began it: not 0 in the epoch that a run resumes in.
    pub start: u64,
    /// Its ledger; `delivered` is not known before the consumer has counted.
    pub ledger: Ledger,
    /// Why the epoch could not be prepared to its end, if so; nothing of it is delivered then.
    pub error: Option<String>,
}

impl EpochEnd {
    /// What `event` says, if it is a SEGMENT_DONE that began in an epochsrc.
    pub fn get(event: &gst::Event) -> Option<Self> {
        if event.type_() != gst::EventType::SegmentDone {
            return None;
        }
        let fields = event.structure()?;
        Some(Self {
            epoch: fields.get("epochfeed-epoch").ok()?,
            start: fields.get("epochfeed-start").ok()?,
            ledger: Ledger {
                listed: fields.get("epochfeed-listed").ok()?,
                delivered: 0,
                skipped: fields.get("epochfeed-skipped").ok()?,
                dropped: fields.get("epochfeed-dropped").ok()?,
                padded: fields.get("epochfeed-padded").ok()?,
                replaced: fields.get("epochfeed-replaced").ok()?,
            },
            error: fields.get("epochfeed-error").ok(),
        })
    }

    /// A SEGMENT_DONE at `position`, of the sequence of events `seqnum`.
    pub fn event(&self, position: gst::GenericFormattedValue, seqnum: gst::Seqnum) -> gst::Event {
        gst::event::SegmentDone::builder(position)
            .seqnum(seqnum)
            .other_field("epochfeed-epoch", self.epoch)
            .other_field("epochfeed-start", self.start)
            .other_field("epochfeed-listed", self.ledger.listed)
            .other_field("epochfeed-skipped", self.ledger.skipped)
            .other_field("epochfeed-dropped", self.ledger.dropped)
            .other_field("epochfeed-padded", self.ledger.padded)
            .other_field("epochfeed-replaced", self.ledger.replaced)
            .other_field_if_some("epochfeed-error", self.error.as_deref())
            .build()
    }

    /// `event` with this ledger in place of its own.
    pub fn update(&self, event: &gst::Event) -> gst::Event {
        match event.view() {
            gst::EventView::SegmentDone(done) => self.event(done.get(), event.seqnum()),
            _ => event.clone(),
        }
    }
}
