//! Memory of freed arrays, kept for a moment for the next ones of that size. Nothing here is unsafe: vectors are kept.
//!
//! A page that the system hands out anew is cleared and mapped first, which takes several times as long as the arithmetic on it;
//! and a training loop asks for the same sizes again and again. At most [`MOST`] bytes are kept for the whole process, and what
//! nobody asked for during one or two [`TICK`]s is freed: a thread sees to that, which lives only while arrays come and go.

use core::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::dtype::{DType, Element};

/// The smallest memory that is kept: below it the system's allocator is quick, and clearing it as well.
const LEAST: usize = 1 << 15;

/// How many bytes are kept at most.
const MOST: usize = 1 << 29;

/// Memory is freed when it was not used from one tick to the next.
const TICK: Duration = Duration::from_secs(1);

static CACHE: Mutex<Cache> = Mutex::new(Cache::new());

/// Memory of every size, the latest last.
struct Cache {
    kept: BTreeMap<(DType, usize), Vec<Kept>>,
    bytes: usize,
    /// How many ticks there were.
    now: u64,
    /// Whether a thread frees what is not used. Without one nothing is kept.
    watched: bool,
}

struct Kept {
    memory: Box<dyn Any + Send>,
    since: u64,
}

/// A vector of `len` elements with whatever they were before, if one is kept that is hardly longer.
pub(super) fn take<T: Element>(len: usize) -> Option<Vec<T>> {
    if len.saturating_mul(size_of::<T>()) < LEAST {
        return None;
    }
    let mut cache = lock();
    cache.watch();
    let kept = cache.take(T::DTYPE, size_of::<T>(), len)?;
    drop(cache);
    let mut elements = *kept.memory.downcast::<Vec<T>>().ok()?;
    elements.resize(len, T::default());
    Some(elements)
}

/// Keeps the memory of `elements` for [`take`], or frees it.
pub(super) fn give<T: Element>(elements: Vec<T>) {
    let bytes = elements.capacity() * size_of::<T>();
    if (LEAST..=MOST).contains(&bytes) {
        let mut cache = lock();
        if cache.watched && cache.bytes + bytes <= MOST {
            cache.give((T::DTYPE, elements.capacity()), bytes, Box::new(elements));
        }
    }
}

/// Frees all that is kept.
pub(super) fn clear() {
    let freed = lock().idle_since(u64::MAX);
    drop(freed);
}

/// No code that may panic runs under the lock, and what it guards is whole at any moment.
fn lock() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    const fn new() -> Self {
        Self { kept: BTreeMap::new(), bytes: 0, now: 0, watched: false }
    }

    /// The smallest memory that holds `len` elements of `size` bytes; an eighth of it may stay unused.
    fn take(&mut self, dtype: DType, size: usize, len: usize) -> Option<Kept> {
        let (&key, same) = self.kept.range_mut((dtype, len)..=(dtype, len.saturating_add(len / 8))).next()?;
        let kept = same.pop()?;
        if same.is_empty() {
            self.kept.remove(&key);
        }
        self.bytes -= key.1 * size;
        Some(kept)
    }

    fn give(&mut self, key: (DType, usize), bytes: usize, memory: Box<dyn Any + Send>) {
        self.bytes += bytes;
        self.kept.entry(key).or_default().push(Kept { memory, since: self.now });
    }

    /// Takes out what has been there since before tick `now`. It is to be freed when the lock is no longer held.
    fn idle_since(&mut self, now: u64) -> Vec<Kept> {
        let mut idle = Vec::new();
        let bytes = &mut self.bytes;
        self.kept.retain(|&(dtype, capacity), same| {
            let count = same.partition_point(|kept| kept.since < now);
            *bytes -= count * capacity * dtype.size_in_bytes();
            idle.extend(same.drain(..count));
            !same.is_empty()
        });
        idle
    }

    /// Has a thread free what becomes idle, if none does. Called where memory is asked for, since arrays may also be freed
    /// where no thread can be started: at the end of one.
    fn watch(&mut self) {
        if !self.watched {
            let watcher = thread::Builder::new().name("gradpact-memory".to_owned());
            self.watched = watcher.stack_size(1 << 16).spawn(free_what_is_idle).is_ok();
        }
    }
}

/// Ends when a whole tick passed with nothing kept.
fn free_what_is_idle() {
    loop {
        thread::sleep(TICK);
        let mut cache = lock();
        let now = cache.now;
        cache.now += 1;
        let idle = cache.idle_since(now);
        cache.watched = cache.bytes > 0 || !idle.is_empty();
        let ends = !cache.watched;
        drop(cache);
        drop(idle);
        if ends {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(len: usize) -> (DType, usize) {
        (DType::F32, len)
    }

    fn cache_of(lens: &[usize]) -> Cache {
        let mut cache = Cache::new();
        for &len in lens {
            cache.give(key(len), len * 4, Box::new(vec![0.0_f32; len]));
        }
        cache
    }

    #[test]
    fn memory_is_found_again_by_type_and_size() {
        let mut cache = cache_of(&[1000, 1100, 1100, 2000]);
        assert!(cache.take(DType::F64, 8, 1000).is_none());
        assert!(cache.take(DType::F32, 4, 1500).is_none(), "a quarter of it would be unused");
        assert!(cache.take(DType::F32, 4, 2001).is_none());
        for capacity in [1100, 1100] {
            let kept = cache.take(DType::F32, 4, 1050).unwrap().memory.downcast::<Vec<f32>>().unwrap();
            assert_eq!(kept.capacity(), capacity);
        }
        assert!(cache.take(DType::F32, 4, 1050).is_none());
        assert_eq!(cache.bytes, 3000 * 4);
    }

    #[test]
    fn what_was_not_used_for_a_tick_is_freed() {
        let mut cache = cache_of(&[1000, 1000, 2000]);
        assert!(cache.idle_since(0).is_empty(), "it came in this tick");
        cache.now = 1;
        cache.give(key(1000), 4000, Box::new(vec![0.0_f32; 1000]));
        assert_eq!(cache.idle_since(1).len(), 3);
        assert_eq!((cache.bytes, cache.kept.len()), (4000, 1));
        assert_eq!(cache.idle_since(u64::MAX).len(), 1);
        assert_eq!((cache.bytes, cache.kept.len()), (0, 0));
    }

    #[test]
    fn an_idle_process_keeps_no_memory_and_its_thread_ends() {
        // Of a size that no other test asks for.
        let len = 7_654_321;
        drop(take::<u8>(len));
        give(vec![1_u8; len]);
        let is_kept = || lock().kept.contains_key(&(DType::U8, len));
        assert!(is_kept() || lock().bytes + len > MOST);
        let start = std::time::Instant::now();
        while is_kept() {
            assert!(start.elapsed() < 60 * TICK, "nobody frees it");
            thread::sleep(TICK / 20);
        }
    }

    #[test]
    fn small_and_huge_memory_is_not_kept() {
        drop(take::<i8>(LEAST));
        give(vec![1_i8; LEAST - 1]);
        assert!(take::<i8>(LEAST - 1).is_none());
        assert!(!lock().kept.contains_key(&(DType::I8, LEAST - 1)));
        assert!(lock().bytes <= MOST);
    }
}
