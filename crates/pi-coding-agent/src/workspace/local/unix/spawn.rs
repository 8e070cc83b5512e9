//! Starting a program that leads a session of its own, without a controlling terminal.
//!
//! The portable way forks, which copies the page tables of the whole process for nothing. Linux can do without: the
//! thread that starts it takes a working directory of its own, and `posix_spawn` does the rest.

use std::io;
use std::os::fd::OwnedFd;

use process_wrap::std::{CommandWrap, ProcessSession};
use rustix::process::Pid;

use crate::workspace::local::launch::Launch;

/// What the program has as its standard input, standard output and standard error.
pub(super) struct Descriptors {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Starts a program. Nothing reaps it but the caller.
///
/// To be called on a thread that ends with the program: its working directory may change.
pub(super) fn spawn(launch: &Launch, descriptors: Descriptors) -> io::Result<Pid> {
    #[cfg(target_os = "linux")]
    if linux::own_working_directory() {
        return linux::spawn(launch, &descriptors);
    }
    fork(launch, descriptors)
}

fn fork(launch: &Launch, descriptors: Descriptors) -> io::Result<Pid> {
    let mut wrap = CommandWrap::with_new(&launch.program, |process| {
        process
            .args(&launch.arguments)
            .current_dir(&launch.folder)
            .env_clear()
            .envs(&launch.environment)
            .stdin(descriptors.stdin)
            .stdout(descriptors.stdout)
            .stderr(descriptors.stderr);
    });
    wrap.wrap(ProcessSession);
    let child = wrap.spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(no_id)
}

fn no_id() -> io::Error {
    io::Error::other("the program got no process id")
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CString, NulError, OsStr};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt as _;

    use nix::libc;
    use nix::sched::{CloneFlags, unshare};
    use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
    use nix::sys::signal::{SigSet, Signal};
    use rustix::process::Pid;

    use super::Descriptors;
    use crate::workspace::local::launch::Launch;

    /// Gives this thread a working directory of its own. Containers may forbid it.
    pub(super) fn own_working_directory() -> bool {
        unshare(CloneFlags::CLONE_FS).is_ok()
    }

    pub(super) fn spawn(launch: &Launch, descriptors: &Descriptors) -> io::Result<Pid> {
        rustix::process::chdir(&launch.folder)?;
        let mut actions = PosixSpawnFileActions::init()?;
        actions.add_dup2(descriptors.stdin.as_raw_fd(), libc::STDIN_FILENO)?;
        actions.add_dup2(descriptors.stdout.as_raw_fd(), libc::STDOUT_FILENO)?;
        actions.add_dup2(descriptors.stderr.as_raw_fd(), libc::STDERR_FILENO)?;

        let mut attributes = PosixSpawnAttr::init()?;
        let own_session = PosixSpawnFlags::from_bits_retain(libc::POSIX_SPAWN_SETSID.into());
        attributes.set_flags(
            own_session | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
        )?;
        attributes.set_sigmask(&SigSet::empty())?;
        // Rust programs ignore it; others rely on it.
        attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;

        let arguments = std::iter::once(launch.program.as_os_str()).chain(launch.arguments.iter().map(OsStr::new));
        let arguments: Vec<CString> = arguments.map(|text| CString::new(text.as_bytes())).collect::<Result<_, _>>()?;
        let variable = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| -> Result<CString, NulError> {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let variables: Vec<CString> = launch.environment.iter().map(variable).collect::<Result<_, _>>()?;
        let child = posix_spawn(&launch.program, &actions, &attributes, &arguments, &variables)?;
        Pid::from_raw(child.as_raw()).ok_or_else(super::no_id)
    }
}
