//! Language runtimes, which run agents as scripts.

/// Language runtimes that run agents as scripts, by the name of their
/// executable, version suffixes aside (`python3.13`, `node24`).
const RUNTIMES: &[&str] = &["node", "nodejs", "bun", "deno", "python", "pypy"];

/// Whether an executable of this name is a language runtime.
#[must_use]
pub fn is_runtime_name(name: &str) -> bool {
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNTIMES.contains(&stem)
}
