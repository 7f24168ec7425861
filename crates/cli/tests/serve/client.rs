//! A server that was started for one test, and a client of it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::world::{WHOSUP, World};

/// How long an answer is waited for.
pub(crate) const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A server. It ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// The program, in the home of a world.
pub(crate) fn whosup(world: &World) -> Command {
    let mut command = Command::new(WHOSUP);
    in_home(&mut command, world);
    command
}

pub(crate) fn in_home(command: &mut Command, world: &World) {
    command
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(world.work_dir());
}

impl Server {
    /// Starts one at a free port.
    pub(crate) fn start(world: &World) -> Self {
        Self::start_with(world, &["--listen", "127.0.0.1:0"])
    }

    pub(crate) fn start_with(world: &World, arguments: &[&str]) -> Self {
        Self::start_by(world, Command::new(WHOSUP), arguments).0
    }

    /// Starts one by a command, and returns what it reads.
    pub(crate) fn start_by(
        world: &World,
        mut command: Command,
        arguments: &[&str],
    ) -> (Self, ChildStdin) {
        in_home(&mut command, world);
        let mut child = command
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let line = line.trim_end();
        let (endpoint, token) = line.split_once("/#token=").unwrap_or((line, ""));
        let address = endpoint
            .split_once("://")
            .map_or(endpoint, |(_, rest)| rest);
        assert!(!address.is_empty(), "the server printed no address");
        let server = Self {
            address: address.to_owned(),
            token: token.to_owned(),
            child,
        };
        (server, stdin)
    }

    /// One of its metrics that is a whole number.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let body = self.get("/metrics").body;
        let line = body.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does, and returns its exit status.
    pub(crate) fn terminate(mut self) -> i32 {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(killed.success());
        self.child.wait().unwrap().code().unwrap()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).unwrap();
        stream
    }

    /// Sends a request as it is, and reads the answer to its end.
    #[track_caller]
    pub(crate) fn send(&self, request: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_reply(stream)
    }

    /// A request with what a right one has.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        if !has("authorization") {
            request += &format!("Authorization: Bearer {}\r\n", self.token);
        }
        if method == "POST" {
            if !has("content-type") {
                request += "Content-Type: application/json\r\n";
            }
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        format!("{request}\r\n{body}")
    }

    #[track_caller]
    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send(&self.request("GET", path, headers, ""))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    /// A document that is there.
    #[track_caller]
    pub(crate) fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        self.send(&self.request("POST", path, &[], body))
    }

    /// The sessions in the directory of a world, by a look of now.
    #[track_caller]
    pub(crate) fn sessions(&self, world: &World) -> Vec<Value> {
        let path = format!("/api/v1/state?fresh=1&cwd={}", world.work_dir().display());
        self.json(&path)["sessions"].as_array().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // By its handle, so never another process; it may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Reply {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of an error.
    #[track_caller]
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap().to_owned()
    }
}

#[track_caller]
pub(crate) fn read_reply(stream: impl Read) -> Reply {
    let mut reader = BufReader::new(stream);
    let (status, headers) = read_head(&mut reader).expect("an answer");
    let mut body = Vec::new();
    if headers
        .get("transfer-encoding")
        .is_some_and(|value| value == "chunked")
    {
        Chunked::new(reader).read_to_end(&mut body).unwrap();
    } else {
        reader.read_to_end(&mut body).unwrap();
    }
    Reply {
        status,
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}

/// Reads a status and headers; `None` if the connection ended before.
pub(crate) fn read_head(
    reader: &mut BufReader<impl Read>,
) -> Option<(u16, HashMap<String, String>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Some((status, headers));
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}

/// A body in chunks.
pub(crate) struct Chunked<R: Read> {
    reader: BufReader<R>,
    rest: usize,
    is_over: bool,
}

impl<R: Read> Chunked<R> {
    pub(crate) fn new(reader: BufReader<R>) -> Self {
        Self {
            reader,
            rest: 0,
            is_over: false,
        }
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }
}

impl<R: Read> Read for Chunked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        if self.rest == 0 {
            let size = self.line()?;
            self.rest = usize::from_str_radix(&size, 16)
                .map_err(|_| std::io::Error::other(format!("no size of a chunk: `{size}`")))?;
            if self.rest == 0 {
                self.line()?;
                self.is_over = true;
                return Ok(0);
            }
        }
        let wanted = buffer.len().min(self.rest);
        let read = self.reader.read(&mut buffer[..wanted])?;
        self.rest -= read;
        if self.rest == 0 {
            self.line()?;
        }
        Ok(read)
    }
}

/// One event of the stream.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its place; empty if it has none.
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

/// The stream of changes.
pub(crate) struct Stream {
    reader: BufReader<Chunked<TcpStream>>,
    /// The first line.
    pub(crate) retry: String,
}

impl Stream {
    #[track_caller]
    pub(crate) fn open(server: &Server, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut stream = server.connect();
        let request = server.request("GET", path, headers, "");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).expect("an answer");
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "text/event-stream");
        assert!(headers["cache-control"].contains("no-cache"));
        assert_eq!(headers["x-accel-buffering"], "no");
        let mut reader = BufReader::new(Chunked::new(reader));
        let mut retry = String::new();
        reader.read_line(&mut retry).unwrap();
        Self {
            reader,
            retry: retry.trim_end().to_owned(),
        }
    }

    /// The next event.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Event {
        self.next_if_any().expect("the stream goes on")
    }

    /// The next event, every field of which is one line; `None` if the stream ended.
    pub(crate) fn next_if_any(&mut self) -> Option<Event> {
        let mut fields: HashMap<String, String> = HashMap::new();
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches('\n');
            if line.is_empty() && !fields.is_empty() {
                return Some(Event {
                    id: fields.remove("id").unwrap_or_default(),
                    kind: fields["event"].clone(),
                    data: serde_json::from_str(&fields["data"]).unwrap(),
                });
            }
            if line.is_empty() || line.starts_with(':') {
                continue;
            }
            let (name, value) = line.split_once(": ").unwrap();
            let before = fields.insert(name.to_owned(), value.to_owned());
            assert!(before.is_none(), "`{name}` is more than one line");
        }
    }

    /// The next event of which `is_wanted` is true. Other processes of this machine may have
    /// others.
    #[track_caller]
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.next();
            if is_wanted(&event) {
                return event;
            }
        }
    }
}

impl Stream {
    /// Reads to the end; tells whether there was one in time.
    pub(crate) fn ends(&mut self) -> bool {
        let mut line = String::new();
        loop {
            line.clear();
            match self.reader.read_line(&mut line) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => {
                    let is_late = matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    );
                    return !is_late;
                }
            }
        }
    }
}
