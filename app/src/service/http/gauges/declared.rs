//! The names of what is read at each scrape, and what they mean; docs/metrics.md has them with their labels.

use crate::service::http::samples::SampleKind;

/// Every metric that is read. Monitors depend on the names: they are part of the interface.
pub const DECLARED: &[(SampleKind, &str, &str)] = {
    use SampleKind::{Counter as C, Gauge as G, Info as I};
    &[
        (G, "store_size_bytes", "Room that the store's tables take"),
        (G, "experiments", "Experiments of the store by status"),
        (
            G,
            "experiments_shown",
            "Experiments with metrics of their own: the last active that are not over",
        ),
        (
            G,
            "experiments_age_seconds",
            "Time since all experiments were last counted",
        ),
        (I, "experiment", "The policy of an experiment"),
        (
            G,
            "experiment_state",
            "1 for what an experiment is doing, else 0",
        ),
        (C, "experiment_rounds", "Rounds decided, by all nodes"),
        (G, "experiment_horizon_rounds", "Rounds in all"),
        (
            G,
            "experiment_outstanding_rounds",
            "Decided rounds without an outcome",
        ),
        (
            C,
            "experiment_outcomes",
            "Outcomes by all nodes: told, imputed, or late, which do not count",
        ),
        (
            C,
            "experiment_overtime",
            "Decisions outside the horizon, by all nodes",
        ),
        (G, "experiment_epoch", "The open epoch, from 0"),
        (
            G,
            "experiment_strategy_ratio",
            "The probability of an action; of many actions the most probable",
        ),
        (
            G,
            "experiment_infeasible",
            "1 while by the estimates no strategy keeps every limit",
        ),
        // In the units of the spec, whatever they are: a name that says one would lie.
        (
            G,
            "experiment_cost_average",
            "The average of a cost over all counted rounds, in the spec's units",
        ),
        (
            G,
            "experiment_cost_threshold",
            "What the mean of a cost must not exceed, in the spec's units",
        ),
        (
            G,
            "experiment_limit_verdict",
            "1 for what is known of a limit, else 0",
        ),
        (
            G,
            "experiment_alerts",
            "What somebody should look into, by kind",
        ),
        (
            G,
            "experiment_readable",
            "0 if an experiment has other values than the program, or is damaged",
        ),
        (
            G,
            "experiment_age_seconds",
            "How old what is said of an experiment is, if it has changed since",
        ),
    ]
};
