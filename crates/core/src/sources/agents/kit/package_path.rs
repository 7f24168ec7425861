//! Paths of scripts in the packages of Node.js.

use std::path::{Component, Path};

/// Where a script lies below the last directory of this name, with `/` between
/// the names; `None` if it is in none.
pub(crate) fn path_in_package(script: &Path, package: &str) -> Option<String> {
    let names: Vec<&str> = script
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let at = names.iter().rposition(|name| *name == package)?;
    Some(names.get(at + 1..).unwrap_or_default().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_directory_of_that_name_counts() {
        let path = Path::new("/w/qwen-code/node_modules/@qwen-code/qwen-code/dist/cli.js");
        let below = path_in_package(path, "qwen-code");
        assert_eq!(below.as_deref(), Some("dist/cli.js"));
        assert_eq!(path_in_package(path, "gemini-cli"), None);
        assert_eq!(path_in_package(path, "cli.js").as_deref(), Some(""));
    }
}
