//! Holds very many rows of JSON that are much alike in little room.

use std::borrow::Cow;
use std::convert::Infallible;

use anyhow::Context as _;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use whosup_core::sidecar::AgentId;

/// How many bytes of rows are held as they are. If there are more, all are made smaller:
/// that takes time, and room only matters with many.
const PLAIN_BYTES_MAX: usize = 20 << 20;
/// How large the blocks are that rows are kept in, in bytes. Among what a look needs for
/// a moment only, rows that stay would leave holes everywhere.
const BLOCK_BYTES: usize = 1 << 20;
/// How much of a block must be left for one more row, in bytes: most have a tenth of it.
const ROOM_BYTES: usize = 16 << 10;

/// The rows so far. Those of one agent have most of their words in common.
#[derive(Debug, Default)]
pub(super) struct JsonRows {
    rows: Vec<Row>,
    blocks: Blocks,
    /// The first row of each agent, as it is.
    samples: Vec<(AgentId, Vec<u8>)>,
    /// There are so many that they are kept packed.
    is_packed: bool,
    /// The row that is being packed.
    scratch: Vec<u8>,
}

/// Which row.
#[derive(Debug)]
pub(super) struct RowId(usize);

#[derive(Debug)]
struct Row {
    kept: Span,
    /// The place of its agent's sample.
    sample: usize,
    /// How long it is, in bytes. What is kept of it, once rows are packed, is what it
    /// has beyond its sample, in LZ4.
    length: usize,
}

impl JsonRows {
    /// Adds a row of an agent's, which `write` appends to what it is given.
    ///
    /// # Errors
    ///
    /// That of `write`; then there is no row.
    pub(super) fn add<E>(
        &mut self,
        agent: &AgentId,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<RowId, E> {
        let row = if self.is_packed {
            self.scratch.clear();
            write(&mut self.scratch)?;
            let sample = sample_of(&mut self.samples, agent, &self.scratch);
            let packed = compress_with_dict(&self.scratch, self.sample(sample));
            Row {
                kept: self.blocks.keep(&packed),
                sample,
                length: self.scratch.len(),
            }
        } else {
            // Where it will stay: it need not be moved.
            let kept = self.blocks.append(write)?;
            Row {
                kept,
                sample: sample_of(&mut self.samples, agent, self.blocks.at(kept)),
                length: kept.length,
            }
        };
        self.rows.push(row);
        if !self.is_packed && self.blocks.bytes > PLAIN_BYTES_MAX {
            self.pack();
        }
        Ok(RowId(self.rows.len().saturating_sub(1)))
    }

    /// Packs the rows so far; each block is let go once all of it is packed.
    fn pack(&mut self) {
        self.is_packed = true;
        let mut plain = std::mem::take(&mut self.blocks);
        let mut rows = std::mem::take(&mut self.rows);
        let mut block = 0;
        for row in &mut rows {
            while block < row.kept.block {
                plain.let_go(block);
                block += 1;
            }
            let packed = compress_with_dict(plain.at(row.kept), self.sample(row.sample));
            row.kept = self.blocks.keep(&packed);
        }
        self.rows = rows;
    }

    fn sample(&self, place: usize) -> &[u8] {
        let sample = self.samples.get(place);
        sample.map_or(&[], |(_, row)| row.as_slice())
    }

    /// A row.
    ///
    /// # Errors
    ///
    /// If what was packed is not what comes out, which only faulty memory could do.
    pub(super) fn row(&self, id: &RowId) -> anyhow::Result<Cow<'_, [u8]>> {
        let row = self.rows.get(id.0).context("a row is missing")?;
        let kept = self.blocks.at(row.kept);
        if !self.is_packed {
            return Ok(kept.into());
        }
        let sample = self.sample(row.sample);
        let text = decompress_with_dict(kept, row.length, sample).context("cannot unpack a row")?;
        Ok(text.into())
    }
}

/// The place of an agent's sample, which `row` becomes if it has none.
fn sample_of(samples: &mut Vec<(AgentId, Vec<u8>)>, agent: &AgentId, row: &[u8]) -> usize {
    let place = samples.iter().position(|(its, _)| its == agent);
    place.unwrap_or_else(|| {
        samples.push((agent.clone(), row.to_owned()));
        samples.len().saturating_sub(1)
    })
}

/// Bytes, one after another, in blocks of their own.
#[derive(Debug, Default)]
struct Blocks {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    block: usize,
    start: usize,
    length: usize,
}

impl Blocks {
    fn keep(&mut self, bytes: &[u8]) -> Span {
        let kept = self.append(|block| {
            block.extend_from_slice(bytes);
            Ok::<_, Infallible>(())
        });
        let Ok(kept) = kept;
        kept
    }

    /// Keeps what `write` appends.
    fn append<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Span, E> {
        let has_room = |block: &Vec<u8>| block.capacity() - block.len() >= ROOM_BYTES;
        let mut block = match self.blocks.pop() {
            Some(last) if has_room(&last) => last,
            full => {
                self.blocks.extend(full);
                Vec::with_capacity(BLOCK_BYTES)
            }
        };
        let start = block.len();
        let written = write(&mut block);
        if written.is_err() {
            block.truncate(start);
        }
        let span = Span {
            block: self.blocks.len(),
            start,
            length: block.len().saturating_sub(start),
        };
        self.blocks.push(block);
        self.bytes = self.bytes.saturating_add(span.length);
        written.map(|()| span)
    }

    fn at(&self, span: Span) -> &[u8] {
        let block = self.blocks.get(span.block);
        let end = span.start.saturating_add(span.length);
        block
            .and_then(|block| block.get(span.start..end))
            .unwrap_or_default()
    }

    fn let_go(&mut self, block: usize) {
        if let Some(block) = self.blocks.get_mut(block) {
            *block = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use whosup_core::sidecar::AgentId;

    use super::{JsonRows, PLAIN_BYTES_MAX, RowId};

    fn add(rows: &mut JsonRows, agent: &AgentId, row: &[u8]) -> RowId {
        let added = rows.add(agent, |out| {
            out.extend_from_slice(row);
            Ok::<_, Infallible>(())
        });
        added.unwrap()
    }

    #[test]
    fn what_is_kept_comes_out_again_and_takes_less_room() {
        let agents = ["one", "two"].map(|agent| agent.parse().unwrap());
        let mut rows = JsonRows::default();
        let row = |at: usize| {
            let rest = "\"phase\": null, ".repeat(400);
            format!("{{ \"session_id\": \"会话 {at}\", {rest} }}")
        };
        let count = 3 * PLAIN_BYTES_MAX / row(0).len();
        let ids: Vec<_> = (0..count)
            .zip(agents.iter().cycle())
            .map(|(at, agent)| add(&mut rows, agent, row(at).as_bytes()))
            .collect();
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(rows.row(id).unwrap(), row(at).as_bytes());
        }
        assert!(rows.is_packed);
        let held: usize = rows.blocks.blocks.iter().map(Vec::capacity).sum();
        assert!(held < PLAIN_BYTES_MAX / 4, "{held}");
    }

    #[test]
    fn a_row_larger_than_a_block_is_kept_too() {
        let agent = "one".parse().unwrap();
        let mut rows = JsonRows::default();
        let large = vec![b'x'; 3 * super::BLOCK_BYTES];
        let ids = [&b"a"[..], &large, b"b"].map(|row| add(&mut rows, &agent, row));
        let out = ids.each_ref().map(|id| rows.row(id).unwrap().len());
        assert_eq!(out, [1, large.len(), 1]);
    }

    #[test]
    fn what_is_written_of_a_row_that_fails_is_not_kept() {
        let agent = "one".parse().unwrap();
        let mut rows = JsonRows::default();
        for is_packed in [false, true] {
            rows.is_packed = is_packed;
            let failed = rows.add(&agent, |out| {
                out.extend_from_slice(b"half");
                Err("no")
            });
            assert_eq!(failed.unwrap_err(), "no");
            let row = add(&mut rows, &agent, b"whole");
            assert_eq!(rows.row(&row).unwrap(), &b"whole"[..]);
            rows = JsonRows::default();
        }
    }
}
