//! The write-ahead log of a database: which of its frames are committed
//! (sqlite.org/fileformat2.html, section 4).

use std::collections::BTreeMap;

/// How long the header of a WAL is, in bytes.
pub(super) const HEADER_BYTES: usize = 32;
/// How long the header of each frame is, in bytes; a page follows it.
const FRAME_HEADER_BYTES: usize = 24;
/// The magic number of a WAL without the lowest bit, which selects the byte order of the
/// checksums.
const MAGIC: u32 = 0x377f_0682;
/// The one version of the format.
const VERSION: u32 = 3_007_000;

/// The newest committed content of each page that a WAL has.
#[derive(Debug)]
pub(super) struct Overlay {
    page_bytes: usize,
    /// The number of pages after the last commit.
    pages: u32,
    /// Where in the WAL the content of a page begins.
    content_at: BTreeMap<u32, usize>,
}

impl Overlay {
    /// Reads the frames up to the last commit with valid checksums. Later frames are not
    /// committed, or left over from an earlier use of the file.
    ///
    /// `None` if nothing is committed.
    pub(super) fn of(wal: &[u8]) -> Option<Self> {
        let header = wal.get(..HEADER_BYTES)?;
        let magic = number(header, 0)?;
        let page_bytes = usize::try_from(number(header, 8)?).ok()?;
        let is_page_size = page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes);
        if magic & !1 != MAGIC || number(header, 4)? != VERSION || !is_page_size {
            return None;
        }
        let mut sum = Checksum {
            is_big_endian: magic & 1 == 1,
            halves: (0, 0),
        };
        sum.add(header.get(..24)?);
        if sum.halves != (number(header, 24)?, number(header, 28)?) {
            return None;
        }
        let salts = header.get(16..24)?;

        let mut overlay = None;
        let mut written: Vec<(u32, usize)> = Vec::new();
        let mut content_at = BTreeMap::new();
        let mut at = HEADER_BYTES;
        while let Some(frame) = wal.get(at..at.saturating_add(FRAME_HEADER_BYTES + page_bytes)) {
            let (frame_header, page) = frame.split_at(FRAME_HEADER_BYTES);
            sum.add(frame_header.get(..8)?);
            sum.add(page);
            let page_number = number(frame_header, 0)?;
            let is_valid = page_number != 0
                && frame_header.get(8..16)? == salts
                && sum.halves == (number(frame_header, 16)?, number(frame_header, 20)?);
            if !is_valid {
                break;
            }
            written.push((page_number, at.saturating_add(FRAME_HEADER_BYTES)));
            let pages = number(frame_header, 4)?;
            if pages != 0 {
                content_at.extend(written.drain(..));
                overlay = Some(pages);
            }
            at = at.saturating_add(frame.len());
        }
        overlay.map(|pages| Self {
            page_bytes,
            pages,
            content_at,
        })
    }

    /// Lays the committed pages over those of the database.
    ///
    /// # Errors
    ///
    /// An error if the two do not belong together.
    pub(super) fn lay_over(
        &self,
        wal: &[u8],
        database: &mut Vec<u8>,
        bytes_max: u64,
    ) -> Result<(), &'static str> {
        let page_bytes = page_bytes_of(database);
        if page_bytes.is_some_and(|page_bytes| page_bytes != self.page_bytes) {
            return Err("its WAL has pages of another size");
        }
        let bytes = u64::from(self.pages).saturating_mul(self.page_bytes as u64);
        if bytes > bytes_max {
            return Err("it is too large to be held in memory");
        }
        database.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
        for (page, content_at) in &self.content_at {
            let from = wal.get(*content_at..content_at.saturating_add(self.page_bytes));
            let to_at = (*page as usize - 1).saturating_mul(self.page_bytes);
            let to = database.get_mut(to_at..to_at.saturating_add(self.page_bytes));
            // A page beyond the end was freed by the last commit.
            if let (Some(from), Some(to)) = (from, to) {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }
}

/// The page size in the header of a database.
fn page_bytes_of(database: &[u8]) -> Option<usize> {
    match database.get(16..18)? {
        [0, 1] => Some(65_536),
        [high, low] => Some(usize::from(u16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// The running checksum over 32-bit words.
struct Checksum {
    is_big_endian: bool,
    halves: (u32, u32),
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        let (mut first, mut second) = self.halves;
        let (words, _) = bytes.as_chunks::<4>();
        let word = |bytes: [u8; 4]| {
            if self.is_big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let (pairs, _) = words.as_chunks::<2>();
        for [one, other] in pairs {
            first = first.wrapping_add(word(*one)).wrapping_add(second);
            second = second.wrapping_add(word(*other)).wrapping_add(first);
        }
        self.halves = (first, second);
    }
}

/// A big-endian number.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.saturating_add(4))?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}
