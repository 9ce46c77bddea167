//! Heads that were published: how an event says it.

/// What an event's text begins with.
const WORD: &str = "published ";

/// What the event says: that this head was published.
pub fn published(head: &str) -> String {
    // The head stands in the event's text: the place where it was published is the event's reason, as others have one.
    format!("{WORD}{head}")
}

/// The head that an event says was published, if it says that.
pub fn published_head(what: &str) -> Option<&str> {
    what.strip_prefix(WORD)
}
