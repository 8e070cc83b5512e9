//! The processes of one command: signalling all of them, and none else.
//!
//! The shell of a command leads a session and a process group of its own, and is not reaped before its
//! command is over, so that neither id can come to mean anything else meanwhile.

use std::io;

use rustix::process::{Pid, Signal, getpgid, getpgrp};

use crate::workspace::Survivor;

/// A running command's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandProcesses {
    shell: Pid,
    leads: Leads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// The shell leads its own session and group.
    Session,
    /// It does not: only the shell itself may be signalled, a group would be somebody else's.
    Nothing,
}

impl CommandProcesses {
    /// The processes of a child that was not reaped yet.
    pub(super) fn of_child(shell: Pid) -> Self {
        let leads = match getpgid(Some(shell)) {
            Ok(group) if group == shell && group != getpgrp() && shell.as_raw_nonzero().get() > 1 => Leads::Session,
            _ => Leads::Nothing,
        };
        Self { shell, leads }
    }

    /// Sends a signal to all of them. Those that are gone do not matter.
    pub(super) fn signal(self, signal: Signal) {
        match self.leads {
            Leads::Nothing => {
                let _ = rustix::process::kill_process(self.shell, signal);
            }
            Leads::Session => {
                let _ = rustix::process::kill_process_group(self.shell, signal);
                // Job control puts background jobs into groups of their own.
                members::signal_other_groups(self.shell, signal);
            }
        }
    }

    /// Whether any of them still runs, where the system tells.
    pub(super) fn any_running(self) -> Option<bool> {
        match self.leads {
            Leads::Nothing => None,
            Leads::Session => members::any_running(self.shell),
        }
    }
}

/// Processes that a command started and that are not in its session: signals to the command do not reach them.
///
/// Found by going from parents to children, so it has to be asked while the command runs: a child whose parent has ended
/// belongs to somebody else.
#[derive(Debug, Default)]
pub(super) struct Departed(Vec<members::Facts>);

impl Departed {
    pub(super) fn from(command: CommandProcesses) -> Self {
        match command.leads {
            Leads::Nothing => Self::default(),
            Leads::Session => Self(members::departed(command.shell)),
        }
    }

    /// Those of them that still run.
    pub(super) fn still_running(&self) -> Vec<Survivor> {
        self.0.iter().filter_map(members::still_running).collect()
    }
}

/// Processes that hold the writing end of a pipe, where the system tells.
pub(super) fn holders_of(pipe: &impl std::os::fd::AsFd) -> Vec<Survivor> {
    rustix::fs::fstat(pipe)
        .map_err(io::Error::from)
        .map(|stat| members::holders_of_pipe(stat.st_ino))
        .unwrap_or_default()
}

#[cfg(target_os = "linux")]
mod members {
    //! What /proc tells about processes.

    use std::collections::HashMap;
    use std::fs;
    use std::path::Path;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::workspace::Survivor;

    #[derive(Debug)]
    pub(super) struct Facts {
        pid: Pid,
        name: String,
        state: char,
        parent: i32,
        group: i32,
        session: i32,
        /// Ticks from the start of the system: with it an id means one process for good.
        started: u64,
    }

    impl Facts {
        fn runs(&self) -> bool {
            !matches!(self.state, 'Z' | 'X')
        }

        fn survivor(self) -> Survivor {
            Survivor { pid: self.pid.as_raw_nonzero().get().unsigned_abs(), name: self.name }
        }
    }

    pub(super) fn signal_other_groups(session: Pid, signal: Signal) {
        let session = session.as_raw_nonzero().get();
        for pid in pids() {
            let in_another_group =
                |pid: Pid| facts(pid).is_some_and(|facts| facts.session == session && facts.group != session);
            if !in_another_group(pid) {
                continue;
            }
            // The handle means the process that has the id now; asked again, it is one of ours or is left alone.
            if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
                && in_another_group(pid)
            {
                let _ = pidfd_send_signal(&handle, signal);
            }
        }
    }

    pub(super) fn any_running(session: Pid) -> Option<bool> {
        let session = session.as_raw_nonzero().get();
        fs::exists("/proc/self/stat").ok().filter(|exists| *exists)?;
        Some(pids().filter_map(facts).any(|facts| facts.session == session && facts.runs()))
    }

    pub(super) fn departed(shell: Pid) -> Vec<Facts> {
        let session = shell.as_raw_nonzero().get();
        let mut children: HashMap<i32, Vec<Facts>> = HashMap::new();
        for facts in pids().filter_map(facts) {
            children.entry(facts.parent).or_default().push(facts);
        }
        let mut ahead = vec![session];
        let mut departed = Vec::new();
        while let Some(parent) = ahead.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                ahead.push(child.pid.as_raw_nonzero().get());
                if child.session != session {
                    departed.push(child);
                }
            }
        }
        departed
    }

    pub(super) fn still_running(then: &Facts) -> Option<Survivor> {
        // Its name may have changed: between fork and exec it was that of its parent.
        let now = facts(then.pid).filter(|now| now.started == then.started && now.runs())?;
        Some(now.survivor())
    }

    pub(super) fn holders_of_pipe(inode: u64) -> Vec<Survivor> {
        let wanted = format!("pipe:[{inode}]");
        let own = rustix::process::getpid();
        pids()
            .filter(|pid| *pid != own)
            .filter(|pid| {
                let Ok(open) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
                    return false;
                };
                open.filter_map(Result::ok)
                    .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
                    .any(|target| target == Path::new(&wanted))
            })
            .filter_map(|pid| facts(pid).map(Facts::survivor))
            .collect()
    }

    fn pids() -> impl Iterator<Item = Pid> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(Pid::from_raw)
    }

    /// From `pid (name) state parent group session …`, the start in field 22; the name may hold anything, parentheses
    /// too.
    fn facts(pid: Pid) -> Option<Facts> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let (head, tail) = stat.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        let mut fields = tail.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Facts { pid, name: name.to_owned(), state, parent, group, session, started })
    }
}

#[cfg(not(target_os = "linux"))]
mod members {
    //! Without /proc only the process group is known.

    use rustix::process::{Pid, Signal};

    use crate::workspace::Survivor;

    pub(super) fn signal_other_groups(_session: Pid, _signal: Signal) {}

    pub(super) fn any_running(_session: Pid) -> Option<bool> {
        None
    }

    #[derive(Debug)]
    pub(super) enum Facts {}

    pub(super) fn departed(_shell: Pid) -> Vec<Facts> {
        Vec::new()
    }

    pub(super) fn still_running(then: &Facts) -> Option<Survivor> {
        match *then {}
    }

    pub(super) fn holders_of_pipe(_inode: u64) -> Vec<Survivor> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(prepare: impl FnOnce(&mut Command)) -> Child {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null());
        prepare(&mut command);
        command.spawn().unwrap()
    }

    #[test]
    fn a_child_that_got_no_group_of_its_own_is_signalled_alone() {
        let mut child = sleeper(|_| {});
        let processes = CommandProcesses::of_child(Pid::from_child(&child));
        assert!(matches!(processes.leads, Leads::Nothing));
        // Our own group would have been ended by this, and the test with it.
        processes.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_child_that_leads_a_group_is_signalled_with_it() {
        let mut child = sleeper(|command| {
            command.process_group(0);
        });
        let processes = CommandProcesses::of_child(Pid::from_child(&child));
        assert!(matches!(processes.leads, Leads::Session));
        processes.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
