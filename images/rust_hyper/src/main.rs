//! hyper's HTTP/1.1 server with nothing of its own: what is judged here is hyper, so no handler
//! repairs, refuses or special-cases anything.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue, ALLOW, CONTENT_TYPE, ETAG, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ServerConfig;
use serde_json::{json, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Cargo.toml pins this version with `=`.
const HYPER_VERSION: &str = "1.12.0";
const HELLO: &[u8] = b"Hello World!";
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain");
static BIG: [u8; 1 << 20] = [b'a'; 1 << 20];

type Answer = Response<Full<Bytes>>;

fn answer(status: StatusCode, kind: HeaderValue, content: Bytes) -> Answer {
    let mut response = Response::new(Full::new(content));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn hello() -> Answer {
    answer(StatusCode::OK, PLAIN, Bytes::from_static(HELLO))
}

fn answer_json(value: &Value) -> Answer {
    let kind = HeaderValue::from_static("application/json");
    answer(StatusCode::OK, kind, Bytes::from(value.to_string()))
}

fn without_content(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// hyper found the framing of the content broken.
fn broken() -> Answer {
    answer(
        StatusCode::BAD_REQUEST,
        PLAIN,
        Bytes::from_static(b"Bad Request"),
    )
}

fn octets(value: impl AsRef<[u8]>) -> Value {
    Value::from(base64::engine::general_purpose::STANDARD.encode(value))
}

fn pairs(fields: &HeaderMap) -> Value {
    fields
        .iter()
        .map(|(name, value)| json!([octets(name), octets(value)]))
        .collect()
}

async fn body(request: Request<Incoming>) -> Answer {
    match request.into_body().collect().await {
        Ok(content) => answer(StatusCode::OK, PLAIN, content.to_bytes()),
        Err(_) => broken(),
    }
}

fn echo(request: &Request<Incoming>) -> Answer {
    let mut parameters = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes()) {
        parameters
            .entry(name.into_owned())
            .or_insert_with(|| value.into_owned());
    }
    answer_json(&json!(parameters))
}

/// What hyper understood. It computes no authority, so that is null.
async fn mirror(request: Request<Incoming>, request_number: u64) -> Answer {
    let (head, content) = request.into_parts();
    let Ok(content) = content.collect().await else {
        return broken();
    };
    let trailers = content.trailers().map_or_else(|| json!([]), pairs);
    answer_json(&json!({
        "method": octets(head.method.as_str()),
        "target": octets(head.uri.to_string()),
        "authority": null,
        "version": octets(format!("{:?}", head.version)),
        "content": octets(content.to_bytes()),
        "fields": pairs(&head.headers),
        "trailers": trailers,
        "request_number": request_number,
    }))
}

async fn handle(request: Request<Incoming>, request_number: u64) -> Result<Answer, Infallible> {
    Ok(match request.uri().path() {
        "/body" => body(request).await,
        "/echo" => echo(&request),
        "/mirror" => mirror(request, request_number).await,
        "/slow" => {
            tokio::time::sleep(Duration::from_millis(500)).await;
            hello()
        }
        "/204" => without_content(StatusCode::NO_CONTENT),
        "/304" => {
            let mut response = without_content(StatusCode::NOT_MODIFIED);
            response
                .headers_mut()
                .insert(ETAG, HeaderValue::from_static("\"httpmark\""));
            response
        }
        "/redirect" => {
            let mut response = without_content(StatusCode::FOUND);
            response
                .headers_mut()
                .insert(LOCATION, HeaderValue::from_static("/hello"));
            response
        }
        "/big" => answer(StatusCode::OK, PLAIN, Bytes::from_static(&BIG)),
        "/404" => answer(
            StatusCode::NOT_FOUND,
            PLAIN,
            Bytes::from_static(b"Not Found"),
        ),
        "/get-only" if request.method() != Method::GET && request.method() != Method::HEAD => {
            let text = Bytes::from_static(b"Method Not Allowed");
            let mut response = answer(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        // "/early" is here too: hyper sends an answer without waiting for the content.
        _ => hello(),
    })
}

async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, head_timeout: Option<Duration>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: accepting at once again would spin.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let tls = tls.clone();
        tokio::spawn(async move {
            match tls {
                None => converse(stream, head_timeout).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        converse(stream, head_timeout).await;
                    }
                }
            }
        });
    }
}

async fn converse<S: AsyncRead + AsyncWrite + Unpin>(stream: S, head_timeout: Option<Duration>) {
    let requests = AtomicU64::new(0);
    let service =
        service_fn(move |request| handle(request, requests.fetch_add(1, Ordering::Relaxed) + 1));
    // A connection that ends in an error was the client's fault: hyper has answered it.
    let mut builder = http1::Builder::new();
    builder.pipeline_flush(true);
    if head_timeout.is_some() {
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout);
    }
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn acceptor(options: &Options) -> Result<TlsAcceptor, Box<dyn std::error::Error>> {
    let chain = CertificateDer::pem_file_iter(&options.tls_cert)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&options.tls_key)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Options {
    address: String,
    port: u16,
    workers: usize,
    tls_port: u16,
    tls_cert: String,
    tls_key: String,
    head_timeout: Option<Duration>,
}

fn usage(complaint: &str) -> ! {
    eprintln!("rust_hyper: {complaint}: [--address A] [--port P] [--workers N] [--version]");
    std::process::exit(2);
}

fn options() -> Options {
    let mut options = Options {
        address: "127.0.0.1".into(),
        port: 8080,
        workers: 1,
        tls_port: 0,
        tls_cert: String::new(),
        tls_key: String::new(),
        head_timeout: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--version" {
            println!("hyper {HYPER_VERSION}");
            std::process::exit(0);
        }
        let Some(value) = words.next() else {
            usage(&format!("{word} needs a value"))
        };
        let bad = || -> ! { usage(&format!("bad value for {word}: {value}")) };
        match word.as_str() {
            "--address" => options.address = value,
            "--port" => options.port = value.parse().unwrap_or_else(|_| bad()),
            "--workers" => options.workers = value.parse().unwrap_or_else(|_| bad()),
            "--tls-port" => options.tls_port = value.parse().unwrap_or_else(|_| bad()),
            "--tls-cert" => options.tls_cert = value,
            "--tls-key" => options.tls_key = value,
            "--head-timeout-s" => {
                let seconds = value.parse().unwrap_or_else(|_| bad());
                options.head_timeout = Some(Duration::from_secs(seconds));
            }
            _ => usage(&format!("unknown option {word}")),
        }
    }
    options
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options();
    let address: IpAddr = match options.address.parse() {
        Ok(address) => address,
        Err(_) => usage(&format!("bad value for --address: {}", options.address)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.workers.max(1))
        .enable_all()
        .build()?;
    let head_timeout = options.head_timeout;
    runtime.block_on(async {
        if options.tls_port != 0 {
            let acceptor = acceptor(&options)?;
            let listener = TcpListener::bind((address, options.tls_port)).await?;
            tokio::spawn(serve(listener, Some(acceptor), head_timeout));
        }
        let listener = TcpListener::bind((address, options.port)).await?;
        println!("listening on {}", listener.local_addr()?);
        // Accepting belongs on the workers too, not on the thread that waits here.
        tokio::spawn(serve(listener, None, head_timeout)).await?;
        Ok(())
    })
}
