//! Pipelines inside the test's own process, of the elements of this crate.

use gst::prelude::*;

/// How long a pipeline may take to do what a test waits for.
pub const LIMIT: gst::ClockTime = gst::ClockTime::from_seconds(20);

/// Makes the elements available; the first call initialises GStreamer.
pub fn init() {
    epochfeed::plugin_register_static().unwrap();
    let factory = gst::ElementFactory::find("epochsrc").unwrap();
    assert_eq!(
        factory.plugin().unwrap().filename(),
        None,
        "the elements must be those that are compiled into the test"
    );
}

/// A pipeline that is brought to NULL when it goes away.
pub struct Pipeline(pub gst::Pipeline);

impl Pipeline {
    /// The pipeline of a gst-launch line.
    pub fn new(line: &str) -> Self {
        init();
        let element = gst::parse::launch(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        match element.downcast::<gst::Pipeline>() {
            Ok(pipeline) => Self(pipeline),
            Err(element) => {
                let pipeline = gst::Pipeline::new();
                pipeline.add(&element).unwrap();
                Self(pipeline)
            }
        }
    }

    /// As [`Pipeline::new`], started.
    pub fn playing(line: &str) -> Self {
        let pipeline = Self::new(line);
        pipeline.set(gst::State::Playing);
        pipeline
    }

    /// The element called `name`.
    pub fn element(&self, name: &str) -> gst::Element {
        self.0
            .by_name(name)
            .unwrap_or_else(|| panic!("no element {name}"))
    }

    /// Asks for a state; it must not be refused.
    #[track_caller]
    pub fn set(&self, state: gst::State) {
        self.0
            .set_state(state)
            .unwrap_or_else(|_| panic!("{state:?} is refused: {:?}", self.errors()));
    }

    /// Asks for a state and waits until it is reached.
    #[track_caller]
    pub fn reach(&self, state: gst::State) {
        self.set(state);
        let (result, reached, _) = self.0.state(LIMIT);
        assert_eq!(reached, state, "{result:?}: {:?}", self.errors());
    }

    /// The errors that are on the bus.
    pub fn errors(&self) -> Vec<String> {
        std::iter::from_fn(|| self.0.bus().unwrap().pop_filtered(&[gst::MessageType::Error]))
            .map(|message| describe(&message))
            .collect()
    }

    /// Waits for a message for which `wanted` holds; an error that is not wanted fails the test.
    #[track_caller]
    pub fn wait(&self, mut wanted: impl FnMut(&gst::Message) -> bool) -> gst::Message {
        loop {
            let message = self
                .0
                .bus()
                .unwrap()
                .timed_pop(LIMIT)
                .expect("the pipeline hangs");
            if wanted(&message) {
                return message;
            }
            assert_ne!(message.type_(), gst::MessageType::Error, "{}", describe(&message));
        }
    }

    /// Waits for the end of the stream.
    #[track_caller]
    pub fn wait_eos(&self) {
        self.wait(|message| message.type_() == gst::MessageType::Eos);
    }

    /// Waits for an error and returns what it says.
    #[track_caller]
    pub fn wait_error(&self) -> String {
        let message =
            self.wait(|message| matches!(message.type_(), gst::MessageType::Error | gst::MessageType::Eos));
        assert_eq!(message.type_(), gst::MessageType::Error, "a clean end");
        describe(&message)
    }

    /// Waits for the element message `name`.
    #[track_caller]
    pub fn wait_element(&self, name: &str) -> gst::Structure {
        let message = self.wait(|message| {
            message.type_() == gst::MessageType::Element
                && message
                    .structure()
                    .is_some_and(|structure| structure.name() == name)
        });
        message.structure().unwrap().to_owned()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}

/// An error's text and details; another message as it is.
pub fn describe(message: &gst::Message) -> String {
    match message.view() {
        gst::MessageView::Error(error) => {
            format!("{}; {}", error.error(), error.debug().unwrap_or_default())
        }
        _ => format!("{message:?}"),
    }
}

/// Runs the pipeline of a gst-launch line to its error, and returns all that it said.
///
/// Not a child process, because gst-launch-1.0 1.22 itself hangs after about 1 in 20 errors during preroll, with any
/// elements; what it shows of an error is tested in `input_exit_codes.rs`.
///
/// # Panics
/// If the stream ends cleanly, or nothing happens.
#[track_caller]
pub fn error_of(line: &str) -> String {
    init();
    let element = match gst::parse::launch(line) {
        Ok(element) => element,
        Err(error) => return error.to_string(),
    };
    let pipeline = Pipeline(element.downcast().unwrap());
    // A start that fails has said why on the bus.
    let _ = pipeline.0.set_state(gst::State::Playing);
    let first = pipeline.wait_error();
    let _ = pipeline.0.set_state(gst::State::Null);
    std::iter::once(first)
        .chain(pipeline.errors())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Runs the pipeline of a gst-launch line to its error, which must hold every one of `words`.
#[track_caller]
pub fn assert_fails(line: &str, words: &[&str]) {
    let error = error_of(line);
    for word in words {
        assert!(
            error.contains(word),
            "{word:?} is not in the error of {line}\n{error}"
        );
    }
}
