//! CPU time, memory and medians.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Error;

/// CPU time of the calling thread so far.
pub fn thread_cpu() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time of all threads of this process so far.
pub fn process_cpu() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

/// CPU time of all child processes that have ended, and of theirs, so far. To a hundredth of a second.
///
/// # Errors
///
/// Where there is no `/proc`.
pub fn children_cpu() -> Result<Duration, Error> {
    let stat = std::fs::read_to_string("/proc/self/stat")
        .map_err(|error| format!("/proc/self/stat (CPU time of children is only read on Linux): {error}"))?;
    // The second field is the program's name in parentheses, which may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let (user, system) = ticks(13).zip(ticks(14)).ok_or("/proc/self/stat has too few fields")?;
    Ok(Duration::from_millis((user + system) * 10))
}

/// The most memory that a running process has had, in bytes. `None` when it is gone, or where there is no `/proc`.
pub fn peak_memory_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The median of an odd number of runs, or the upper one of two.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of `runs` runs, in nanoseconds of this thread's CPU time per unit of work.
pub fn nanos_per(runs: usize, units: usize, mut work: impl FnMut()) -> f64 {
    let timed = |work: &mut dyn FnMut()| {
        let start = thread_cpu();
        work();
        (thread_cpu() - start).as_nanos() as f64 / units as f64
    };
    median((0..runs).map(|_| timed(&mut work)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 4.0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_tells_its_peak_memory() {
        assert!(peak_memory_of(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert_eq!(peak_memory_of(u32::MAX), None);
    }

    #[test]
    fn only_work_counts_as_cpu_time() {
        let start = thread_cpu();
        std::thread::sleep(Duration::from_millis(20));
        assert!(thread_cpu() - start < Duration::from_millis(20));
    }
}
