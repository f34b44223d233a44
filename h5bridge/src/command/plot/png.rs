//! Writes pixels as a PNG file: colours of three bytes, compressed by libdeflate. The file is a
//! signature and three chunks.

use libdeflater::{CompressionLvl, Compressor, crc32};

/// Encodes an image as PNG; each line has `width` pixels with three bytes each: red, green, blue.
pub(super) fn encode(width: usize, pixels: &[u8]) -> Vec<u8> {
    let line = 3 * width.max(1);
    let mut raw = Vec::with_capacity(pixels.len() + pixels.len() / line);
    for line in pixels.chunks_exact(line) {
        // no filter
        raw.push(0);
        raw.extend_from_slice(line);
    }
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut data = vec![0; compressor.zlib_compress_bound(raw.len())];
    // the buffer has the size that the bound says
    let len = compressor.zlib_compress(&raw, &mut data).unwrap_or(0);
    data.truncate(len);
    let mut header = (width as u32).to_be_bytes().to_vec();
    header.extend(((pixels.len() / line) as u32).to_be_bytes());
    // eight bits, red-green-blue, and the only compression, filters and order that exist
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        file.extend((data.len() as u32).to_be_bytes());
        let start = file.len();
        file.extend_from_slice(name);
        file.extend_from_slice(data);
        let sum = crc32(&file[start..]);
        file.extend(sum.to_be_bytes());
    }
    file
}
