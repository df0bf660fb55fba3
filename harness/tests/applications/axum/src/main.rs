//! An application as axum's documentation writes it: a page, and a note that is posted.

use axum::{
    body::Bytes,
    http::StatusCode,
    routing::{get, post},
    Router,
};

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let app = Router::new()
        .route("/", get(|| async { "Hello, World!" }))
        .route("/notes", post(keep));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}"))
        .await
        .unwrap();
    axum::serve(listener, app).await.unwrap();
}

async fn keep(content: Bytes) -> (StatusCode, String) {
    (StatusCode::CREATED, content.len().to_string())
}
