//! One body of code, compiled for several instruction sets and chosen at run time.

/// A pass over a frame that [`Backend::run`] compiles for every instruction set.
///
/// `run` and everything hot below it must be `#[inline(always)]`: only code that is inlined into the functions below
/// is compiled with their instruction set.
pub(super) trait Task {
    /// Does the work.
    fn run(self);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Baseline,
}

/// An instruction set that this machine has. A value is the proof of that: only [`Backend::available`] and
/// [`Backend::best`] make one, after asking the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backend(Isa);

impl Backend {
    /// The widest one. The answer of the processor is cached by the standard library.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Isa::Avx512);
            }
            if has_avx2() {
                return Self(Isa::Avx2);
            }
        }
        Self(Isa::Baseline)
    }

    /// All of them, the widest first. `baseline` is what the target guarantees and always there.
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                found.push(Self(Isa::Avx512));
            }
            if has_avx2() {
                found.push(Self(Isa::Avx2));
            }
        }
        found.push(Self(Isa::Baseline));
        found
    }

    /// `avx512`, `avx2` or `baseline`.
    pub const fn as_str(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            Isa::Baseline => "baseline",
        }
    }

    /// Runs the task compiled for this instruction set.
    pub(super) fn run<T: Task>(self, task: T) {
        match self.0 {
            // SAFETY: a `Backend` of this kind exists only after `has_avx512` found every feature that the function
            // is compiled with.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { run_avx512(task) },
            // SAFETY: likewise with `has_avx2`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { run_avx2(task) },
            Isa::Baseline => task.run(),
        }
    }
}

/// The features of [`run_avx512`]. AVX-512F alone has neither byte shuffles nor 256-bit forms.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
}

/// The feature of [`run_avx2`].
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<T: Task>(task: T) {
    task.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<T: Task>(task: T) {
    task.run();
}
