//! What one forwarder of a node learns, on its way to the others.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use namecast_forward::{Forwarder, LearnedNews};

use super::Plane;

/// What forwarders have learned that others are still to be told.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Looked at for every frame, which the lock would be dear for.
    is_there: AtomicBool,
    waiting: Mutex<Vec<LearnedNews>>,
}

impl News {
    /// Records what a forwarder has learned.
    pub(super) fn add(&self, news: Vec<LearnedNews>) {
        if !news.is_empty() {
            let waiting = self.waiting.lock();
            waiting.unwrap_or_else(PoisonError::into_inner).extend(news);
            self.is_there.store(true, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Vec<LearnedNews> {
        // Whoever added some comes here next, and sees its own mark.
        if !self.is_there.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.is_there.store(false, Ordering::Relaxed);
        let waiting = self.waiting.lock();
        core::mem::take(&mut *waiting.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Plane {
    /// Tells all forwarders what one of them has learned, before anything is sent by which others could act on it.
    pub(super) fn share_news(&self) {
        let news = self.news.take();
        if news.is_empty() {
            return;
        }
        let now = self.clock.now();
        for index in 0..self.workers.len() {
            let adopt = |forwarder: &mut Forwarder| {
                let mut learning = forwarder.learning(now);
                news.iter().for_each(|news| learning.adopt(news));
            };
            let ((), outputs) = self.work(index, adopt);
            self.send(outputs);
        }
    }

    /// Does something with the first forwarder, of which the others hear what they need to know.
    pub(crate) fn change_first<T>(&self, change: impl FnOnce(&mut Forwarder) -> T) -> T {
        let (result, outputs) = self.work(0, change);
        self.send(outputs);
        result
    }
}
