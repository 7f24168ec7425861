//! The address or socket that the server listens on.

use std::ffi::OsStr;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use whosup_core::machine::Machine;
use whosup_core::sidecar::own_directory::{OwnDirectory, split};

use crate::ServeError;
use crate::access::Names;
use crate::connection::{Accept, accept};
use crate::server::Server;

/// An address or a socket.
#[derive(Debug, Clone)]
pub enum Listen {
    /// An address; port 0: any free port.
    Address(SocketAddr),
    /// A socket in a directory of the user's.
    Socket(PathBuf),
}

/// The files for TLS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The chain of certificates, in PEM.
    pub certificate: PathBuf,
    /// The key, in PEM.
    pub key: PathBuf,
}

/// A bound address or socket.
pub struct Bound {
    listener: Listener,
    tls: Option<TlsAcceptor>,
    host: Option<String>,
}

enum Listener {
    Address(TcpListener, SocketAddr),
    Socket(UnixListener, SocketFile),
}

/// The file of the socket, removed on drop.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A failure can't be reported any more; the next server removes it.
        remove_socket(&self.0).ok();
    }
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bound")
            .field("endpoint", &self.endpoint())
            .finish()
    }
}

impl Bound {
    /// Starts to listen. With `is_in_the_clear`, other hosts may connect without TLS.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the address is taken, if other hosts could read the traffic, or if the files
    /// for TLS can't be used.
    pub fn new(
        machine: &Machine,
        listen: &Listen,
        tls: Option<&TlsFiles>,
        is_in_the_clear: bool,
    ) -> Result<Self, ServeError> {
        let host = machine.table().scope().host.as_ref().ok();
        let listener = match listen {
            Listen::Address(address) => {
                if !address.ip().is_loopback() && tls.is_none() && !is_in_the_clear {
                    let address = address.to_string();
                    return Err(ServeError::InTheClear { address });
                }
                listen_at(*address)?
            }
            Listen::Socket(path) => listen_on(path)?,
        };
        Ok(Self {
            listener,
            tls: tls.map(tls_acceptor).transpose()?,
            host: host.map(|host| host.0.clone()),
        })
    }

    /// The endpoint: a URL, or the path of the socket.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match &self.listener {
            Listener::Address(_, address) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                format!("{scheme}://{address}")
            }
            Listener::Socket(_, file) => file.0.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn names(&self) -> Names {
        let is_local = match &self.listener {
            Listener::Address(_, address) => address.ip().is_loopback(),
            Listener::Socket(..) => true,
        };
        Names {
            is_local,
            is_tls: self.tls.is_some(),
            host: self.host.clone(),
        }
    }

    /// Accepts connections until it is dropped. Must be called in a runtime.
    pub(crate) fn accept(
        self,
        server: Arc<Server>,
        router: Router,
    ) -> Result<impl Future<Output = ()>, ServeError> {
        let failed = |source| ServeError::Listen {
            address: "socket".to_owned(),
            source,
        };
        let (listener, file) = match self.listener {
            Listener::Address(listener, _) => {
                let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
                (Accept::Address(listener), None)
            }
            Listener::Socket(listener, file) => {
                let listener = tokio::net::UnixListener::from_std(listener).map_err(failed)?;
                (Accept::Socket(listener), Some(file))
            }
        };
        let tls = self.tls;
        Ok(async move {
            // The file exists as long as connections are accepted.
            let _file = file;
            accept(listener, tls, server, router).await;
        })
    }
}

fn listen_at(address: SocketAddr) -> Result<Listener, ServeError> {
    let failed = |source| ServeError::Listen {
        address: address.to_string(),
        source,
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listener::Address(listener, address))
}

fn listen_on(path: &std::path::Path) -> Result<Listener, ServeError> {
    let failed = |source| ServeError::Listen {
        address: path.display().to_string(),
        source,
    };
    let path = std::path::absolute(path).map_err(failed)?;
    remove_stale(&path).map_err(failed)?;
    let listener = UnixListener::bind(&path).map_err(failed)?;
    let file = SocketFile(path);
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(Listener::Socket(listener, file))
}

/// Removes a socket without a listener. The directory must be the user's: then no other
/// user can put another socket there.
fn remove_stale(path: &std::path::Path) -> io::Result<()> {
    let (parent, _) = split(path)?;
    OwnDirectory::open(parent, 1)?;
    match UnixStream::connect(path) {
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => remove_socket(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove_socket(path: &std::path::Path) -> io::Result<()> {
    let (parent, name): (_, &OsStr) = split(path)?;
    let meta = std::fs::symlink_metadata(path)?;
    if !std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    OwnDirectory::open(parent, 1)?.remove(name)
}

fn tls_acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let failed = |reason: String| ServeError::Tls {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        reason,
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|error| failed(error.to_string()))?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(error.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|error| failed(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
