//! Desktop notifications: by D-Bus, and by `osascript` on macOS.

use anyhow::Context as _;

use super::words::Words;

/// The hint if there is no desktop.
const HINT: &str = "`--exec COMMAND` runs a command in place of a desktop notification";

/// Shows a notification, and returns the name of the service.
///
/// # Errors
///
/// Why it could not be shown.
pub(super) fn show(words: &Words) -> anyhow::Result<String> {
    platform::show(words).context(format!("cannot show a desktop notification; {HINT}"))
}

/// Checks whether notifications can be shown.
///
/// # Errors
///
/// Why not.
pub(super) fn check() -> anyhow::Result<()> {
    platform::check().context(format!("cannot show desktop notifications; {HINT}"))
}

#[cfg(target_os = "linux")]
mod platform {
    use std::collections::HashMap;
    use std::time::Duration;

    use anyhow::Context as _;
    use zbus::connection::Builder;
    use zbus::wire::Variant;
    use zbus::{Connection, block_on};

    use super::super::words::Words;

    const NAME: &str = "org.freedesktop.Notifications";
    const PATH: &str = "/org/freedesktop/Notifications";
    /// How long the service may take to answer.
    const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
    /// The service decides when the notification disappears.
    const SERVICE_DECIDES: i32 = -1;

    pub(super) fn check() -> anyhow::Result<()> {
        block_on(async { service_of(&connect().await?).await }).map(|_| ())
    }

    /// Each notification has its own connection: the bus may have been restarted.
    pub(super) fn show(words: &Words) -> anyhow::Result<String> {
        block_on(async {
            let bus = connect().await?;
            let service = service_of(&bus).await?;
            let body: Vec<String> = words.body.iter().map(|line| without_markup(line)).collect();
            let no_actions: [&str; 0] = [];
            let arguments = (
                "whosup",
                0_u32,
                "utilities-terminal",
                words.summary.as_str(),
                body.join("\n"),
                no_actions.as_slice(),
                HashMap::<&str, Variant<'_>>::new(),
                SERVICE_DECIDES,
            );
            let answer = bus
                .call_method(Some(NAME), PATH, Some(NAME), "Notify", &arguments)
                .await
                .with_context(|| format!("`{service}` refused it"))?;
            let id: u32 = answer.body().deserialize()?;
            Ok(format!("`{service}` shows it as notification {id}"))
        })
    }

    async fn connect() -> anyhow::Result<Connection> {
        let bus = Builder::session().method_timeout(ANSWER_TIME_MAX);
        bus.build()
            .await
            .context("cannot connect to the D-Bus of this login session")
    }

    /// The name of the service. The question starts the service, if possible.
    async fn service_of(bus: &Connection) -> anyhow::Result<String> {
        let answer = bus
            .call_method(Some(NAME), PATH, Some(NAME), "GetServerInformation", &())
            .await
            .context("no notification service answers on D-Bus")?;
        let (name, _, version, _): (String, String, String, String) =
            answer.body().deserialize()?;
        Ok(crate::text::one_line(&format!("{name} {version}")))
    }

    /// Bodies may have markup; text of models must not be read as markup.
    fn without_markup(text: &str) -> String {
        let text = text.replace('&', "&amp;");
        text.replace('<', "&lt;").replace('>', "&gt;")
    }
}

#[cfg(target_os = "macos")]
mod platform {
    use std::process::{Command, Stdio};

    use anyhow::{Context as _, ensure};

    use super::super::words::Words;

    /// The texts are arguments, so that they can't be read as a script.
    const SCRIPT: [&str; 6] = [
        "-e",
        "on run argv",
        "-e",
        "display notification (item 2 of argv) with title (item 1 of argv)",
        "-e",
        "end run",
    ];

    pub(super) fn check() -> anyhow::Result<()> {
        Ok(())
    }

    pub(super) fn show(words: &Words) -> anyhow::Result<String> {
        let mut command = Command::new("/usr/bin/osascript");
        command
            .args(SCRIPT)
            .args(["--", &words.summary, &words.body.join("\n")])
            .stdin(Stdio::null());
        let output = command.output().context("cannot start `osascript`")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`osascript` failed: {said}");
        Ok("`osascript` took it".to_owned())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod platform {
    use super::super::words::Words;

    pub(super) fn check() -> anyhow::Result<()> {
        anyhow::bail!("whosup does not know the notifications of this system")
    }

    pub(super) fn show(_: &Words) -> anyhow::Result<String> {
        check().map(|()| String::new())
    }
}
