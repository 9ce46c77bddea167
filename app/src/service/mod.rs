//! Live experiments: decisions and outcomes over HTTP, durable before they are acknowledged.
