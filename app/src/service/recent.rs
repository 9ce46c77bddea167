//! What was used last, up to a limit: memory does not grow with the number of experiments.

use std::collections::HashMap;

/// Values by id, those used least recently dropped first.
pub struct Recent<T> {
    most: usize,
    uses: u64,
    // By hash, as nothing here is seen in the map's order: the code of a B-tree is three times as long, for each type of value.
    values: HashMap<String, (u64, T)>,
}

impl<T> Recent<T> {
    /// At most this many, whenever [`Recent::trim`] is called.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            uses: 0,
            values: HashMap::new(),
        }
    }

    /// Uses a value.
    pub fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.uses += 1;
        let (used, value) = self.values.get_mut(id)?;
        *used = self.uses;
        Some(value)
    }

    /// Sets a value.
    pub fn insert(&mut self, id: &str, value: T) {
        self.uses += 1;
        // Nearly always there: then no id is copied.
        if let Some(place) = self.values.get_mut(id) {
            *place = (self.uses, value);
        } else {
            self.values.insert(id.to_owned(), (self.uses, value));
        }
    }

    /// Drops a value.
    pub fn remove(&mut self, id: &str) {
        self.values.remove(id);
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// How many there are.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Drops what was used least recently, if there is too much.
    pub fn trim(&mut self) {
        if self.values.len() <= self.most {
            return;
        }
        // Down to half the limit, so that a search through all of them is rare.
        let mut uses: Vec<u64> = self.values.values().map(|(used, _)| *used).collect();
        uses.sort_unstable();
        let oldest = uses[uses.len() - self.most.div_ceil(2)];
        self.values.retain(|_, (used, _)| *used >= oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut recent = Recent::new(4);
        for id in ["a", "b", "c", "d"] {
            recent.insert(id, id.to_owned());
        }
        recent.trim();
        assert_eq!(recent.get_mut("a").unwrap(), "a");
        recent.insert("e", "e".into());
        recent.trim();
        let mut left: Vec<_> = recent.values.keys().map(String::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "e"]);
    }
}
