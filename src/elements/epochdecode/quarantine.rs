//! The user's list of files that cannot be used: one line of JSON each, written when the fault is told.
//!
//! Lines are appended whole, by one write each, so that several processes may share a file and a killed one leaves at most
//! its own last line unfinished; that is mended at the next start. A file that is listed is not listed again.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gst::subclass::prelude::*;
use rustix::fs::OFlags;
use serde::Serialize;

use super::super::faults::{Class, Fault};
use super::super::util::lock;
use super::imp::EpochDecode;
use crate::dataset::Exclusions;

/// The open list.
pub(super) struct Quarantine {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// What is listed.
    listed: HashSet<String>,
    /// Writing has failed, and that has been told.
    failed: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    uri: &'a str,
    class: &'a str,
    reason: &'a str,
}

impl Quarantine {
    /// Opens the list at `path`, which is made if it is not there.
    fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            // For what is refused below: opening a device may wait, or make it the process's terminal.
            .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
            .open(path)?;
        if !file.metadata()?.is_file() {
            // It has no end to read to, and writing to it may wait for whoever is at its other end.
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        if !text.is_empty() && !text.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        Ok(Self {
            path: path.to_owned(),
            inner: Mutex::new(Inner {
                file,
                listed: Exclusions::uris(&text).collect(),
                failed: false,
            }),
        })
    }

    /// Lists the file `uri`, unless it is listed or not to blame.
    ///
    /// # Errors
    /// The first time that it cannot be written; the run goes on without.
    fn add(&self, uri: &str, fault: &Fault) -> io::Result<()> {
        if fault.class == Class::Internal || uri.is_empty() {
            return Ok(());
        }
        // Held over the write: two threads would list a file twice. Nobody else waits for this lock.
        let mut inner = lock(&self.inner);
        if inner.failed || !inner.listed.insert(uri.to_owned()) {
            return Ok(());
        }
        let line = Line {
            uri,
            class: fault.class.as_str(),
            reason: &fault.reason,
        };
        let written = serde_json::to_vec(&line)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                inner.file.write_all(&line)
            });
        inner.failed = written.is_err();
        written
    }
}

/// Opens the list at `path`; the error message is posted by the caller.
pub(super) fn open(path: &Path) -> Result<Quarantine, gst::ErrorMessage> {
    Quarantine::open(path).map_err(|error| {
        gst::error_msg!(
            gst::ResourceError::OpenWrite,
            ("Cannot open the quarantine list {}: {error}", path.display()),
            ["Set quarantine to a file in a folder that exists and can be written to"]
        )
    })
}

impl EpochDecode {
    /// Puts a file whose fault is told on the list of those, if there is one.
    pub(super) fn set_aside(&self, uri: &str, fault: &Fault) {
        if let Some(quarantine) = self.quarantine()
            && let Err(error) = quarantine.add(uri, fault)
        {
            gst::element_imp_warning!(
                self,
                gst::ResourceError::Write,
                (
                    "Cannot write the quarantine list {}: {error}",
                    quarantine.path.display()
                ),
                ["The run goes on without it"]
            );
        }
    }
}
