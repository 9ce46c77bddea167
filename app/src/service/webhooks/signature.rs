//! How a message is signed: by the convention of Standard Webhooks (standardwebhooks.com).
//!
//! ```text
//! webhook-signature: v1,base64(HMAC-SHA-256(secret, id.timestamp.body))      secret: whsec_base64(32 bytes)
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::store::WebhookSecret;

/// The header of a message.
pub fn signature(secret: WebhookSecret, id: &str, timestamp: i64, body: &str) -> String {
    let mut code = Hmac::<Sha256>::new_from_slice(&secret.0).expect("any key will do");
    code.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(code.finalize().into_bytes()))
}

/// A secret as receivers keep it.
pub fn shown(secret: WebhookSecret) -> String {
    format!("whsec_{}", STANDARD.encode(secret.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python's hmac and base64.
    #[test]
    fn a_message_is_signed_as_others_sign_it() {
        let secret = WebhookSecret(std::array::from_fn(|place| place as u8));
        let body = r#"{"type":"webhook.test"}"#;
        assert_eq!(
            signature(secret, "msg_1", 1_700_000_000, body),
            "v1,xxZtt7j7yM1ifYrYyXeSlFsSXiLDory+irN4YhasdnI="
        );
        assert_eq!(
            shown(secret),
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
        );
    }
}
