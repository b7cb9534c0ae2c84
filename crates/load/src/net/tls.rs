// SPDX-License-Identifier: Apache-2.0
//! Whom to trust, and one TLS session over a [`Socket`]. It does no more than carry bytes:
//! when it is called, and what time that takes, is its caller's matter.

use super::session_tickets::Tickets;
use super::socket::Socket;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use tare_command::{Failure, ResultExt};

/// Protocols as ALPN names them.
pub const HTTP1: &[u8] = b"http/1.1";
pub const HTTP2: &[u8] = b"h2";

/// Whose word about a server's name is taken.
#[derive(Debug, Clone, Copy)]
pub enum Trust<'path> {
    /// The authorities that this system trusts.
    System,
    /// Those of a PEM file, and no others.
    File(&'path Path),
    /// Everybody's.
    Anybody,
}

/// What the sessions with one target have in common.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    needs: Option<&'static [u8]>,
}

impl Trust<'_> {
    /// What all targets have in common; `protocol` is what ALPN asks for.
    pub fn config(self, protocol: &[u8]) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let builder = ClientConfig::builder_with_provider(provider as Arc<CryptoProvider>)
            .with_safe_default_protocol_versions()
            .or_failed("TLS")?;
        let mut config = match self {
            Self::System => builder.with_root_certificates(system_authorities()?),
            Self::File(path) => builder.with_root_certificates(authorities(path)?),
            Self::Anybody => {
                let verifier = Arc::new(Credulous { algorithms });
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Ok(config)
    }
}

fn system_authorities() -> Result<RootCertStore, Failure> {
    let mut store = RootCertStore::empty();
    // Some of a system's certificates may be of a kind that nobody understands.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err(Failure::input(
            "this system has no certificates of authorities: install ca-certificates, or name \
             them with --ca FILE",
        ));
    }
    Ok(store)
}

fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let shown = format!("--ca {}", path.display());
    let text = std::fs::read(path).or_input(&shown)?;
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|certificate| store.add(certificate).map_err(|error| error.to_string()));
        added.or_input(&shown)?;
    }
    if store.is_empty() {
        return Err(Failure::input(format_args!(
            "{shown}: it contains no certificate in PEM format"
        )));
    }
    Ok(store)
}

impl Tls {
    /// For the sessions with the server of this name or address, which are its own: targets on
    /// one host do not take up each other's.
    pub fn new(config: &ClientConfig, host: &str) -> Result<Self, Failure> {
        let mut config = config.clone();
        config.resumption = Resumption::store(Arc::new(Tickets::default()));
        let name = ServerName::try_from(host.to_owned())
            .or_input(format_args!("'{host}' cannot be a name in a certificate"))?;
        // Whoever does not know ALPN speaks HTTP/1.1.
        let needs = (config.alpn_protocols == [HTTP2]).then_some(HTTP2);
        Ok(Self { config: Arc::new(config), name, needs })
    }

    pub fn session(&self) -> io::Result<Session> {
        let inner = ClientConnection::new(self.config.clone(), self.name.clone());
        let inner = inner.map_err(io::Error::other)?;
        Ok(Session { inner, needs: self.needs, readable: 0, is_over: false })
    }
}

#[derive(Debug)]
pub struct Session {
    inner: ClientConnection,
    /// The protocol without which there is no session.
    needs: Option<&'static [u8]>,
    /// Decrypted bytes that nobody has taken yet.
    readable: usize,
    /// The peer will send no more.
    is_over: bool,
}

impl Session {
    /// Goes on with the handshake as far as the socket allows; true once it is done. A server
    /// that is not to be trusted or does not speak TLS is an error `InvalidData`.
    pub fn shake_hands(&mut self, socket: &Socket) -> io::Result<bool> {
        loop {
            if self.inner.wants_write() {
                match self.flush(socket) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    flushed => flushed?,
                }
            } else if !self.inner.is_handshaking() {
                if self.needs.is_some() && self.inner.alpn_protocol() != self.needs {
                    let what = "it does not offer HTTP/2 by ALPN; use --http 1.1";
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
                return Ok(true);
            } else {
                match self.fill(socket) {
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    filled => filled?,
                }
                if self.is_over {
                    let what = "the connection was closed in the handshake";
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
            }
        }
    }

    /// Takes what there is room for; [`Session::is_flushed`] tells when it is on its way.
    pub fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.inner.writer().write(bytes)?;
        match self.flush(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    pub fn is_flushed(&self) -> bool {
        !self.inner.wants_write()
    }

    /// Receives from the socket once, unless there are bytes already. 0 is the end that the
    /// peer announced; one without notice is an error `UnexpectedEof`.
    pub fn receive(&mut self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        if self.readable == 0 && !self.is_over {
            self.fill(socket)?;
        }
        let count = self.inner.reader().read(buffer)?;
        self.readable -= count;
        Ok(count)
    }

    /// Whether there are bytes that the socket no longer tells of.
    pub fn holds_more(&self) -> bool {
        self.readable > 0
    }

    /// Whether the peer has said that it will send no more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether an idle session lives and nothing unasked for has come; tickets for later
    /// sessions are no such thing.
    pub fn is_quiet(&mut self, socket: &Socket) -> bool {
        while self.readable == 0 && !self.is_over && !socket.is_quiet() {
            if self.fill(socket).is_err() {
                return false;
            }
        }
        self.readable == 0 && !self.is_over
    }

    fn flush(&mut self, mut socket: &Socket) -> io::Result<()> {
        while self.inner.wants_write() {
            self.inner.write_tls(&mut socket)?;
        }
        Ok(())
    }

    fn fill(&mut self, mut socket: &Socket) -> io::Result<()> {
        self.is_over = self.inner.read_tls(&mut socket)? == 0;
        let state = self.inner.process_new_packets().map_err(|error| {
            // What is wrong is told to the peer, if it still listens.
            let _ = self.flush(socket);
            io::Error::new(ErrorKind::InvalidData, error)
        })?;
        self.readable = state.plaintext_bytes_to_read();
        self.is_over |= state.peer_has_closed();
        Ok(())
    }
}

/// What a person can do about a handshake that failed.
pub fn advice(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "; give its certificate authority with --ca FILE, or accept any certificate with \
             --insecure"
        }
        // Not even --insecure takes this.
        Some(Error::InvalidCertificate(CertificateError::BadSignature)) => "",
        Some(Error::InvalidCertificate(_)) => "; --insecure accepts any certificate",
        Some(Error::InvalidMessage(_)) => "; check whether it uses TLS, or give http:// instead",
        _ => "",
    }
}

/// Takes any certificate, but still has the server show that it is its own, where the certificate
/// can be read: rustls knows version 3 alone, which `openssl x509 -req` does not make by itself.
#[derive(Debug)]
struct Credulous {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if ParsedCertificate::try_from(certificate).is_err() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if ParsedCertificate::try_from(certificate).is_err() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
