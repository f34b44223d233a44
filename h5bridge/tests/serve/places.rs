//! Places of connections belong to clients that show their token, beside any number of other
//! sockets.

use std::io::Write;
use std::net::TcpStream;
use std::time::Instant;

use crate::server::{Answer, Server, TIME};
use crate::{small, text};

#[test]
fn clients_are_served_beside_400_sockets_without_a_token() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let mut idle = Vec::new();
    for number in 0..400 {
        let mut stream = server.connect();
        if number % 2 == 0 {
            stream.write_all(b"GET /api/files HTTP/1.1\r\n").unwrap();
        }
        idle.push(stream);
        if number % 10 == 0 {
            assert_eq!(server.get("/api/files").status, 200, "beside {number} sockets");
        }
    }
    // a refused request gives no place
    let refused =
        "GET /api/files HTTP/1.1\r\nHost: HOST\r\n\r\n".replace("HOST", &format!("127.0.0.1:{}", server.port));
    idle.iter_mut().skip(390).for_each(|stream| stream.write_all(refused.as_bytes()).unwrap());
    for _ in 0..100 {
        assert_eq!(server.get("/api/files").status, 200);
    }
}

#[test]
fn clients_have_256_connections() {
    let folder = small();
    let server = Server::start(&[text(folder.path())]);
    let request = format!(
        "GET /api HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
        server.port,
        server.token()
    );
    let open = |stream: &mut TcpStream| {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 512];
        let len = std::io::Read::read(stream, &mut answer).unwrap();
        String::from_utf8_lossy(&answer[..len]).starts_with("HTTP/1.1 200")
    };
    let mut kept: Vec<TcpStream> = (0..256)
        .map(|_| server.connect())
        .map(|mut stream| {
            assert!(open(&mut stream));
            stream
        })
        .collect();
    let mut next = server.connect();
    next.write_all(request.as_bytes()).unwrap();
    let refused = Answer::read(&mut next);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.head);
    assert_eq!(refused.json()["message"], "too many connections");
    assert!(kept.iter_mut().all(open), "places are kept from request to request");
    drop(kept);
    let start = Instant::now();
    while server.get("/api/files").status != 200 {
        assert!(start.elapsed() < TIME);
    }
}

#[test]
fn metrics_are_asked_for() {
    let folder = small();
    assert_eq!(Server::start(&[text(folder.path())]).get("/metrics").status, 404);
    let server = Server::start(&[text(folder.path()), "--metrics"]);
    assert_eq!(server.raw("GET /metrics HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n").status, 401);
    assert_eq!(server.get("/api/data?file=none.h5").status, 404);
    let answer = server.get("/metrics");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; version=0.0.4; charset=utf-8")));
    let text = answer.text();
    assert!(text.contains("h5bridge_serve_answers_total{status=\"4xx\"} 2\n"), "{text}");
    assert!(text.contains("h5bridge_serve_connections 1\n"), "{text}");
}
