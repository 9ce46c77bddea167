//! The client's TLS, as the PostgreSQL client wants it: a maker of connectors, and a stream.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HandshakeError(io::Error);

impl HandshakeError {
    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        let reason = self.0.get_ref().and_then(|error| error.downcast_ref());
        match reason {
            Some(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {
                "its certificate is for another name; use the name that the certificate has, or sslmode=verify-ca to ignore names"
            }
            Some(Error::InvalidCertificate(_)) => {
                "its certificate does not lead to a root; sslrootcert must have the certificate of the authority that signed it"
            }
            _ => "is it a PostgreSQL server with TLS 1.2 or newer?",
        }
    }
}

/// Makes connectors for host names. Without a configuration they connect nobody, for plain connections alone: these too are made
/// with it, as a second kind would have the client's code compiled twice.
#[derive(Clone, Default)]
pub struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    pub fn new(client: ClientConfig) -> Self {
        Self(Some(Arc::new(client)))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = HostTls;
    type Error = HandshakeError;

    fn make_tls_connect(&mut self, host: &str) -> Result<HostTls, HandshakeError> {
        Ok(HostTls {
            client: self.0.clone(),
            host: host.into(),
        })
    }
}

/// Connects to one host.
pub struct HostTls {
    client: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for HostTls {
    type Stream = Encrypted;
    type Error = HandshakeError;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, HandshakeError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let not_made = "TLS was asked for on a connection without it";
            let client = self
                .client
                .ok_or_else(|| HandshakeError(io::Error::other(not_made)))?;
            // Here and not where the connector is made: one is made for plain connections, too.
            let host = ServerName::try_from(self.host)
                .map_err(|error| HandshakeError(io::Error::other(error)))?;
            let connected = TlsConnector::from(client).connect(host, socket).await;
            connected.map(Encrypted).map_err(HandshakeError)
        })
    }
}

/// A connection within TLS.
pub struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // It takes the hash that the certificate was signed with, which only its own parser would tell.
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Checks a server's certificate as far as it is asked to.
#[derive(Debug)]
pub struct Verifier {
    /// Where a chain of certificates must lead, if it is checked.
    chains: Option<Arc<WebPkiServerVerifier>>,
    /// Whether the certificate must be the host's.
    is_full: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub fn new(
        roots: Option<RootCertStore>,
        is_full: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self> {
        let build = |roots| {
            let provider = Arc::clone(&provider);
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()
        };
        Ok(Self {
            chains: roots.map(build).transpose()?,
            is_full,
            provider,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chains) = &self.chains else {
            return Ok(ServerCertVerified::assertion());
        };
        let checked = chains.verify_server_cert(certificate, intermediates, host, response, now);
        match checked {
            // The name is what is looked at last: with another one the chain was right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.is_full => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
