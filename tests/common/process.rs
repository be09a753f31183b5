//! A child process that cannot outlive its time limit.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a pipeline may take unless a test says otherwise.
const LIMIT: Duration = Duration::from_secs(20);
/// How long the pipes of a dead child may stay open (a grandchild may hold them) before their content is given up.
const GRACE: Duration = Duration::from_secs(1);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it: 6 is a failed assertion or `G_DEBUG=fatal_warnings`, 11 a crash.
    Signal(i32),
    /// It was killed at the time limit.
    TimedOut,
}

/// What a finished process left.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// All of its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// All of its standard error, likewise.
    pub stderr: String,
    /// From start to end.
    pub wall: Duration,
    command: String,
}

impl Outcome {
    /// Fails the test, showing all output, unless the process exited with 0.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.end, End::Code(0), "{self}");
        self
    }

    /// Fails the test unless the process exited by itself with another code than 0, and wrote every one of `words`
    /// (a file's name, a reason) to standard error.
    #[track_caller]
    pub fn failure(self, words: &[&str]) -> Self {
        assert!(
            matches!(self.end, End::Code(code) if code != 0),
            "an orderly failure was expected\n{self}"
        );
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is not in the errors\n{self}"
            );
        }
        self
    }

    /// What the `leaks` tracer found alive at the end; see [`Job::trace_leaks`].
    pub fn leaks(&self) -> Vec<&str> {
        // The tracer also logs the format of such lines when it starts.
        self.stderr
            .lines()
            .filter(|line| line.contains("object-alive, ") && !line.contains("new format string"))
            .collect()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            end,
            stdout,
            stderr,
            wall,
            command,
        } = self;
        write!(
            f,
            "{command}\nended with {end:?} after {wall:?}\n-- stdout\n{stdout}\n-- stderr\n{stderr}"
        )
    }
}

/// A command line with its limit.
pub struct Job {
    program: String,
    arguments: Vec<std::ffi::OsString>,
    variables: Vec<(String, std::ffi::OsString)>,
    limit: Duration,
    expects_error: bool,
}

impl Job {
    /// A job that runs `program` without arguments.
    pub fn new(program: impl AsRef<str>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            limit: LIMIT,
            expects_error: false,
        }
    }

    /// Adds one argument, whatever characters it holds.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds the words of `line`, split at white space; values that hold white space go through [`Job::arg`].
    pub fn args(mut self, line: &str) -> Self {
        self.arguments.extend(line.split_whitespace().map(Into::into));
        self
    }

    /// Lets `wrapper`, a program and its first arguments, start what the job was: `setpriv`, a shell with a `ulimit`.
    pub fn under(mut self, wrapper: &[&str]) -> Self {
        let inner = std::mem::replace(&mut self.program, wrapper[0].to_owned());
        let outer = wrapper[1..].iter().map(Into::into).chain([inner.into()]);
        self.arguments.splice(0..0, outer);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Replaces the limit of 20 seconds.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Says that the pipeline is meant to fail. gst-launch-1.0 1.22 itself hangs after about 1 in 20 errors during preroll,
    /// so a run that reported its error and then hung is repeated, twice at most. Nothing else is ever repeated.
    pub fn expect_error(mut self) -> Self {
        self.expects_error = true;
        self
    }

    /// Lets GStreamer list the objects that are alive at the end: [`Outcome::leaks`]. Such a list comes with a GLib warning,
    /// so where these are fatal a leak also ends the process with signal 5.
    pub fn trace_leaks(self) -> Self {
        self.env("GST_TRACERS", "leaks").env("GST_DEBUG", "GST_TRACER:7")
    }

    /// Runs the job to its end or its limit.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn run(&self) -> Outcome {
        let mut outcome = self.run_once(|_, _| ());
        for _ in 0..2 {
            let known_hang =
                self.expects_error && outcome.end == End::TimedOut && outcome.stderr.contains("ERROR");
            if !known_hang {
                break;
            }
            eprintln!(
                "repeating after the known hang of gst-launch-1.0 after an error: {}",
                outcome.command
            );
            outcome = self.run_once(|_, _| ());
        }
        outcome
    }

    /// Runs the job once, and calls `react` with each line of standard error as it comes, and the process's id.
    pub fn run_watching(&self, react: impl FnMut(&str, u32) + Send + 'static) -> Outcome {
        self.run_once(react)
    }

    fn run_once(&self, mut react: impl FnMut(&str, u32) + Send + 'static) -> Outcome {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}; run `make setup`", self.program));
        let id = child.id();
        let stdout = drain(child.stdout.take(), |_| ());
        let stderr = drain(child.stderr.take(), move |line| react(line, id));
        let status = wait(&mut child, start + self.limit, [&stdout, &stderr]);
        let end = match status {
            None => End::TimedOut,
            Some(status) => status
                .code()
                .map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Code),
        };
        let grace = Instant::now() + GRACE;
        Outcome {
            end,
            stdout: stdout.finish(grace),
            stderr: stderr.finish(grace),
            wall: start.elapsed(),
            command: format!("{command:?}"),
        }
    }
}

/// What Ctrl-C does to the process `id`.
pub fn interrupt(id: u32) {
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -INT {id}")])
        .status();
    assert!(
        killed.is_ok_and(|status| status.success()),
        "cannot interrupt process {id}"
    );
}

/// A pipe that a thread of its own empties, so that the child never blocks on a full one.
struct Drain {
    chunks: Receiver<Vec<u8>>,
    seen: std::cell::RefCell<Vec<u8>>,
}

fn drain(pipe: Option<impl Read + Send + 'static>, mut react: impl FnMut(&str) + Send + 'static) -> Drain {
    let (sender, chunks) = channel();
    let mut pipe = pipe.expect("the pipe was asked for");
    std::thread::spawn(move || {
        let mut chunk = [0; 8192];
        let mut line = Vec::new();
        while let Ok(length @ 1..) = pipe.read(&mut chunk) {
            for part in chunk[..length].split_inclusive(|byte| *byte == b'\n') {
                line.extend_from_slice(part);
                if line.ends_with(b"\n") {
                    react(&String::from_utf8_lossy(&line));
                    line.clear();
                }
            }
            if sender.send(chunk[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    Drain {
        chunks,
        seen: std::cell::RefCell::default(),
    }
}

impl Drain {
    /// Collects until the pipe is closed or `deadline`; true if it was closed.
    fn until(&self, deadline: Instant) -> bool {
        use std::sync::mpsc::RecvTimeoutError;
        loop {
            match self
                .chunks
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(chunk) => self.seen.borrow_mut().extend(chunk),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    /// All that came, waiting until `deadline` at the latest for the pipe to be closed.
    fn finish(self, deadline: Instant) -> String {
        self.until(deadline);
        String::from_utf8_lossy(&self.seen.into_inner()).into_owned()
    }
}

/// Waits for the end of `child`; kills it at `deadline` and returns `None`.
fn wait(child: &mut Child, deadline: Instant, pipes: [&Drain; 2]) -> Option<ExitStatus> {
    // A process closes its pipes when it ends, so waiting for that is waiting without polling.
    let closed = pipes.iter().all(|pipe| pipe.until(deadline));
    while closed && Instant::now() < deadline {
        // Closed pipes, yet not ended: in its last microseconds, or it closed them itself.
        if let Some(status) = child.try_wait().expect("the child is ours") {
            return Some(status);
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    // It may have ended at the last moment, or left its pipes to a grandchild; a status then counts.
    if let Some(status) = child.try_wait().expect("the child is ours") {
        return Some(status);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
