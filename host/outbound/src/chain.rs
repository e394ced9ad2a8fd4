//! Who has signed a server's certificate, looked at with little of a thread's time: all at once, and as the server has made it.

use std::{
    cell::Cell,
    sync::{Arc, OnceLock},
};

use rustls::{
    DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
};
use rustls_pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, ServerName,
    SignatureVerificationAlgorithm, UnixTime,
};

/// The chain must hold; with `verify-ca` the name may differ.
#[derive(Debug)]
pub(crate) struct Chain {
    authorities: Arc<WebPkiServerVerifier>,
    is_any_name: bool,
}

impl Chain {
    pub(crate) fn to(roots: Arc<RootCertStore>, is_any_name: bool) -> Result<Chain, String> {
        let authorities = WebPkiServerVerifier::builder_with_provider(roots, provider());
        Ok(Chain {
            authorities: authorities.build().map_err(|error| error.to_string())?,
            is_any_name,
        })
    }
}

/// How many of the authorities that a server shows are looked at, and how many of them under one name at once. Every way from one to the next is tried, at once,
/// and a handshake has room for 400 of them, of which each may lead to 80: that took twenty seconds of the thread. Servers show one or two; twice under one name
/// what two others have signed; three times and more, if they leave former ones there, what was renewed again and again.
const AUTHORITIES: usize = 16;
const OF_ONE_NAME: usize = 2;
/// How often is looked, each time at others of a name. The sixteenth of one name is found so, and of three names the fourth of each.
const LOOKS: usize = 8;

/// What a server shows, in its order, by name.
fn by_name<'s, 'a>(shown: &'s [CertificateDer<'a>]) -> Vec<Vec<&'s CertificateDer<'a>>> {
    let mut by_name: Vec<Vec<&CertificateDer<'a>>> = Vec::new();
    let mut named = RootCertStore::empty();
    // Of each in `named`.
    let mut places: Vec<usize> = Vec::new();
    for authority in shown {
        if places.len() == AUTHORITIES {
            break;
        }
        // One that cannot be read leads nowhere.
        let is_known = by_name.iter().flatten().any(|known| *known == authority);
        if is_known || named.add(authority.clone()).is_err() {
            continue;
        }
        let Some((this, others)) = named.roots.split_last() else {
            continue;
        };
        let namesake = others
            .iter()
            .position(|other| other.subject == this.subject);
        let place = namesake.map_or(by_name.len(), |other| places[other]);
        if place == by_name.len() {
            by_name.push(Vec::new());
        }
        by_name[place].push(authority);
        places.push(place);
    }
    by_name
}

/// Those that are looked at together, for the `look`th time. `None`: all have been.
fn looked_at<'a>(
    by_name: &[Vec<&CertificateDer<'a>>],
    look: usize,
) -> Option<Vec<CertificateDer<'a>>> {
    let (mut together, mut others) = (Vec::new(), look);
    for namesakes in by_name {
        let turns = namesakes.len().div_ceil(OF_ONE_NAME);
        let first = others % turns * OF_ONE_NAME;
        others /= turns;
        let turn = namesakes.iter().skip(first).take(OF_ONE_NAME);
        together.extend(turn.copied().cloned());
    }
    (others == 0).then_some(together)
}

/// How many signatures of one chain are checked with keys of up to 2048 bits of RSA, which databases make for authorities of their own, many under one name: each
/// of those in a `ca_pem` may have to be tried. What takes longer counts for as many as take as long. Twenty handshakes with a hundred keys of 8192 bits had others
/// wait for two seconds.
const SIGNATURES: usize = 64;
/// What a key of 2048 bits takes in a certificate. One of twice as many takes four times as long.
const KEY_BYTES: usize = 300;
/// No key of RSA is as short. With a curve's a signature takes as long as with 4096 bits of RSA.
const CURVE_BYTES: usize = 150;
const CURVE_COUNTS: usize = 4;

/// For how many of those one counts.
fn counts(public_key: &[u8], signature: &[u8]) -> usize {
    match public_key.len().max(signature.len()) {
        ..CURVE_BYTES => CURVE_COUNTS,
        bytes => bytes.div_ceil(KEY_BYTES).pow(2),
    }
}

thread_local! {
    /// Of the chain that this thread is looking at.
    static SIGNATURES_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Checks signatures as long as there are any left.
#[derive(Debug)]
struct Counted(&'static dyn SignatureVerificationAlgorithm);

impl SignatureVerificationAlgorithm for Counted {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let counts = counts(public_key, signature);
        let left = SIGNATURES_LEFT.get().checked_sub(counts);
        SIGNATURES_LEFT.set(left.ok_or(InvalidSignature)?);
        self.0.verify_signature(public_key, message, signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.0.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.0.signature_alg_id()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

/// What is signed in a handshake is checked once, and not counted.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let counting = || {
        let mut provider = rustls::crypto::ring::default_provider();
        let all = &mut provider.signature_verification_algorithms.all;
        let counted = all
            .iter()
            .map(|algorithm| -> &'static dyn SignatureVerificationAlgorithm {
                Box::leak(Box::new(Counted(*algorithm)))
            });
        let counted: Vec<_> = counted.collect();
        *all = counted.leak();
        Arc::new(provider)
    };
    PROVIDER.get_or_init(counting).clone()
}

impl ServerCertVerifier for Chain {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::{CertificateError, Error};
        let by_name = by_name(intermediates);
        let looks = (0..LOOKS).map_while(|look| looked_at(&by_name, look));
        SIGNATURES_LEFT.set(SIGNATURES);
        let mut refused = None;
        for intermediates in looks {
            match self
                .authorities
                .verify_server_cert(certificate, &intermediates, name, ocsp, now)
            {
                // The name is looked at last: everything else has passed.
                Err(
                    error @ Error::InvalidCertificate(
                        CertificateError::NotValidForName
                        | CertificateError::NotValidForNameContext { .. },
                    ),
                ) => {
                    return match self.is_any_name {
                        true => Ok(ServerCertVerified::assertion()),
                        false => Err(error),
                    };
                }
                // What is said of those that the server shows first.
                Err(error) => refused = refused.or(Some(error)),
                verified => return verified,
            }
        }
        Err(refused.unwrap_or(CertificateError::UnknownIssuer.into()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signature counts for what it takes: of the keys that authorities mostly have many are tried.
    #[test]
    fn signatures_count_for_what_they_take() {
        // Of RSA with an exponent of 65537, of P-256, P-384 and Ed25519: bytes of the key, of a signature, and how many may be checked.
        for (key, signature, checked) in [
            (270, 256, 64),
            (398, 384, 16),
            (526, 512, 16),
            (1038, 1024, 4),
            (65, 72, 16),
            (97, 104, 16),
            (32, 64, 16),
        ] {
            let counts = counts(&vec![0; key], &vec![0; signature]);
            assert_eq!(SIGNATURES / counts, checked, "{key}");
        }
    }
}
