//! How a message is signed: by the convention of Standard Webhooks (standardwebhooks.com).
//!
//! ```text
//! webhook-signature: v1,base64(HMAC-SHA-256(secret, id.timestamp.body))      secret: whsec_base64(32 bytes)
//! HMAC(key, text) = SHA-256((key ^ opad) SHA-256((key ^ ipad) text))         RFC 2104
//! ```

use sha2::{Digest as _, Sha256};

use crate::store::WebhookSecret;

/// The bytes that SHA-256 takes at a time.
const BLOCK: usize = 64;

/// The header of a message.
pub fn signature(secret: WebhookSecret, id: &str, timestamp: i64, body: &str) -> String {
    let signed = format!("{id}.{timestamp}.{body}");
    format!("v1,{}", base64(&hmac(&secret.0, signed.as_bytes())))
}

/// A secret as receivers keep it.
pub fn shown(secret: WebhookSecret) -> String {
    format!("whsec_{}", base64(&secret.0))
}

// By hand, as it is a dozen lines: a crate for it would be one more to trust with secrets.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut padded = [0; BLOCK];
    // A longer key is replaced by its hash, as the standard says.
    if key.len() > BLOCK {
        padded[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let [inner, outer] = [0x36, 0x5c].map(|pad| padded.map(|byte| byte ^ pad));
    let inner = Sha256::new().chain_update(inner).chain_update(text);
    let outer = Sha256::new().chain_update(outer);
    outer.chain_update(inner.finalize()).finalize().into()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (place, byte)| {
            bits | u32::from(*byte) << (16 - 8 * place)
        });
        for digit in 0..4 {
            // Two bytes fill three digits, and one byte two; the rest is padding.
            if digit <= chunk.len() {
                let digit = bits >> (18 - 6 * digit) & 63;
                text.push(char::from(DIGITS[digit as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;

    /// Test cases 1, 2, 3, 6 and 7 of RFC 4231.
    #[test]
    fn codes_are_those_of_the_standard() {
        let long = [0xaa; 131];
        let cases: [(&[u8], &[u8], &str); 5] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &long,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                &long,
                b"This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed \
                  before being used by the HMAC algorithm.",
                "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            ),
        ];
        for (key, text, code) in cases {
            assert_eq!(hex::encode(&hmac(key, text)), code);
        }
    }

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn digits_are_those_of_the_standard() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(str::as_bytes);
        let digits = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(texts.map(base64), digits);
        assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
    }
}
