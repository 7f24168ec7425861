//! Holds very many texts that are much alike in little room.

use std::collections::HashMap;
use std::rc::Rc;

use anyhow::Context as _;
use whosup_core::sidecar::AgentId;

/// How many texts are held as they are before others are made smaller: making them
/// smaller takes time, and room only matters with many.
const PLAIN_MAX: usize = 1_024;

/// Packs texts. Those of one agent have most of their words in common.
#[derive(Debug, Default)]
pub(super) struct Packer {
    count: usize,
    /// The first text of each agent.
    samples: HashMap<AgentId, Rc<str>>,
}

/// A text.
#[derive(Debug)]
pub(super) enum Packed {
    /// As it is.
    Plain(Box<str>),
    /// What it has beyond a sample.
    Small {
        /// LZ4.
        bytes: Box<[u8]>,
        /// How long the text is, in bytes.
        length: usize,
        /// What is known before.
        sample: Rc<str>,
    },
}

impl Packer {
    /// Packs a text of an agent's.
    pub(super) fn pack(&mut self, agent: &AgentId, text: String) -> Packed {
        self.count = self.count.saturating_add(1);
        if self.count <= PLAIN_MAX {
            return Packed::Plain(text.into_boxed_str());
        }
        let Some(sample) = self.samples.get(agent) else {
            self.samples.insert(agent.clone(), text.as_str().into());
            return Packed::Plain(text.into_boxed_str());
        };
        let bytes = lz4_flex::block::compress_with_dict(text.as_bytes(), sample.as_bytes());
        Packed::Small {
            bytes: bytes.into_boxed_slice(),
            length: text.len(),
            sample: Rc::clone(sample),
        }
    }
}

impl Packed {
    /// The text.
    ///
    /// # Errors
    ///
    /// If what was packed is not what comes out, which only faulty memory could do.
    pub(super) fn text(&self) -> anyhow::Result<std::borrow::Cow<'_, str>> {
        match self {
            Self::Plain(text) => Ok((&**text).into()),
            Self::Small {
                bytes,
                length,
                sample,
            } => {
                let text = lz4_flex::block::decompress_with_dict(bytes, *length, sample.as_bytes())
                    .context("cannot unpack a row")?;
                let text = String::from_utf8(text).context("cannot unpack a row")?;
                Ok(text.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PLAIN_MAX, Packer};

    #[test]
    fn what_is_packed_comes_out_again_and_takes_less_room() {
        let agents = ["one", "two"].map(|agent| agent.parse().unwrap());
        let mut packer = Packer::default();
        let texts: Vec<String> = (0..3 * PLAIN_MAX)
            .map(|at| {
                format!(
                    "{{ \"session_id\": \"会话 {at}\", {} }}",
                    "\"phase\": null, ".repeat(40)
                )
            })
            .collect();
        let packed: Vec<_> = texts
            .iter()
            .zip(agents.iter().cycle())
            .map(|(text, agent)| packer.pack(agent, text.clone()))
            .collect();
        let mut small = 0;
        for (text, packed) in texts.iter().zip(&packed) {
            assert_eq!(packed.text().unwrap(), text.as_str());
            if let super::Packed::Small { bytes, .. } = packed {
                small += 1;
                assert!(bytes.len() * 4 < text.len());
            }
        }
        assert_eq!(small, 2 * PLAIN_MAX - agents.len());
    }
}
