//! Why a state is refused.

use std::fmt::Display;

use super::config::SamplerError;

/// Why a run cannot continue from a state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Not the JSON object that a state is.
    #[error("the state cannot be read: {problem}; give it exactly as it was saved, or \"\" to start over")]
    Json {
        /// What the parser says, with the line and column or the name of the field.
        problem: String,
    },
    /// Written by a program with another format.
    #[error("version of the state is {found}, this program reads {supported}; start over with state=\"\"")]
    Version {
        /// The version it has.
        found: String,
        /// The version that can be read.
        supported: u32,
    },
    /// A field with a value that no run leads to.
    #[error("{field} of the state is {value}: {problem}; give the state exactly as it was saved")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The settings in it describe no sampler.
    #[error("the state is of an impossible run: {0}")]
    Config(#[from] SamplerError),
    /// It belongs to another dataset or to other settings.
    #[error(
        "{field} of the state is {state}, of this run {run}; make them the same, or start over with state=\"\""
    )]
    Mismatch {
        /// Name of the field.
        field: &'static str,
        /// Its value in the state.
        state: String,
        /// Its value in this run.
        run: String,
    },
}

impl StateError {
    pub(super) fn json(error: serde_json::Error) -> Self {
        StateError::Json {
            problem: shortened(error),
        }
    }

    pub(super) fn field(field: &'static str, value: impl Display, problem: impl Display) -> Self {
        StateError::Field {
            field,
            value: shortened(value),
            problem: shortened(problem),
        }
    }
}

/// The text of a value, as much of it as is enough to recognise it: what is wrong with it may be that it is
/// huge.
pub(super) fn shortened(value: impl Display) -> String {
    const SHOWN: usize = 160;
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(cut);
        text.push('…');
    }
    text
}
