//! Connections and their limits: a client that sends slowly, reads slowly or opens very many
//! does not keep others from being answered.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::server::Server;

/// How many connections there are at most; fewer if the system's limit on files is lower.
const CONNECTIONS_MAX: usize = 2_048;
/// How many descriptors are reserved for looks.
const FILES_SPARE: u64 = 64;
/// How long the headers of a request may take, also between two requests.
const HEADERS_TIME_MAX: Duration = Duration::from_secs(10);
/// How long it may take to agree on TLS.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may read nothing while data is waiting.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// The total size of the headers, in bytes.
const HEADERS_BYTES_MAX: usize = 32 << 10;
/// How long to wait after no connection could be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A listener.
pub(crate) enum Accept {
    /// At an address.
    Address(TcpListener),
    /// At a socket.
    Socket(UnixListener),
}

/// Raises the limit on files to what connections need, if possible.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // As many as connections take the engine may need to watch processes.
    let wanted = 2 * u64::try_from(CONNECTIONS_MAX).unwrap_or(u64::MAX) + FILES_SPARE;
    let Some(current) = limit.current.filter(|current| *current < wanted) else {
        return;
    };
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let limit = Rlimit {
        current: Some(raised.max(current)),
        ..limit
    };
    // Otherwise there are fewer connections.
    setrlimit(Resource::Nofile, limit).ok();
}

fn connections_max() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // With a small limit, few connections: a look without descriptors fails.
    let most = (files.saturating_sub(FILES_SPARE) / 2).max(files / 8);
    usize::try_from(most).map_or(CONNECTIONS_MAX, |most| most.clamp(1, CONNECTIONS_MAX))
}

/// Accepts connections, and answers each in a task of its own.
pub(crate) async fn accept(
    listener: Accept,
    tls: Option<TlsAcceptor>,
    server: Arc<Server>,
    router: Router,
) {
    let connections = Arc::new(Semaphore::new(connections_max()));
    loop {
        let stream = match listener.next().await {
            Ok(stream) => stream,
            Err(_) => {
                // Too many files, or a client that has gone already.
                sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        server.tally.connections.fetch_add(1, Ordering::Relaxed);
        let Ok(permit) = Arc::clone(&connections).try_acquire_owned() else {
            server
                .tally
                .refused_connections
                .fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (tls, router) = (tls.clone(), router.clone());
        tokio::spawn(async move {
            let _permit = permit;
            if let Some(stream) = secured(stream, tls).await {
                answer(stream, router).await;
            }
        });
    }
}

/// A connection of any kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Accept {
    async fn next(&self) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Address(listener) => {
                let (stream, _) = listener.accept().await?;
                // Events are small, and each is needed at once.
                stream.set_nodelay(true)?;
                give_up(&stream);
                Ok(Box::new(stream))
            }
            Self::Socket(listener) => loop {
                let (stream, _) = listener.accept().await?;
                if is_own(&stream) {
                    return Ok(Box::new(stream));
                }
            },
        }
    }
}

/// A client whose network is gone sends nothing more. By default the system keeps what is sent
/// to it for a quarter of an hour.
#[cfg(target_os = "linux")]
fn give_up(stream: &tokio::net::TcpStream) {
    let time_max = u32::try_from(WRITE_TIME_MAX.as_millis()).unwrap_or(u32::MAX);
    // Without the option, such a connection stays for that long.
    rustix::net::sockopt::set_tcp_user_timeout(stream, time_max).ok();
}

#[cfg(not(target_os = "linux"))]
fn give_up(_: &tokio::net::TcpStream) {}

/// The other end is the user or root. An unknown peer counts as another user.
fn is_own(stream: &UnixStream) -> bool {
    let peer = stream.peer_cred().map(|peer| peer.uid());
    peer.is_ok_and(|uid| uid == 0 || uid == geteuid().as_raw())
}

async fn secured(stream: Box<dyn Stream>, tls: Option<TlsAcceptor>) -> Option<Box<dyn Stream>> {
    let Some(tls) = tls else {
        return Some(stream);
    };
    let stream = timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)).await;
    Some(Box::new(stream.ok()?.ok()?))
}

async fn answer(stream: Box<dyn Stream>, router: Router) {
    let stream = TokioIo::new(Patient::new(stream));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIME_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADERS_BYTES_MAX)
        .serve_connection(stream, TowerToHyperService::new(router));
    // A client that breaks the protocol or disconnects is no failure of the server.
    connection.await.ok();
}

/// A connection that ends when the other end reads too slowly.
struct Patient {
    stream: Box<dyn Stream>,
    /// The deadline for the other end to read, while data is waiting.
    over: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: Box<dyn Stream>) -> Self {
        Self { stream, over: None }
    }

    /// The result of a write, or a timeout.
    fn checked<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.over = None;
            return written;
        }
        let over = self
            .over
            .get_or_insert_with(|| Box::pin(sleep(WRITE_TIME_MAX)));
        ready!(over.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.checked(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.checked(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.checked(context, ended)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.checked(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
