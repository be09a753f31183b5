use std::fmt;
use std::str::FromStr;

/// How many samples of one epoch may be faulty: the property `max-errors`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Limit {
    /// No limit, written `-1`.
    #[default]
    None,
    /// So many samples, written `10`.
    Count(u64),
    /// So many per cent of the samples that the rank has in the epoch, written `2%`.
    Percent(f64),
}

/// The text of `max-errors` is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "max-errors={0:?} is not a limit: write a count (10), a percentage of the epoch (2%), or -1 for no limit"
)]
pub struct LimitError(String);

impl Limit {
    /// Whether `faults` of `samples` are too many. Without the number of samples a percentage is never exceeded.
    pub fn exceeded(self, faults: u64, samples: Option<u64>) -> bool {
        match self {
            Self::None => false,
            Self::Count(count) => faults > count,
            Self::Percent(percent) => {
                samples.is_some_and(|samples| faults as f64 * 100.0 > percent * samples as f64)
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-1"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let error = || LimitError(text.to_owned());
        let trimmed = text.trim();
        if trimmed == "-1" {
            return Ok(Self::None);
        }
        match trimmed.strip_suffix('%') {
            Some(percent) => match percent.trim().parse::<f64>() {
                Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
                _ => Err(error()),
            },
            None => trimmed.parse().map(Self::Count).map_err(|_| error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_percentages_and_nothing_else() {
        assert_eq!("-1".parse(), Ok(Limit::None));
        assert_eq!(" 10 ".parse(), Ok(Limit::Count(10)));
        assert_eq!("2.5%".parse(), Ok(Limit::Percent(2.5)));
        for text in ["-1", "10", "2.5%"] {
            assert_eq!(
                text.parse::<Limit>().map(|limit| limit.to_string()).as_deref(),
                Ok(text)
            );
        }
        for text in ["", "-2", "%", "101%", "-1%", "nan%", "ten", "1.5", "5 percent"] {
            assert_eq!(text.parse::<Limit>(), Err(LimitError(text.to_owned())));
        }
    }

    #[test]
    fn a_limit_is_what_is_still_allowed() {
        assert!(!Limit::Count(2).exceeded(2, None));
        assert!(Limit::Count(2).exceeded(3, None));
        assert!(Limit::Count(0).exceeded(1, None));
        assert!(!Limit::Percent(2.0).exceeded(2, Some(100)));
        assert!(Limit::Percent(2.0).exceeded(3, Some(100)));
        assert!(!Limit::Percent(2.0).exceeded(3, None));
        assert!(!Limit::None.exceeded(u64::MAX, Some(1)));
    }
}
