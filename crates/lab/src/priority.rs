//! How urgent the work of a thread is, where the system lets itself be told.

use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Real-time priority: above all ordinary programs, below the kernel's own threads.
const PRIORITY: u8 = 10;

/// Gives this thread real-time priority; false where the system does not permit it.
pub(crate) fn rise() -> bool {
    let Ok(priority) = ThreadPriorityValue::try_from(PRIORITY) else {
        return false;
    };
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriority::Crossplatform(priority);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}

/// Lets this thread run only while no ordinary one wants its processor; false where the system does not permit it.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() -> bool {
    let policy = ThreadSchedulePolicy::Normal(thread_priority::NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Other systems have no such policy.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use thread_priority::{NormalThreadSchedulePolicy, thread_schedule_policy};

    use super::*;

    #[test]
    fn a_thread_gives_way_alone() {
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let other = std::thread::spawn(|| (give_way(), thread_schedule_policy()));
        assert_eq!(other.join().unwrap(), (true, Ok(idle)));
        assert_ne!(thread_schedule_policy(), Ok(idle));
    }
}
