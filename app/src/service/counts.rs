//! What the service counts beside its requests; the metrics show it.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::store::Failure;

/// Why a request was refused unseen: too much was asked at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shed {
    /// All connections were taken.
    Connections,
    /// So were the places of those who are told so.
    Dropped,
    /// Bodies took all the memory that they may.
    Bodies,
    /// A read had waited too long for its place.
    Readers,
    /// A request had waited too long for the writer, or too much waited already.
    Writer,
}

impl Shed {
    /// All there are.
    const ALL: [Self; 5] = [
        Self::Connections,
        Self::Dropped,
        Self::Bodies,
        Self::Readers,
        Self::Writer,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Dropped => "dropped",
            Self::Bodies => "bodies",
            Self::Readers => "readers",
            Self::Writer => "writer",
        }
    }
}

/// A reason, in a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabels {
    reason: &'static str,
}

/// What became of something, in a word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabels {
    result: &'static str,
}

/// Counters that are shared by the writer and by those who ask it. All copies count together.
#[derive(Clone, Default)]
pub struct Counts {
    /// Groups served: requests that share a transaction.
    pub groups: Counter,
    /// Requests and connections refused for lack of room.
    pub shed: Family<ReasonLabels, Counter>,
    /// Transactions that failed.
    pub failed: Family<ReasonLabels, Counter>,
    /// Attempts to deliver a webhook's message.
    pub deliveries: Family<ResultLabels, Counter>,
    /// The longest that a request of the last group waited until it was taken up, in seconds.
    pub waited: Gauge<f64, AtomicU64>,
    /// Whether the service could commit when it was last asked: 1 or 0.
    pub ready: Gauge<u64, AtomicU64>,
}

impl Counts {
    /// All at zero, each by its reason: what begins with its first increase, no rate sees.
    pub fn new() -> Self {
        let counts = Self::default();
        for reason in Shed::ALL.map(Shed::word) {
            counts
                .shed
                .get_or_create(&ReasonLabels { reason })
                .inc_by(0);
        }
        for reason in Failure::ALL.map(Failure::code) {
            counts
                .failed
                .get_or_create(&ReasonLabels { reason })
                .inc_by(0);
        }
        counts
    }

    /// Counts what was refused for lack of room.
    pub fn shed(&self, reason: Shed) {
        let reason = reason.word();
        self.shed.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// How much was refused for lack of room, for any reason.
    pub fn shed_total(&self) -> u64 {
        let count = |shed: Shed| {
            let reason = shed.word();
            Some(self.shed.get(&ReasonLabels { reason })?.get())
        };
        Shed::ALL.into_iter().filter_map(count).sum()
    }

    /// Counts an attempt to deliver a webhook's message.
    pub fn delivered(&self, result: &'static str) {
        self.deliveries
            .get_or_create(&ResultLabels { result })
            .inc();
    }

    /// Counts a transaction that failed.
    pub fn failed(&self, failure: Failure) {
        let reason = failure.code();
        self.failed.get_or_create(&ReasonLabels { reason }).inc();
    }
}
