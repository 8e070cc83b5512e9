//! Programs that run as long as they are wanted, spoken to through pipes; on Windows in a job object, which ends whole.

use std::io;
use std::process::Stdio;

#[cfg(windows)]
use process_wrap::tokio::JobObject;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};

use crate::workspace::ShellExit;
use crate::workspace::local::launch::Launch;
use crate::workspace::local::program::{ProgramKiller, ProgramPipes};

/// A program that was started. Dropped, it and what it started is ended at once.
#[derive(Debug)]
pub(crate) struct LocalProgram {
    child: std::sync::Mutex<Box<dyn ChildWrapper>>,
    exit: Option<ShellExit>,
}

impl LocalProgram {
    /// Starts a program.
    pub(crate) async fn start(launch: Launch) -> io::Result<(Self, ProgramPipes)> {
        let mut wrap = CommandWrap::with_new(&launch.program, |process| {
            process
                .args(&launch.arguments)
                .current_dir(&launch.folder)
                .env_clear()
                .envs(&launch.environment)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        });
        #[cfg(windows)]
        wrap.wrap(JobObject);
        wrap.wrap(KillOnDrop);
        let mut child = wrap.spawn()?;
        let pipes = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the program has no pipes"));
        };
        let pipes = ProgramPipes { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) };
        Ok((Self { child: std::sync::Mutex::new(child), exit: None }, pipes))
    }

    /// What ends it at once: nothing, because its job ends with this process.
    pub(crate) fn killer(&self) -> ProgramKiller {
        ProgramKiller(Box::new(|| {}))
    }

    /// Waits for the end of the program itself, not of what it started. It may be asked again.
    pub(crate) async fn exited(&mut self) -> ShellExit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let child = self.child.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let code = child.inner_mut().wait().await.ok().and_then(|status| status.code()).unwrap_or(1);
        *self.exit.insert(ShellExit::Code(code))
    }

    /// Ends everything that the program started: there is no polite way.
    pub(crate) async fn terminate(&self) {
        self.kill().await;
    }

    /// Ends everything that the program started.
    pub(crate) async fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // What was ended already does not matter.
        let _ = child.start_kill();
    }
}
