//! Programs that run as long as they are wanted, spoken to through pipes.
//!
//! A thread of its own starts the program and waits for it without reaping it, so that its id stays its own for as long
//! as anything may be signalled.

use std::io;
use std::sync::mpsc as blocking;

use rustix::process::Signal;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::processes::{wait_and_reap, wait_without_reaping};
use super::session::CommandProcesses;
use super::spawn::{Descriptors, spawn};
use crate::workspace::ShellExit;
use crate::workspace::local::launch::Launch;
use crate::workspace::local::program::{ProgramKiller, ProgramPipes};

/// A program that was started. Dropped, it and everything in its session is ended at once.
#[derive(Debug)]
pub(crate) struct LocalProgram {
    processes: CommandProcesses,
    exited: oneshot::Receiver<ShellExit>,
    exit: Option<ShellExit>,
    /// Dropped, it lets the thread reap the program.
    reap: blocking::Sender<()>,
}

impl LocalProgram {
    /// Starts a program in a session of its own.
    pub(crate) async fn start(launch: Launch) -> io::Result<(Self, ProgramPipes)> {
        let ((stdin, to_program), (from_program, stdout), (errors, stderr)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        let pipes = ProgramPipes {
            stdin: Box::new(pipe::Sender::from_owned_fd(to_program.into())?),
            stdout: Box::new(pipe::Receiver::from_owned_fd(from_program.into())?),
            stderr: Box::new(pipe::Receiver::from_owned_fd(errors.into())?),
        };
        let descriptors = Descriptors { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
        let (started, starting) = oneshot::channel();
        let (exit, exited) = oneshot::channel();
        let (reap, may_reap) = blocking::channel::<()>();
        std::thread::Builder::new().name("pi-program".to_owned()).spawn(move || {
            let pid = match spawn(&launch, descriptors) {
                Ok(pid) => pid,
                Err(error) => {
                    let _ = started.send(Err(error));
                    return;
                }
            };
            // A caller that is gone has dropped `reap`, too, but nobody would end the program.
            if started.send(Ok(pid)).is_err() {
                CommandProcesses::of_child(pid).signal(Signal::KILL);
            }
            let _ = exit.send(wait_without_reaping(pid));
            let _ = may_reap.recv();
            wait_and_reap(pid);
        })?;
        let pid = starting.await.unwrap_or_else(|_| Err(io::Error::other("the thread that starts it ended")))?;
        let program = Self { processes: CommandProcesses::of_child(pid), exited, exit: None, reap };
        Ok((program, pipes))
    }

    /// What ends it at once. The program is not reaped as long as that is kept.
    pub(crate) fn killer(&self) -> ProgramKiller {
        let (processes, reap) = (self.processes, self.reap.clone());
        ProgramKiller(Box::new(move || {
            let _unreaped = &reap;
            processes.signal(Signal::KILL);
        }))
    }

    /// Waits for the end of the program itself, not of what it started. It may be asked again.
    pub(crate) async fn exited(&mut self) -> ShellExit {
        match self.exit {
            Some(exit) => exit,
            None => {
                // The thread always sends before it ends.
                let exit = (&mut self.exited).await.unwrap_or(ShellExit::Code(1));
                self.exit = Some(exit);
                exit
            }
        }
    }

    /// Asks everything in the program's session to end.
    pub(crate) async fn terminate(&self) {
        self.signal(Signal::TERM).await;
    }

    /// Ends everything in the program's session.
    pub(crate) async fn kill(&self) {
        self.signal(Signal::KILL).await;
    }

    /// Looking through /proc takes its time.
    async fn signal(&self, signal: Signal) {
        let (processes, reap) = (self.processes, self.reap.clone());
        // A runtime that ends does not run it; then the drop does.
        let _ = tokio::task::spawn_blocking(move || {
            processes.signal(signal);
            // Only now may the program's id come to mean something else.
            drop(reap);
        })
        .await;
    }
}

impl Drop for LocalProgram {
    fn drop(&mut self) {
        self.processes.signal(Signal::KILL);
    }
}
