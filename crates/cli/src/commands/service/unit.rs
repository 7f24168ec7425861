//! The files of systemd and launchd.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use whosup_core::machine::Environment;

use super::Service;

/// The service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    /// systemd, for one user.
    Systemd,
    /// launchd of macOS.
    Launchd,
}

impl Keeper {
    /// The service manager of this system.
    ///
    /// # Errors
    ///
    /// If none is known.
    pub(super) fn here() -> anyhow::Result<Self> {
        if cfg!(target_os = "linux") {
            Ok(Self::Systemd)
        } else if cfg!(target_os = "macos") {
            Ok(Self::Launchd)
        } else {
            bail!("whosup knows services of systemd and launchd only, and this system has neither")
        }
    }

    /// Where the file of a service is.
    ///
    /// # Errors
    ///
    /// If the home is not known.
    pub(super) fn file(self, service: Service, home: &Environment) -> anyhow::Result<PathBuf> {
        let (directory, below) = match self {
            Self::Systemd => (
                home.xdg_directory("XDG_CONFIG_HOME", ".config"),
                "systemd/user",
            ),
            Self::Launchd => (home.home().map(Path::to_owned), "Library/LaunchAgents"),
        };
        let directory = directory.context("cannot find the home directory; set `HOME`")?;
        Ok(directory.join(below).join(self.name(service)))
    }

    /// The name of the file.
    pub(super) fn name(self, service: Service) -> String {
        match self {
            Self::Systemd => format!("whosup-{}.service", service.name()),
            Self::Launchd => format!("{}.plist", label(service)),
        }
    }

    /// The line that marks a file as written by whosup.
    pub(super) fn mark(self, service: Service) -> String {
        let words = format!("Written by `whosup service install {}`.", service.name());
        match self {
            Self::Systemd => format!("# {words}"),
            Self::Launchd => format!("<!-- {words} -->"),
        }
    }

    /// The file that runs a program with these arguments.
    ///
    /// # Errors
    ///
    /// If the format can't express the arguments.
    pub(super) fn text(self, service: Service, argv: &[String]) -> anyhow::Result<String> {
        for word in argv {
            if word.contains(char::is_control) {
                bail!("cannot write {word:?} into a service: it has a control character");
            }
        }
        let mark = self.mark(service);
        Ok(match self {
            Self::Systemd => systemd(service, &mark, argv),
            Self::Launchd => launchd(service, &mark, argv),
        })
    }

    /// The commands that start the service now and at each login.
    pub(super) fn start(self, service: Service, file: &Path) -> Vec<Vec<String>> {
        let name = self.name(service);
        match self {
            Self::Systemd => vec![
                words(["systemctl", "--user", "daemon-reload"]),
                words(["systemctl", "--user", "enable", "--now", &name]),
            ],
            Self::Launchd => vec![words(["launchctl", "load", "-w", &file.to_string_lossy()])],
        }
    }

    /// The command that makes a running service use a changed file; after [`Keeper::start`].
    pub(super) fn restart(self, service: Service) -> Option<Vec<String>> {
        match self {
            Self::Systemd => Some(words([
                "systemctl",
                "--user",
                "try-restart",
                &self.name(service),
            ])),
            // launchd loads the file at the next login.
            Self::Launchd => None,
        }
    }

    /// The commands that stop the service, before the file is removed.
    pub(super) fn stop(self, service: Service, file: &Path) -> Vec<Vec<String>> {
        let name = self.name(service);
        vec![match self {
            Self::Systemd => words(["systemctl", "--user", "disable", "--now", &name]),
            Self::Launchd => words(["launchctl", "unload", "-w", &file.to_string_lossy()]),
        }]
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

fn label(service: Service) -> String {
    format!("whosup.{}", service.name())
}

/// See systemd.service(5), "Command lines", and systemd.unit(5), "Specifiers". The output of
/// `serve` has the token, which is not for the journal.
fn systemd(service: Service, mark: &str, argv: &[String]) -> String {
    let quote = |(at, word): (usize, &String)| {
        let word = word.replace('\\', "\\\\").replace('"', "\\\"");
        let word = word.replace('%', "%%");
        // systemd expands no variables in the program's name.
        let word = if at == 0 {
            word
        } else {
            word.replace('$', "$$")
        };
        format!("\"{word}\"")
    };
    let command: Vec<String> = argv.iter().enumerate().map(quote).collect();
    format!(
        "{mark}\n[Unit]\nDescription=whosup {}\n\n[Service]\nExecStart={}\nStandardOutput=null\n\
         Restart=on-failure\nRestartSec=30\n\n[Install]\nWantedBy=default.target\n",
        service.name(),
        command.join(" ")
    )
}

/// See launchd.plist(5).
fn launchd(service: Service, mark: &str, argv: &[String]) -> String {
    let text = |word: &str| {
        let word = word.replace('&', "&amp;");
        format!(
            "<string>{}</string>",
            word.replace('<', "&lt;").replace('>', "&gt;")
        )
    };
    let argv: Vec<String> = argv
        .iter()
        .map(|word| format!("    {}\n", text(word)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{mark}\n<plist version=\"1.0\">\n<dict>\n  \
         <key>Label</key>\n  {}\n  <key>ProgramArguments</key>\n  <array>\n{}  </array>\n  \
         <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    \
         <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n</dict>\n</plist>\n",
        text(&label(service)),
        argv.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::{Keeper, Service};

    fn text(keeper: Keeper) -> String {
        let argv = [
            "/opt/a \"b\" 50%/$x&<y>/whosup",
            "--config",
            "$HOME/c",
            "notify",
        ];
        let argv = argv.map(str::to_owned);
        keeper.text(Service::Notify, &argv).unwrap()
    }

    #[test]
    fn words_of_a_command_stay_what_they_are() {
        let unit = text(Keeper::Systemd);
        let line = r#"ExecStart="/opt/a \"b\" 50%%/$x&<y>/whosup" "--config" "$$HOME/c" "notify""#;
        assert!(unit.lines().any(|it| it == line), "{unit}");
        let plist = text(Keeper::Launchd);
        let line = r#"<string>/opt/a "b" 50%/$x&amp;&lt;y&gt;/whosup</string>"#;
        assert!(plist.lines().any(|it| it.trim() == line), "{plist}");
    }

    #[test]
    fn a_control_character_is_refused() {
        for keeper in [Keeper::Systemd, Keeper::Launchd] {
            let argv = ["/opt/whosup\nExecStartPre=/bin/false".to_owned()];
            assert!(keeper.text(Service::Serve, &argv).is_err());
        }
    }

    #[test]
    fn the_mark_is_a_line_near_the_top() {
        for keeper in [Keeper::Systemd, Keeper::Launchd] {
            let mark = keeper.mark(Service::Notify);
            assert!(text(keeper).lines().take(3).any(|line| line == mark));
        }
    }
}
