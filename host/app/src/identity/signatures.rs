//! Lets jsonwebtoken check signatures with ring, which rustls brings already. Nothing is signed here.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{self as ring_signature, RsaParameters, VerificationAlgorithm};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: verifier,
    // For making key sets, which is not done here.
    key_utils: KeyUtils::new_unimplemented(),
};

/// For this process.
pub fn install() {
    // Whoever was first installed the same.
    let _ = PROVIDER.install_default();
}

enum How {
    Rsa(&'static RsaParameters),
    Point(&'static dyn VerificationAlgorithm),
}

struct Ring {
    algorithm: Algorithm,
    how: How,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let how = match algorithm {
        Algorithm::RS256 => How::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => How::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => How::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => How::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => How::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => How::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => How::Point(&ring_signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => How::Point(&ring_signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => How::Point(&ring_signature::ED25519),
        _ => return Err(ErrorKind::InvalidAlgorithm.into()),
    };
    // A key of another family must never be read as one of this.
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Ring {
        algorithm: *algorithm,
        how,
        key: key.clone(),
    }))
}

impl Verifier<Vec<u8>> for Ring {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.how, self.key.kind()) {
            (How::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // Some write a number with zeros before it, which ring refuses.
                let (n, e) = (without_zeros(n), without_zeros(e));
                ring_signature::RsaPublicKeyComponents { n, e }
                    .verify(parameters, message, signature)
            }
            (How::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                ring_signature::UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Ring {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
