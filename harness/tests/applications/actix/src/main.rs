//! An application as Actix Web's documentation writes it: a page, and a note that is posted.

use actix_web::{get, post, web, App, HttpResponse, HttpServer, Responder};

#[get("/")]
async fn page() -> impl Responder {
    HttpResponse::Ok().body("Hello world!")
}

#[post("/notes")]
async fn keep(content: web::Bytes) -> impl Responder {
    HttpResponse::Created().body(content.len().to_string())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).expect("a port").parse().expect("a number");
    HttpServer::new(|| App::new().service(page).service(keep))
        .bind(("127.0.0.1", port))?
        .run()
        .await
}
