//! Counters for Prometheus, of this node alone: they start from zero with the process, as Prometheus expects.

use std::sync::atomic::AtomicU64;

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::service::counts::Counts;
use crate::service::http::samples::Families;
use crate::service::request::Receipt;
use crate::store::DecisionKind;

/// What all names begin with.
const PREFIX: &str = "debora";

/// What a request was and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// The method.
    pub method: &'static str,
    /// The route, with placeholders: there are few of them.
    pub route: &'static str,
    /// The status.
    pub status: u16,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabels {
    /// With placeholders.
    pub route: &'static str,
}

/// Whether decisions are rounds of the horizon, overtime or holdback.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DecisionLabels {
    kind: &'static str,
}

/// What became of outcomes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReceiptLabels {
    receipt: &'static str,
}

/// All counters.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram>,
    decisions: Family<DecisionLabels, Counter>,
    outcomes: Family<ReceiptLabels, Counter>,
    /// Rounds imputed by this node.
    pub imputed: Counter,
    /// Open connections.
    pub connections: Gauge<u64, AtomicU64>,
}

impl Metrics {
    /// All at zero. What the service counts itself is only shown here.
    pub fn new(counts: &Counts) -> Self {
        // From 0.1 ms, what a small request takes, doubling to 3 s, far beyond any commit.
        let seconds = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(1e-4, 2.0, 16))) as fn() -> Histogram,
        );
        let metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            requests: Family::default(),
            seconds,
            decisions: Family::default(),
            outcomes: Family::default(),
            imputed: Counter::default(),
            connections: Gauge::default(),
        };
        // From the start, as with the reasons of the service's own counts.
        for kind in DecisionKind::ALL {
            metrics.decided(kind, 0);
        }
        for receipt in Receipt::ALL {
            metrics.told(receipt, 0);
        }
        metrics.registered(counts.clone())
    }

    /// With names and help texts. Monitors depend on the names: they are part of the interface.
    fn registered(mut self, counts: Counts) -> Self {
        let registry = &mut self.registry;
        registry.register(
            "requests",
            "Requests by method, route and status",
            self.requests.clone(),
        );
        registry.register(
            "request_seconds",
            "Time to answer, by route",
            self.seconds.clone(),
        );
        registry.register("decisions", "Decisions handed out", self.decisions.clone());
        registry.register("outcomes", "Outcomes by receipt", self.outcomes.clone());
        registry.register(
            "shed",
            "Requests and connections refused for lack of room, by reason",
            counts.shed,
        );
        registry.register(
            "failed_transactions",
            "Transactions that the store failed, by reason",
            counts.failed,
        );
        registry.register(
            "queue_age_seconds",
            "The longest that a request of the last group waited for the writer",
            counts.waited,
        );
        registry.register(
            "ready",
            "1 if the last look at /ready or /metrics found that the service can commit",
            counts.ready,
        );
        registry.register(
            "webhook_deliveries",
            "Attempts to deliver a webhook's message, by result",
            counts.deliveries,
        );
        registry.register("imputed", "Rounds imputed", self.imputed.clone());
        // With the number of requests it tells how many share a commit, which is what throughput hangs on.
        registry.register(
            "groups",
            "Requests served in one transaction count as one",
            counts.groups,
        );
        registry.register("connections", "Open connections", self.connections.clone());
        let build = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("values_version", debora::VALUES_VERSION.to_string()),
        ];
        registry.register("build", "The program", Info::new(build.to_vec()));
        self
    }

    /// Counts an answered request.
    pub fn ended(&self, ended: RequestLabels, seconds: f64) {
        // By route alone: a histogram takes some 20 lines, and times by status would multiply them.
        self.seconds
            .get_or_create(&RouteLabels { route: ended.route })
            .observe(seconds);
        self.requests.get_or_create(&ended).inc();
    }

    /// Counts decisions.
    pub fn decided(&self, kind: DecisionKind, decisions: u64) {
        // Overtime is counted apart: it teaches nothing, so much of it means that outcomes come too slowly.
        let kind = kind.word();
        self.decisions
            .get_or_create(&DecisionLabels { kind })
            .inc_by(decisions);
    }

    /// All decisions of this node, overtime and holdback too.
    pub fn decisions(&self) -> u64 {
        let count = |kind: DecisionKind| {
            let kind = kind.word();
            Some(self.decisions.get(&DecisionLabels { kind })?.get())
        };
        DecisionKind::ALL.into_iter().filter_map(count).sum()
    }

    /// Counts outcomes.
    pub fn told(&self, receipt: Receipt, outcomes: u64) {
        self.outcomes
            .get_or_create(&ReceiptLabels {
                receipt: receipt.word(),
            })
            .inc_by(outcomes);
    }

    /// As OpenMetrics, with what was read for this scrape.
    pub fn text(&self, read: Families) -> String {
        // A registry of its own, as these come and go with their experiments.
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(read));
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)
            .and_then(|()| encode(&mut text, &registry))
            .expect("strings can be written to");
        text
    }
}

/// A method's name.
pub fn method_name(method: &Method) -> &'static str {
    // One name for all others: each label is kept for good, and methods can be made up without end.
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "other",
    }
}
