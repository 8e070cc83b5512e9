//! Keeping commands from writing elsewhere and from the network, with the kernel's own means (Linux).
//!
//! Landlock and seccomp restrict the thread that calls for them and every process that it starts, for good. So
//! a thread is made for each command, enters the sandbox, and starts the command from there. What this
//! protects from and what not is told in `docs/security.md`.

use std::path::PathBuf;

/// What commands are kept from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Directories (absolute paths) below which they may write.
    pub writable: Vec<PathBuf>,
    /// Whether they reach the network.
    pub network: Network,
}

/// Whether commands reach the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// They cannot make a socket of any kind.
    #[default]
    Denied,
    /// They can.
    Allowed,
}

/// The sandbox was asked for and cannot be had; nothing runs without it then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The sandbox is not available: {reason}. Commands run only without it, which must be asked for.")]
pub struct SandboxUnavailable {
    /// What is missing.
    pub reason: String,
}

impl Sandbox {
    /// Whether this system and this build can do it.
    ///
    /// # Errors
    ///
    /// Says what is missing.
    pub fn check() -> Result<(), SandboxUnavailable> {
        // Entering it is the one proof; a thread that ends at once takes the restrictions along.
        let probe = Self { writable: Vec::new(), network: Network::Denied };
        std::thread::spawn(move || probe.enter())
            .join()
            .unwrap_or_else(|_| Err(SandboxUnavailable { reason: "entering it failed".to_owned() }))
    }

    /// Restricts the calling thread and all that it starts.
    pub(super) fn enter(&self) -> Result<(), SandboxUnavailable> {
        system::enter(self).map_err(|reason| SandboxUnavailable { reason })
    }
}

#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod system {
    use std::collections::BTreeMap;

    use landlock::{
        ABI, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
        RulesetCreatedAttr as _, RulesetStatus, Scope,
    };
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

    use super::{Network, Sandbox};

    /// The first version that also knows about truncating files (Linux 6.2). With less, files elsewhere could be emptied.
    const NEEDED: ABI = ABI::V3;

    pub(super) fn enter(sandbox: &Sandbox) -> Result<(), String> {
        limit_files(sandbox)?;
        limit_calls(sandbox.network)
    }

    fn limit_files(sandbox: &Sandbox) -> Result<(), String> {
        let failed = |error: landlock::RulesetError| format!("Landlock of Linux 6.2 or newer is needed ({error})");
        let write = AccessFs::from_write(NEEDED);
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(write)
            .map_err(failed)?
            // More where the kernel knows it: device controls, sockets of others, signals to others.
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::IoctlDev | AccessFs::ResolveUnix)
            .map_err(failed)?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)
            .map_err(failed)?
            .create()
            .map_err(failed)?;
        // A device node would be a way around, for whoever may make one.
        let granted = (write | AccessFs::ResolveUnix) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
        let opened = |path: &std::path::Path| {
            PathFd::new(path).map_err(|error| format!("{} cannot be opened ({error})", path.display()))
        };
        for root in &sandbox.writable {
            ruleset = ruleset.add_rule(PathBeneath::new(opened(root)?, granted)).map_err(failed)?;
        }
        let null = PathBeneath::new(opened("/dev/null".as_ref())?, AccessFs::WriteFile | AccessFs::Truncate);
        let status = ruleset.add_rule(null).map_err(failed)?.restrict_self().map_err(failed)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err("the kernel did not enforce Landlock".to_owned());
        }
        Ok(())
    }

    /// System calls that make sockets, also by the way around the filter.
    fn limit_calls(network: Network) -> Result<(), String> {
        if network == Network::Allowed {
            return Ok(());
        }
        let mut calls =
            vec![libc::SYS_socket, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];
        if cfg!(target_arch = "x86_64") {
            // The same calls in the numbering of the x32 interface.
            const X32: libc::c_long = 0x4000_0000;
            calls.extend(calls.clone().into_iter().map(|call| X32 | call));
        }
        let failed = |error: &dyn std::fmt::Display| format!("a seccomp filter cannot be set ({error})");
        let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
        let rules: BTreeMap<i64, Vec<_>> = calls.into_iter().map(|call| (call, Vec::new())).collect();
        let refuse = SeccompAction::Errno(libc::EACCES.unsigned_abs());
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).map_err(|error| failed(&error))?;
        let program = BpfProgram::try_from(filter).map_err(|error| failed(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| failed(&error))
    }
}

#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
mod system {
    use super::Sandbox;

    pub(super) fn enter(_sandbox: &Sandbox) -> Result<(), String> {
        Err(if cfg!(target_os = "linux") {
            "this build was made without the `sandbox` feature".to_owned()
        } else {
            "there is none for this operating system".to_owned()
        })
    }
}
