//! The token, which only the user has.

use std::ffi::OsStr;
use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use whosup_core::machine::Environment;
use whosup_core::sidecar::own_directory::{Access, Durable, OwnDirectory};

use crate::ServeError;

/// How many random bytes a token has.
const TOKEN_BYTES: usize = 32;
/// The file's name.
const TOKEN: &str = "token";
/// The page that redirects a browser to the server, without the token in an argument list.
const OPENER: &str = "open.html";
/// How many directories must belong to the user: the server's own, and whosup's.
const LEVELS: usize = 2;
/// Users other than the owner have some access (`S_IRWXG | S_IRWXO`, inode(7)).
const OTHERS: u32 = 0o077;

/// The token in its file, `$XDG_STATE_HOME/whosup/server/token`.
///
/// The file is read for each request, so that a new token is valid at once.
#[derive(Debug, Clone)]
pub struct Tokens {
    directory: PathBuf,
}

/// The text of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Tokens {
    /// The token of this user.
    ///
    /// # Errors
    ///
    /// [`ServeError::NoPlace`] if there is no directory for it.
    pub fn of(environment: &Environment) -> Result<Self, ServeError> {
        let state = environment.xdg_directory("XDG_STATE_HOME", ".local/state");
        let state = state.ok_or(ServeError::NoPlace)?;
        Ok(Self {
            directory: state.join("whosup/server"),
        })
    }

    /// The directory of the server's own files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self) -> PathBuf {
        self.directory.join(TOKEN)
    }

    /// Reads the token.
    ///
    /// # Errors
    ///
    /// [`ServeError::File`] if it does not exist, or other users may read it.
    pub fn read(&self) -> Result<Token, ServeError> {
        let directory = OwnDirectory::open(&self.directory, LEVELS);
        let token = directory.and_then(|directory| read_in(&directory));
        token.map_err(ServeError::file("read the token in", self.path()))
    }

    /// Reads the token, or makes one if there is none.
    ///
    /// # Errors
    ///
    /// [`ServeError::File`] if it can be neither read nor made.
    pub fn read_or_make(&self) -> Result<Token, ServeError> {
        match self.read() {
            Err(ServeError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.make()
            }
            read => read,
        }
    }

    /// Replaces the token.
    ///
    /// # Errors
    ///
    /// [`ServeError::File`] if it can't be written.
    pub fn make(&self) -> Result<Token, ServeError> {
        let failed = || ServeError::file("write the token to", self.path());
        let token = made_up().map_err(failed())?;
        let directory = OwnDirectory::make(&self.directory, LEVELS).map_err(failed())?;
        let name = OsStr::new(TOKEN);
        directory
            .replace(name, format!("{token}\n").as_bytes(), Durable::Now, None)
            .map_err(failed())?;
        Ok(token)
    }

    /// Whether this is the token. The time does not depend on how much of it is right.
    pub(crate) fn is(&self, offered: &str) -> bool {
        let Ok(token) = self.read() else {
            return false;
        };
        let hash = |text: &str| Sha256::digest(text.as_bytes());
        hash(&token.0).ct_eq(&hash(offered)).into()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn read_in(directory: &OwnDirectory) -> io::Result<Token> {
    let file = directory.open_file(OsStr::new(TOKEN), Access::Read)?;
    if file.metadata()?.permissions().mode() & OTHERS != 0 {
        let message = "other users may read it; `whosup serve --new-token` makes a new one";
        return Err(io::Error::other(message));
    }
    let mut text = String::new();
    let bytes_max = u64::try_from(TOKEN_BYTES * 4).unwrap_or(u64::MAX);
    file.take(bytes_max).read_to_string(&mut text)?;
    let token = text.trim_end();
    let is_whole = token.len() == TOKEN_BYTES * 2;
    if is_whole && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Token(token.to_owned()));
    }
    let message = "it holds no token; `whosup serve --new-token` makes a new one";
    Err(io::Error::other(message))
}

fn made_up() -> io::Result<Token> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(TOKEN_BYTES * 2);
    for byte in bytes {
        // Writing to a `String` can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(Token(text))
}

/// Writes a page that redirects a browser to `url`, and returns its path: the browser's
/// arguments, which every user can read, then name only the page.
///
/// # Errors
///
/// [`ServeError::File`] if it can't be written.
pub fn write_opener(tokens: &Tokens, url: &str) -> Result<PathBuf, ServeError> {
    let path = tokens.directory.join(OPENER);
    let failed = || ServeError::file("write the page", &path);
    // A URL of ours: an address, and hexadecimal digits.
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>whosup</title>\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><a href=\"{url}\">whosup</a>\n"
    );
    let directory = OwnDirectory::make(&tokens.directory, LEVELS).map_err(failed())?;
    directory
        .replace(OsStr::new(OPENER), page.as_bytes(), Durable::Later, None)
        .map_err(failed())?;
    Ok(path)
}
