//! Values that are read at each scrape, as Prometheus's library writes them; and all metrics in the older of its two formats.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// How a family's values are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// It only grows; the suffix `_total` is added to its name.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It is 1, and its labels say something; the suffix `_info` is added.
    Info,
}

/// The values of one metric.
#[derive(Clone, Debug)]
struct Family {
    kind: SampleKind,
    name: &'static str,
    help: &'static str,
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// Metrics as a registry takes them.
#[derive(Clone, Debug, Default)]
pub struct Families(Vec<Family>);

impl Families {
    /// Without a value so far.
    pub fn declared(families: &[(SampleKind, &'static str, &'static str)]) -> Self {
        let families = families.iter().map(|&(kind, name, help)| Family {
            kind,
            name,
            help,
            samples: Vec::new(),
        });
        Self(families.collect())
    }

    /// Adds a value.
    pub fn add(&mut self, name: &str, labels: &[(&'static str, &str)], value: f64) {
        let family = self.0.iter_mut().find(|family| family.name == name);
        let labels = labels.iter().map(|(key, text)| (*key, (*text).to_owned()));
        let samples = &mut family.expect("every metric is declared").samples;
        samples.push((labels.collect(), value));
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        // One without values would be a name that means nothing yet.
        for family in self.0.iter().filter(|family| !family.samples.is_empty()) {
            let kind = match family.kind {
                SampleKind::Counter => MetricType::Counter,
                SampleKind::Gauge => MetricType::Gauge,
                SampleKind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (labels, value) in &family.samples {
                family.encode(&mut metric, labels, *value)?;
            }
        }
        Ok(())
    }
}

impl Family {
    fn encode(
        &self,
        metric: &mut MetricEncoder,
        labels: &Vec<(&'static str, String)>,
        value: f64,
    ) -> fmt::Result {
        match self.kind {
            SampleKind::Info => metric.encode_info(labels),
            // Without labels there is no family to begin.
            SampleKind::Gauge if labels.is_empty() => metric.encode_gauge(&value),
            SampleKind::Gauge => metric.encode_family(labels)?.encode_gauge(&value),
            SampleKind::Counter => metric
                .encode_family(labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None),
        }
    }
}

/// OpenMetrics as the text format that came before it: for those who do not ask for OpenMetrics, such as `promtool check metrics`.
pub fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + 1024);
    let mut help = "";
    for line in open_metrics.lines() {
        if line.starts_with("# HELP ") {
            help = line;
        } else if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap_or((declared, ""));
            // There a family is called what its values are, suffix and all, and there is no type info.
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let said = help.split(' ').skip(3).collect::<Vec<_>>().join(" ");
            text += &format!("# HELP {name}{suffix} {said}\n# TYPE {name}{suffix} {kind}\n");
        } else if line != "# EOF" {
            text += line;
            text.push('\n');
        }
    }
    text
}
