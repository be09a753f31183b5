//! The property `device` and what it comes to on this machine.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::path::Choice;
use crate::cuda::{CudaError, Device};

/// The property's default.
pub(super) const DEFAULT: &str = "auto";

/// What the property says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A GPU where one can be used.
    Auto,
    Cpu,
    Cuda(usize),
}

/// Why the device cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeviceError {
    #[error("device is {0:?}: write auto, cpu or cuda:N, for example cuda:0")]
    Name(String),
    #[error(
        "the environment variable LOCAL_RANK is {0:?}: unset it, or set it to this rank's number on this machine"
    )]
    LocalRank(String),
    #[error(
        "device is {wanted}, but {error}. (device=auto takes the CPU where no GPU can be used, device=cpu always)"
    )]
    Cuda { wanted: Wanted, error: CudaError },
}

impl FromStr for Wanted {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let number = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| text.parse().ok())
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            _ => text
                .strip_prefix("cuda:")
                .and_then(number)
                .flatten()
                .map(Self::Cuda)
                .ok_or_else(|| DeviceError::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl Wanted {
    /// Whether it is there, as far as that can be told without opening it: opening a device takes a part of its memory.
    pub fn check(self) -> Result<(), DeviceError> {
        match self {
            Self::Cpu => Ok(()),
            Self::Auto => local_rank().map(|_| ()),
            Self::Cuda(ordinal) => match Device::count() {
                Ok(count) if ordinal < count => Ok(()),
                // Where there is none, opening fails without doing anything, and says why.
                _ => Device::open(ordinal)
                    .map(drop)
                    .map_err(|error| DeviceError::Cuda { wanted: self, error }),
            },
        }
    }

    /// Opens the device and makes there what `make` makes. `None` is the CPU, and the choice says why. Where a GPU was asked for
    /// by its number, there is no other choice.
    pub fn open<T>(
        self,
        make: impl FnOnce(&Arc<Device>) -> Result<T, CudaError>,
    ) -> Result<(Option<T>, Choice), DeviceError> {
        let made = match self {
            Self::Cpu => return Ok((None, Choice::cpu())),
            Self::Cuda(ordinal) => Device::open(ordinal),
            Self::Auto => {
                let rank = local_rank()?;
                Device::count().and_then(|count| Device::open(seen(rank, count)))
            }
        };
        self.made(made.and_then(|device| {
            let made = make(&device)?;
            Ok((made, device.ordinal()))
        }))
    }

    /// What it means that something could be `made` on the device of this number, or not.
    pub fn made<T>(self, made: Result<(T, usize), CudaError>) -> Result<(Option<T>, Choice), DeviceError> {
        match made {
            Ok((made, ordinal)) => Ok((Some(made), Choice::cuda(ordinal))),
            Err(error) if self == Self::Auto => Ok((None, Choice::cpu_because(&error))),
            Err(error) => Err(DeviceError::Cuda { wanted: self, error }),
        }
    }

    /// Whether work may be done on `ordinal`.
    pub fn allows(self, ordinal: usize) -> bool {
        match self {
            Self::Auto => true,
            Self::Cpu => false,
            Self::Cuda(wanted) => wanted == ordinal,
        }
    }
}

/// The device of a rank that sees `count`: launchers either show each rank all of them, or each its own.
fn seen(rank: usize, count: usize) -> usize {
    if count == 1 { 0 } else { rank }
}

/// This rank's number on this machine, as torchrun sets it; else 0.
fn local_rank() -> Result<usize, DeviceError> {
    rank(std::env::var_os("LOCAL_RANK").map(|value| value.to_string_lossy().into_owned()))
}

fn rank(text: Option<String>) -> Result<usize, DeviceError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(0);
    };
    text.trim().parse().map_err(|_| DeviceError::LocalRank(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        let parse = |text: &str| text.parse::<Wanted>().ok();
        assert_eq!(parse("auto"), Some(Wanted::Auto));
        assert_eq!(parse("cpu"), Some(Wanted::Cpu));
        assert_eq!(parse("cuda:0"), Some(Wanted::Cuda(0)));
        assert_eq!(parse("cuda:12"), Some(Wanted::Cuda(12)));
        for text in [
            "",
            "gpu",
            "cuda",
            "cuda:",
            "cuda:-1",
            "cuda:+1",
            "cuda: 1",
            "cuda:1 ",
            "CUDA:0",
            "cuda:99999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn ranks_have_a_device_each() {
        let of = |text: Option<&str>| rank(text.map(str::to_owned)).ok();
        assert_eq!(of(None), Some(0));
        assert_eq!(of(Some("")), Some(0));
        assert_eq!(of(Some("3")), Some(3));
        assert_eq!(of(Some("-1")), None);
        assert_eq!(of(Some("two")), None);
        assert_eq!((seen(3, 8), seen(3, 1), seen(3, 2)), (3, 0, 3));
    }
}
