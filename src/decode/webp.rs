//! What the chunks of a WebP file say, looked at before the decoder believes them.
//!
//! That one makes room for as many pixels as a VP8 frame claims and only then compares them with the container's size (for
//! a frame with alpha in an animation it never does), and for as much metadata as a chunk claims, there or not. So a file of
//! 200 bytes would get hundreds of megabytes, whatever the limit on pixels says.

use super::{DecodeError, Format, orient};

/// The EXIF orientation of `bytes`, whose container says the size `canvas`. Where nothing is wrong with the sizes that the
/// decoder will meet: those of a lossless frame it compares itself.
pub(super) fn look_through(bytes: &[u8], canvas: (u32, u32)) -> Result<u8, DecodeError> {
    let mut chunks = chunks(bytes.get(12..).unwrap_or_default());
    // Without an extended header the first chunk is the picture, its size the container's, and nothing follows.
    if chunks.next().is_none_or(|chunk| chunk.name != *b"VP8X") {
        return Ok(1);
    }
    let (mut orientation, mut animated) = (None, false);
    for chunk in chunks {
        match &chunk.name {
            b"VP8 " => check_frame(&chunk, canvas)?,
            // Of an animation the first frame is decoded.
            b"ANMF" if !animated => {
                animated = true;
                check_animated(&chunk)?;
            }
            b"EXIF" if orientation.is_none() => orientation = chunk.whole().map(orient::from_exif),
            _ => {}
        }
    }
    Ok(orientation.unwrap_or(1))
}

/// A frame of an animation: its place and size, perhaps alpha, and the picture.
fn check_animated(frame: &Chunk<'_>) -> Result<(), DecodeError> {
    let Some((&[_, _, _, _, _, _, w0, w1, w2, h0, h1, h2, ..], inside)) =
        frame.tail.split_first_chunk::<16>()
    else {
        return Ok(());
    };
    let size = (
        u32::from_le_bytes([w0, w1, w2, 0]) + 1,
        u32::from_le_bytes([h0, h1, h2, 0]) + 1,
    );
    let mut inside = chunks(inside);
    match inside.next() {
        Some(picture) if picture.name == *b"VP8 " => check_frame(&picture, size),
        // Whatever it is called, the decoder takes what follows for the picture.
        Some(alpha) if alpha.name == *b"ALPH" => inside
            .next()
            .map_or(Ok(()), |picture| check_frame(&picture, size)),
        _ => Ok(()),
    }
}

/// Compares the size in a VP8 frame with what it must be. One that is too short for a size is the decoder's to refuse.
fn check_frame(frame: &Chunk<'_>, (width, height): (u32, u32)) -> Result<(), DecodeError> {
    let Some(&[tag, _, _, _, _, _, w0, w1, h0, h1]) = frame.tail.first_chunk::<10>() else {
        return Ok(());
    };
    if tag & 1 != 0 {
        return Err(DecodeError::corrupt(
            Format::Webp,
            "its first frame is no key frame",
        ));
    }
    // The upper two bits ask for scaling, which nobody does.
    let side = |bytes| u32::from(u16::from_le_bytes(bytes) & 0x3fff);
    let claimed = (side([w0, w1]), side([h0, h1]));
    if claimed == (width, height) {
        return Ok(());
    }
    let detail = format!(
        "its headers disagree about the size ({width}x{height} and {}x{})",
        claimed.0, claimed.1
    );
    Err(DecodeError::corrupt(Format::Webp, detail))
}

/// One chunk of the container.
struct Chunk<'a> {
    name: [u8; 4],
    /// How many bytes it says it has.
    length: usize,
    /// Its bytes and all that follows: the decoder does not keep to the length everywhere.
    tail: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Its bytes, if all of them are there.
    fn whole(&self) -> Option<&'a [u8]> {
        self.tail.get(..self.length)
    }
}

/// The chunks at the start of `bytes`, up to one that is cut.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    std::iter::from_fn(move || {
        let (name, rest) = bytes.split_first_chunk::<4>()?;
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        // An odd length has a byte of padding behind it.
        bytes = tail.get(length.saturating_add(length & 1)..).unwrap_or_default();
        Some(Chunk {
            name: *name,
            length,
            tail,
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_le_bytes();
        let padding = if data.len() % 2 == 1 { &b"\0"[..] } else { b"" };
        [name, &length[..], data, padding].concat()
    }

    fn frame(width: u16, height: u16) -> Vec<u8> {
        let [width, height] = [width, height].map(u16::to_le_bytes);
        chunk(b"VP8 ", &[b"\0\0\0\x9d\x01\x2a", &width[..], &height].concat())
    }

    /// What is said about an extended file with a canvas of 3x2.
    fn said(chunks: &[Vec<u8>]) -> Result<u8, DecodeError> {
        let header = chunk(b"VP8X", &[0; 10]);
        look_through(
            &[b"RIFF\0\0\0\0WEBP", &header[..], &chunks.concat()].concat(),
            (3, 2),
        )
    }

    fn refused(chunks: &[Vec<u8>], words: &str) {
        let message = said(chunks).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn frames_must_have_the_size_that_the_container_says() {
        let anmf = |inside: &[Vec<u8>]| {
            chunk(
                b"ANMF",
                &[
                    &[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    &inside.concat()[..],
                ]
                .concat(),
            )
        };
        let alpha = chunk(b"ALPH", b"123");
        assert_eq!(said(&[frame(3, 2)]).unwrap(), 1);
        assert_eq!(said(&[anmf(&[frame(2, 1)])]).unwrap(), 1);
        assert_eq!(said(&[anmf(&[alpha.clone(), frame(2, 1)])]).unwrap(), 1);
        refused(&[frame(16383, 2)], "3x2 and 16383x2");
        refused(&[anmf(&[frame(2, 16383)])], "2x1 and 2x16383");
        refused(&[anmf(&[alpha.clone(), frame(16383, 1)])], "2x1 and 16383x1");
        let mut unnamed = frame(16383, 1);
        unnamed[0] = b'X';
        refused(&[anmf(&[alpha, unnamed])], "2x1 and 16383x1");
        refused(&[chunk(b"VP8 ", &[1; 10])], "key frame");
    }

    #[test]
    fn orientation_is_that_of_the_first_whole_exif_chunk() {
        let exif = chunk(
            b"EXIF",
            b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0",
        );
        assert_eq!(said(&[frame(3, 2), exif.clone()]).unwrap(), 6);
        let cut = exif[..exif.len() - 1].to_vec();
        assert_eq!(said(&[frame(3, 2), cut]).unwrap(), 1);
        // Not a file with room for metadata.
        let plain = [b"RIFF\0\0\0\0WEBP", &frame(3, 2)[..], &exif].concat();
        assert_eq!(look_through(&plain, (3, 2)).unwrap(), 1);
    }
}
