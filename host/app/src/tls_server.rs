//! A server under TLS on this machine, for the tests of clients.

use std::sync::Arc;

use souk_outbound::Trust;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

/// Answers each connection, whose request begins with `line`, and ends it. Returns its address, without a path, and what to trust to believe it.
pub async fn serve(line: &'static str, answer: &'static [u8]) -> (String, Trust) {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap_or(0);
            assert!(head[..read].starts_with(line.as_bytes()));
            stream.write_all(answer).await.ok();
            stream.shutdown().await.ok();
        }
    });
    (address, Trust::verified(Some(&made.cert.pem())).unwrap())
}
