//! What requests share for a while: values by key, up to a limit, those used least recently dropped first.

use std::sync::{Arc, Mutex, MutexGuard};

use super::recent::Recent;

/// A bounded cache that all threads use.
///
/// Values are shared and never changed: whoever has one keeps it, whatever becomes of its place. They are made without the lock, so
/// that one that takes long keeps nobody from the others; of two that are made at once, the one that is kept first is everybody's.
pub struct Cache<T>(Mutex<Recent<Arc<T>>>);

impl<T> Cache<T> {
    /// At most this many values of weight 1, or as many others as weigh no more.
    pub fn new(most: usize) -> Self {
        Self(Mutex::new(Recent::new(most)))
    }

    /// The value, if it is kept.
    pub fn get(&self, key: &str) -> Option<Arc<T>> {
        self.lock().get_mut(key).cloned()
    }

    /// Keeps a value, in the place of one that is there.
    pub fn put(&self, key: &str, value: T) {
        let mut recent = self.lock();
        recent.insert(key, Arc::new(value));
        recent.trim();
    }

    /// The value that is kept, or else is made.
    pub fn get_or_make(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        match self.get(key) {
            Some(value) => value,
            None => self.keep_first(key, 1, make()),
        }
    }

    /// Keeps a value of some weight, unless there is one: that one, then.
    pub fn keep_first(&self, key: &str, weight: usize, value: T) -> Arc<T> {
        let mut recent = self.lock();
        if let Some(first) = recent.get_mut(key) {
            return Arc::clone(first);
        }
        let value = Arc::new(value);
        recent.insert_weighing(key, weight, Arc::clone(&value));
        recent.trim();
        value
    }

    fn lock(&self) -> MutexGuard<'_, Recent<Arc<T>>> {
        // Nothing of a caller's runs under the lock, and dropped values run no code that fails.
        self.0.lock().expect("no panic while the cache is used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_is_everybodys_until_it_is_replaced() {
        let cache = Cache::new(4);
        let first = cache.get_or_make("a", || 1);
        // Made meanwhile by another, who had not found it.
        assert!(Arc::ptr_eq(&first, &cache.keep_first("a", 1, 2)));
        assert_eq!(*cache.get_or_make("a", || unreachable!("it is kept")), 1);
        cache.put("a", 3);
        assert_eq!((*first, *cache.get("a").unwrap()), (1, 3));
    }

    #[test]
    fn a_heavy_value_takes_the_room_of_many() {
        let cache = Cache::new(8);
        for key in ["a", "b", "c"] {
            cache.put(key, ());
        }
        cache.keep_first("heavy", 7, ());
        let kept = |key| cache.get(key).is_some();
        // Half of the room is made free, but what was kept last stays, however much it weighs.
        assert_eq!(
            ["a", "b", "c", "heavy"].map(kept),
            [false, false, false, true]
        );
    }
}
