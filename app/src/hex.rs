//! Bytes as hexadecimal digits, and back.

/// Two lower-case digits a byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes again; `None` if the text is anything but pairs of digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    // `from_str_radix` alone would take "+f" for a byte, and a last digit without its pair.
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|start| u8::from_str_radix(&text[start..start + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_was_encoded() {
        assert_eq!(encode(&[0, 0x0f, 0xff]), "000fff");
        assert_eq!(decode("000fFF"), Some(vec![0, 0x0f, 0xff]));
        for text in ["0", "+f", "0g", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
