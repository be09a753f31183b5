//! A place in a sequence of epochs, as small JSON, and whether a run can continue there.

use std::fmt::Display;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    config::{SamplerConfig, Shuffle, Uneven},
    ledger::Ledger,
    order::Order,
    receipt::Receipt,
    shard::Shard,
    state_error::{StateError, shortened},
    torch,
};

/// Where one rank stands: behind the last sample that was consumed, with all that fixes what comes next.
///
/// Every batch carries one. Reading one checks that it can exist at all ([`validate`](State::validate));
/// whether it belongs to this run's dataset and settings is for [`check`](State::check).
///
/// ```
/// use epochfeed::sampler::{Sampler, SamplerConfig, Shuffle, State};
///
/// let sampler = Sampler::new(SamplerConfig::new(Shuffle::Torch, 7, 40))?;
/// let receipt = sampler.next(&sampler.first(), true);
/// let state = State { position: 16, ..State::new(sampler.config(), &receipt, "c0ffee") };
///
/// let read = State::from_json(&state.to_json())?;
/// read.check(sampler.config(), "c0ffee")?;
/// let next = sampler.draw(&read.receipt).slot(read.position);
/// assert_eq!(next, sampler.draw(&receipt).slot(16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct State {
    /// [`State::VERSION`] of the program that wrote it.
    pub version: u32,
    /// Seed of the order.
    pub seed: u64,
    /// The order.
    pub shuffle: Shuffle,
    /// Number of the epoch, from 0; the receipt says the same.
    pub epoch: u64,
    /// Slots of this rank's order that are behind, pads and skipped ones included; 0 to the order's length.
    pub position: u64,
    /// Which share it is.
    pub rank: u32,
    /// How many shares there are.
    pub world_size: u32,
    /// How the shares are made equally long.
    pub uneven: Uneven,
    /// Only the first so many samples of each order.
    pub samples_per_epoch: Option<u64>,
    /// Samples in the dataset.
    pub size: u64,
    /// What the epoch's order is drawn from.
    pub receipt: Receipt,
    /// Identifies the dataset: its samples and their sequence.
    pub fingerprint: String,
    /// Listed slots (pads not among them) before `position` whose own sample was left out because of a fault,
    /// replaced or not.
    pub skipped: u64,
    /// Slots before `position` in which another sample was delivered.
    pub replaced: u64,
    /// Position in the dataset of the sample delivered last before `position`, in whose stead faulty ones that follow
    /// may be replaced; none at an epoch's ends.
    pub last_good: Option<u64>,
    /// Epochs before this one may have been drawn from a dataset of another size: it was read again in between.
    pub reloaded: bool,
}

impl State {
    /// Version of the format. Also the version of everything that decides what follows a state: a change of
    /// an order raises it.
    pub const VERSION: u32 = 1;

    /// Last epoch a state can be in. So far below the end of the range that counting on is never a question.
    pub const MAX_EPOCH: u64 = (1 << 63) - 1;

    /// The start of the epoch that `receipt` draws.
    pub fn new(config: &SamplerConfig, receipt: &Receipt, fingerprint: impl Into<String>) -> State {
        State {
            version: State::VERSION,
            seed: config.seed,
            shuffle: config.shuffle,
            epoch: receipt.epoch(),
            position: 0,
            rank: config.rank,
            world_size: config.world_size,
            uneven: config.uneven,
            samples_per_epoch: config.samples_per_epoch,
            size: config.size,
            receipt: receipt.clone(),
            fingerprint: fingerprint.into(),
            skipped: 0,
            replaced: 0,
            last_good: None,
            reloaded: false,
        }
    }

    /// The settings of the run that it comes from.
    pub fn config(&self) -> SamplerConfig {
        SamplerConfig {
            shuffle: self.shuffle,
            seed: self.seed,
            size: self.size,
            rank: self.rank,
            world_size: self.world_size,
            uneven: self.uneven,
            samples_per_epoch: self.samples_per_epoch,
        }
    }

    /// Slots of this rank's epoch: the position at its end.
    pub fn slots(&self) -> u64 {
        Shard::new(&self.config()).len()
    }

    /// The state as one line of JSON.
    pub fn to_json(&self) -> String {
        #[expect(
            clippy::expect_used,
            reason = "numbers, strings and structs always serialize; no value of State can fail here"
        )]
        serde_json::to_string(self).expect("State has a JSON form")
    }

    /// Reads what [`to_json`](State::to_json) wrote.
    ///
    /// # Errors
    /// Text that is not such an object (a field too many, missing, twice, or of a wrong type), another format
    /// version, and whatever [`validate`](State::validate) finds.
    pub fn from_json(json: &str) -> Result<State, StateError> {
        // The version first: of another version nothing else can be expected to fit.
        let Version { version } = serde_json::from_str(json).map_err(StateError::json)?;
        check_version(&version)?;
        let unchecked: Unchecked = serde_json::from_str(json).map_err(StateError::json)?;
        State::try_from(unchecked)
    }

    /// Checks that a run could have been in this state.
    ///
    /// # Errors
    /// The field that cannot be so, with its value.
    pub fn validate(&self) -> Result<(), StateError> {
        check_version(&Value::from(self.version))?;
        let config = self.config();
        config.validate()?;
        if self.epoch > State::MAX_EPOCH {
            return Err(StateError::field("epoch", self.epoch, "no run gets this far"));
        }
        if self.receipt.epoch != self.epoch {
            return Err(StateError::Field {
                field: "receipt",
                value: format!("of epoch {}", self.receipt.epoch),
                problem: format!("the state is of epoch {}", self.epoch),
            });
        }
        self.validate_torch_outputs()?;
        let shard = Shard::new(&config);
        if self.position > shard.len() {
            let problem = format!("this rank's epoch has {} slots", shard.len());
            return Err(StateError::field("position", self.position, problem));
        }
        let own = self.position - shard.padded_before(self.position);
        if self.skipped > own {
            let problem = format!("only {own} listed slots are behind");
            return Err(StateError::field("skipped", self.skipped, problem));
        }
        if self.replaced > self.position {
            let problem = format!("only {} slots are behind", self.position);
            return Err(StateError::field("replaced", self.replaced, problem));
        }
        if let Some(sample) = self.last_good {
            if sample >= self.size {
                let problem = format!("the dataset has {} samples", self.size);
                return Err(StateError::field("last_good", sample, problem));
            }
            if self.position == 0 {
                return Err(StateError::field("last_good", sample, "no slot is behind"));
            }
        }
        Ok(())
    }

    /// Every epoch before has drawn one permutation or two; other orders draw nothing.
    fn validate_torch_outputs(&self) -> Result<(), StateError> {
        let permutation = match self.shuffle {
            Shuffle::Torch => u128::from(torch::outputs_per_permutation(self.size)),
            Shuffle::Keyed | Shuffle::TorchDistributed | Shuffle::None => 0,
        };
        let least = permutation * u128::from(self.epoch);
        let outputs = u128::from(self.receipt.torch_outputs);
        let whole = permutation == 0 || outputs.is_multiple_of(permutation);
        if whole && (least..=2 * least).contains(&outputs) {
            return Ok(());
        }
        // How large the permutations were is not known.
        if self.reloaded && self.shuffle == Shuffle::Torch && self.epoch > 0 {
            return Ok(());
        }
        Err(StateError::Field {
            field: "receipt",
            value: format!("after {outputs} torch outputs"),
            problem: format!(
                "epoch {} with shuffle={} comes after {least} to {} in steps of {permutation}",
                self.epoch,
                self.shuffle,
                2 * least
            ),
        })
    }

    /// Checks that a run with `config` over the dataset `fingerprint` can continue here.
    ///
    /// # Errors
    /// [`StateError::Mismatch`] with the first field that differs and both values; else what
    /// [`validate`](State::validate) finds.
    pub fn check(&self, config: &SamplerConfig, fingerprint: &str) -> Result<(), StateError> {
        let all = |samples: Option<u64>| samples.map_or_else(|| "all".to_owned(), |n| n.to_string());
        check_version(&Value::from(self.version))?;
        same("shuffle", self.shuffle, config.shuffle)?;
        same("seed", self.seed, config.seed)?;
        same("rank", self.rank, config.rank)?;
        same("world_size", self.world_size, config.world_size)?;
        same("uneven", self.uneven, config.uneven)?;
        same(
            "samples_per_epoch",
            all(self.samples_per_epoch),
            all(config.samples_per_epoch),
        )?;
        same("size", self.size, config.size)?;
        same("fingerprint", self.fingerprint.as_str(), fingerprint)?;
        self.validate()
    }

    /// The account of the epoch up to here, with `order` the one that the receipt draws.
    ///
    /// `listed` and `dropped` are the whole epoch's, so it balances at the end of the epoch; before that
    /// [`Ledger::outstanding`] samples are still to come.
    pub fn ledger(&self, order: &Order) -> Ledger {
        let padded = order.padded_before(self.position);
        Ledger {
            listed: order.listed(),
            delivered: self
                .position
                .min(order.len())
                .saturating_sub(padded)
                .saturating_sub(self.skipped),
            skipped: self.skipped,
            dropped: order.dropped(),
            padded,
            replaced: self.replaced,
        }
    }
}

/// Only the version, whatever else there may be.
#[derive(Deserialize)]
struct Version {
    version: Value,
}

/// The fields as they were read. Each is converted on its own, so that an error can name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    version: Value,
    seed: Value,
    shuffle: Value,
    epoch: Value,
    position: Value,
    rank: Value,
    world_size: Value,
    uneven: Value,
    samples_per_epoch: Value,
    size: Value,
    receipt: Value,
    fingerprint: Value,
    skipped: Value,
    replaced: Value,
    last_good: Value,
    reloaded: Value,
}

impl TryFrom<Unchecked> for State {
    type Error = StateError;

    fn try_from(unchecked: Unchecked) -> Result<State, StateError> {
        check_version(&unchecked.version)?;
        let state = State {
            version: State::VERSION,
            seed: convert("seed", unchecked.seed)?,
            shuffle: convert("shuffle", unchecked.shuffle)?,
            epoch: convert("epoch", unchecked.epoch)?,
            position: convert("position", unchecked.position)?,
            rank: convert("rank", unchecked.rank)?,
            world_size: convert("world_size", unchecked.world_size)?,
            uneven: convert("uneven", unchecked.uneven)?,
            samples_per_epoch: convert("samples_per_epoch", unchecked.samples_per_epoch)?,
            size: convert("size", unchecked.size)?,
            receipt: convert("receipt", unchecked.receipt)?,
            fingerprint: convert("fingerprint", unchecked.fingerprint)?,
            skipped: convert("skipped", unchecked.skipped)?,
            replaced: convert("replaced", unchecked.replaced)?,
            last_good: convert("last_good", unchecked.last_good)?,
            reloaded: convert("reloaded", unchecked.reloaded)?,
        };
        state.validate()?;
        Ok(state)
    }
}

fn convert<T: DeserializeOwned>(field: &'static str, value: Value) -> Result<T, StateError> {
    T::deserialize(&value).map_err(|error| StateError::field(field, value, error))
}

fn check_version(version: &Value) -> Result<(), StateError> {
    if *version == State::VERSION {
        return Ok(());
    }
    Err(StateError::Version {
        found: shortened(version),
        supported: State::VERSION,
    })
}

fn same<T: PartialEq + Display>(field: &'static str, state: T, run: T) -> Result<(), StateError> {
    if state == run {
        return Ok(());
    }
    Err(StateError::Mismatch {
        field,
        state: shortened(state),
        run: shortened(run),
    })
}
