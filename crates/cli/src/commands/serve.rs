//! `whosup serve`

mod act;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use clap::Args;
use whosup_core::judging::verdict::Verdict;
use whosup_core::machine::Machine;
use whosup_core::machine::problem::Found;
use whosup_core::process::Pid;
use whosup_live::Engine;
use whosup_serve::{
    Announced, Bound, Listen, Options, Running, TlsFiles, Tokens, announce, find_running, serve,
    write_opener,
};

use self::act::Commands;
use crate::app::{App, say};
use crate::exit::ExitStatus;
use crate::watched::machine_of;

/// The default address.
const ADDRESS: &str = "127.0.0.1:7697";

const EXAMPLES: &str = "\
Examples:
  whosup serve --open                        Serve, and open the dashboard in a browser
  whosup serve --listen 127.0.0.1:0          Listen on any free port
  whosup serve --socket $XDG_RUNTIME_DIR/whosup.sock
  whosup serve --status                      Print where the server listens
  curl -H \"Authorization: Bearer $(cat ~/.local/state/whosup/server/token)\" \\
    http://127.0.0.1:7697/api/v1/state

The first line of output is the address with the token. `/api/v1/openapi.json` describes the
routes. The token is kept in a file that only you can read.
Exit status: 0 the server was ended; --status: 0 it is running, 1 it has exited, 3 unknown,
4 there is none; 2 another server is running or the command failed.";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Listen on this address; port 0: any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADDRESS)]
    listen: SocketAddr,
    /// Listen on a Unix socket, in a directory that only you can write
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "open"])]
    socket: Option<PathBuf>,
    /// Open the dashboard in a browser
    #[arg(long)]
    open: bool,
    /// Replace the token; clients need the new one at once
    #[arg(long)]
    new_token: bool,
    /// Print where the server listens, and exit
    #[arg(long, conflicts_with_all = ["open", "new_token"])]
    status: bool,
    /// Let clients type into sessions, and stop, end and dismiss them
    #[arg(long)]
    allow_actions: bool,
    /// Let other hosts connect without TLS
    #[arg(long, conflicts_with_all = ["socket", "tls_cert"])]
    insecure: bool,
    /// Certificate for TLS, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "socket"
    )]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// Serves until it is ended, or reports where another server listens.
///
/// # Errors
///
/// If it can't serve.
pub(crate) fn run(app: &mut App<'_>, arguments: &ServeArgs) -> anyhow::Result<ExitStatus> {
    let tokens = Tokens::of(app.world.machine().environment())?;
    let known = find_running(app.world.machine(), tokens.directory());
    if arguments.status {
        return say_status(app, &tokens, &known);
    }
    let world = machine_of(&app.world)?;
    let live = known
        .found
        .iter()
        .find(|one| matches!(one.verdict, Verdict::Live(..)));
    if arguments.new_token {
        tokens.make()?;
    }
    if let Some(running) = live {
        return use_running(app, arguments, &tokens, running);
    }
    for problem in &known.problems {
        let words = format!("warning: another server may be running: {problem}");
        say(app.err, &crate::text::visible(&words));
    }
    let bound = bind(app, arguments)?;
    let endpoint = bound.endpoint();
    let url = url(&endpoint, &tokens.read_or_make()?.to_string());
    let options = Options {
        engine: Engine::start(world.clone())
            .context("cannot watch the sessions of this machine")?,
        world: Box::new(world),
        tokens: tokens.clone(),
        commands: Box::new(Commands::of(&app.world)),
        allows_actions: arguments.allow_actions,
    };
    let mut announced = None;
    let served = serve(bound, options, || {
        // Only a server that can answer is announced.
        let announced = announced.insert(announce(tokens.directory(), &endpoint)?);
        if has_lost_the_race(announced, &tokens) {
            bail!("another server was started at the same time");
        }
        writeln!(app.out, "{url}")?;
        app.out.flush()?;
        say_how_to_end(app, arguments);
        if arguments.open
            && let Err(error) = open(&tokens, &url)
        {
            let words = format!("warning: {error:#}; open the address above in a browser");
            say(app.err, &crate::text::visible(&words));
        }
        Ok(())
    });
    if let Some(announced) = announced {
        announced.end()?;
    }
    served.map(|()| ExitStatus::Done)
}

/// Two servers that start at once do not find each other; the first announcement wins.
fn has_lost_the_race(announced: &Announced, tokens: &Tokens) -> bool {
    let machine = Machine::here();
    let is_other =
        |one: &Running| matches!(one.verdict, Verdict::Live(..)) && one.pid != Some(Pid::own());
    announced.is_beside_another()
        && find_running(&machine, tokens.directory())
            .found
            .iter()
            .any(is_other)
}

fn bind(app: &App<'_>, arguments: &ServeArgs) -> anyhow::Result<Bound> {
    let listen = match &arguments.socket {
        Some(path) => Listen::Socket(path.clone()),
        None => Listen::Address(arguments.listen),
    };
    let files = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    let tls = files.map(|(certificate, key)| TlsFiles { certificate, key });
    let machine = app.world.machine();
    Ok(Bound::new(
        machine,
        &listen,
        tls.as_ref(),
        arguments.insecure,
    )?)
}

/// The address with the token, for a browser; a socket is a path.
fn url(endpoint: &str, token: &str) -> String {
    if endpoint.starts_with('/') {
        endpoint.to_owned()
    } else {
        format!("{endpoint}/#token={token}")
    }
}

fn say_how_to_end(app: &mut App<'_>, arguments: &ServeArgs) {
    let actions = if arguments.allow_actions {
        "clients may type into sessions, stop, end and dismiss them"
    } else {
        "clients can change nothing"
    };
    say(
        app.err,
        &format!("serving: {actions}; press Ctrl-C to stop"),
    );
}

/// Another server is running: reports it, unless an option asks for something else.
fn use_running(
    app: &mut App<'_>,
    arguments: &ServeArgs,
    tokens: &Tokens,
    running: &Running,
) -> anyhow::Result<ExitStatus> {
    let url = url(&running.endpoint, &tokens.read()?.to_string());
    writeln!(app.out, "{url}")?;
    if arguments.open {
        open(tokens, &url)?;
    }
    if arguments.open || arguments.new_token {
        return Ok(ExitStatus::Done);
    }
    let pid = running
        .pid
        .map_or_else(String::new, |pid| format!(" (PID {pid})"));
    say(
        app.err,
        &format!(
            "error: another server is running{pid}\nhint: use that server at the address above, or stop it first"
        ),
    );
    Ok(ExitStatus::Failed)
}

fn say_status(
    app: &mut App<'_>,
    tokens: &Tokens,
    known: &Found<Vec<Running>>,
) -> anyhow::Result<ExitStatus> {
    let mut status = ExitStatus::NoSuchSession;
    for running in &known.found {
        let reason = running.verdict.reason();
        match running.verdict {
            Verdict::Live(..) => {
                let url = url(&running.endpoint, &tokens.read()?.to_string());
                writeln!(app.out, "{url}")?;
                return Ok(ExitStatus::Done);
            }
            Verdict::Unknown(_) => status = ExitStatus::Unknown,
            Verdict::Exited(_) if status == ExitStatus::NoSuchSession => {
                status = ExitStatus::Exited
            }
            Verdict::Exited(_) => {}
        }
        let answer = running.verdict.liveness().name();
        let path = running.path.display();
        let words = format!("the server of `{path}` is {answer} ({reason})");
        say(app.err, &crate::text::visible(&words));
    }
    for problem in &known.problems {
        let words = format!("a server may be running: {problem}");
        say(app.err, &crate::text::visible(&words));
        status = ExitStatus::Unknown;
    }
    if known.found.is_empty() && known.problems.is_empty() {
        say(app.err, "no server is running; `whosup serve` starts one");
    }
    Ok(status)
}

/// Opens the dashboard. The token is not passed as an argument, which every user could
/// read: the browser gets a page that redirects to it.
fn open(tokens: &Tokens, url: &str) -> anyhow::Result<()> {
    let page = write_opener(tokens, url)?;
    let opener = if cfg!(target_vendor = "apple") {
        "open"
    } else {
        "xdg-open"
    };
    Command::new(opener)
        .arg(&page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| {
            format!(
                "cannot open `{}`: `{opener}` does not start",
                page.display()
            )
        })?;
    Ok(())
}
