//! A server that is measured, and clients that read as fast as they can.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};

use crate::setting::Setting;

/// How large the stack of a client is.
const STACK_BYTES: usize = 256 << 10;

/// A server. It ends with the benchmark.
pub(crate) struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    pub(crate) fn start(setting: &Setting, home: &Path) -> anyhow::Result<Self> {
        let mut command = setting.whosup(home, &["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://");
        let (address, token) = address
            .and_then(|rest| rest.split_once("/#token="))
            .with_context(|| format!("the server says `{line}`"))?;
        Ok(Self {
            address: address.to_owned(),
            token: token.to_owned(),
            child,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn ask(&self, path: &str) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        )?;
        Ok(stream)
    }

    pub(crate) fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut answer = String::new();
        self.ask(path)?.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // By its handle, so never another process.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client of the stream, each line of which has the time at which it was read.
pub(crate) struct Stream {
    lines: Receiver<(Instant, String)>,
    _reader: JoinHandle<()>,
}

impl Stream {
    pub(crate) fn open(server: &Server) -> anyhow::Result<Self> {
        let stream = server.ask("/api/v1/events")?;
        let (sender, lines) = channel();
        let reader = std::thread::spawn(move || read(stream, &sender));
        Ok(Self {
            lines,
            _reader: reader,
        })
    }

    /// When a line was read that is wanted.
    pub(crate) fn until(
        &mut self,
        time_max: Duration,
        is_wanted: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Instant> {
        let end = Instant::now() + time_max;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(rest) {
                Ok((at, line)) if is_wanted(&line) => return Ok(at),
                Ok(_) => {}
                Err(error) => bail!("no such event: {error}"),
            }
        }
    }

    /// Reads on until nothing has come for so long.
    pub(crate) fn rest(&mut self, silence: Duration) -> anyhow::Result<()> {
        loop {
            match self.lines.recv_timeout(silence) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => bail!("the stream has ended"),
            }
        }
    }
}

fn read(stream: TcpStream, sender: &Sender<(Instant, String)>) {
    let mut reader = BufReader::with_capacity(1 << 20, stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.starts_with("data: ") && sender.send((Instant::now(), line.clone())).is_err() {
            return;
        }
        line.clear();
    }
}

/// Very many clients.
pub(crate) struct Crowd {
    clients: Vec<(TcpStream, JoinHandle<Heard>)>,
}

#[derive(Debug, Default)]
struct Heard {
    last: String,
    events: usize,
    lags: Vec<Duration>,
}

/// How far clients were behind.
pub(crate) struct Lags {
    pub(crate) samples: Vec<Duration>,
    /// How many have not read the last event.
    pub(crate) behind: u32,
    pub(crate) events: usize,
}

impl Crowd {
    pub(crate) fn open(server: &Server, count: usize) -> anyhow::Result<Self> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            let stream = server.ask("/api/v1/events")?;
            let reading = stream.try_clone()?;
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            clients.push((stream, builder.spawn(move || hear(reading))?));
        }
        Ok(Self { clients })
    }

    /// Ends the connections.
    pub(crate) fn end(self) -> Lags {
        let mut heard = Vec::new();
        for (stream, client) in self.clients {
            stream.shutdown(std::net::Shutdown::Both).ok();
            heard.extend(client.join());
        }
        let number = |last: &str| -> u64 {
            let number = last.rsplit_once('-').map(|(_, number)| number);
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let last = heard.iter().map(|one| number(&one.last)).max();
        let behind = heard.iter().filter(|one| Some(number(&one.last)) != last);
        Lags {
            behind: u32::try_from(behind.count()).unwrap_or(u32::MAX),
            events: heard.iter().map(|one| one.events).sum(),
            samples: heard.into_iter().flat_map(|one| one.lags).collect(),
        }
    }
}

/// Reads to the end. What an event says of its look is compared with the clock.
fn hear(stream: TcpStream) -> Heard {
    let mut heard = Heard::default();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if let Some(id) = line.strip_prefix("id: ") {
            id.trim().clone_into(&mut heard.last);
        } else if line.starts_with("data: ") && !line.contains("\"kind\":\"snapshot\"") {
            heard.events += 1;
            heard.lags.extend(lag(&line));
        }
        line.clear();
    }
    heard
}

fn lag(line: &str) -> Option<Duration> {
    let (_, rest) = line.split_once("\"as_of\":\"")?;
    let at: jiff::Timestamp = rest.split('"').next()?.parse().ok()?;
    let at = Duration::from_millis(u64::try_from(at.as_millisecond()).ok()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.saturating_sub(at))
}
