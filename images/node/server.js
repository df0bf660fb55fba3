// Node.js as a server, with its module http alone: no handler repairs, refuses or special-cases.
"use strict";

const cluster = require("node:cluster");
const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");

const HELLO = Buffer.from("Hello World!");
const BIG = Buffer.alloc(1 << 20, "a");
const PLAIN = { "Content-Type": "text/plain" };

const words = {};
for (let at = 2; at < process.argv.length; at += 2) words[process.argv[at]] = process.argv[at + 1];

const octets = (text) => Buffer.from(text, "latin1").toString("base64");

function pairs(raw) {
  const found = [];
  for (let at = 0; at < raw.length; at += 2) found.push([octets(raw[at]), octets(raw[at + 1])]);
  return found;
}

function answer(response, status, content, fields) {
  if (status !== 204 && status !== 304) fields = { ...fields, "Content-Length": content.length };
  response.writeHead(status, fields);
  response.end(content);
}

function json(response, value) {
  answer(response, 200, Buffer.from(JSON.stringify(value)), { "Content-Type": "application/json" });
}

function mirror(request, content) {
  return {
    method: octets(request.method),
    target: octets(request.url),
    authority: null, // node computes none
    version: octets(`HTTP/${request.httpVersion}`),
    content: content.toString("base64"),
    fields: pairs(request.rawHeaders),
    trailers: pairs(request.rawTrailers),
    request_number: request.socket.requests,
  };
}

function behave(path, method, response) {
  if (path === "/slow") setTimeout(() => answer(response, 200, HELLO, PLAIN), 500);
  else if (path === "/204") answer(response, 204, undefined, {});
  else if (path === "/304") answer(response, 304, undefined, { ETag: '"httpmark"' });
  else if (path === "/redirect") answer(response, 302, "", { Location: "/hello" });
  else if (path === "/big") answer(response, 200, BIG, PLAIN);
  else if (path === "/404") answer(response, 404, "Not Found", PLAIN);
  else if (path === "/get-only" && method !== "GET" && method !== "HEAD")
    answer(response, 405, "Method Not Allowed", { ...PLAIN, Allow: "GET, HEAD" });
  else answer(response, 200, HELLO, PLAIN);
}

function handle(request, response) {
  request.socket.requests = (request.socket.requests || 0) + 1;
  const [path, query] = request.url.split(/\?(.*)/s);
  if (path === "/early") {
    answer(response, 200, HELLO, PLAIN);
    request.resume();
    return;
  }
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const content = Buffer.concat(pieces);
    if (path === "/body") answer(response, 200, content, PLAIN);
    else if (path === "/echo") json(response, Object.fromEntries(new URLSearchParams(query)));
    else if (path === "/mirror") json(response, mirror(request, content));
    else behave(path, request.method, response);
  });
}

function serve() {
  const options = {};
  if (words["--timeout-ms"]) {
    const time = Number(words["--timeout-ms"]);
    options.headersTimeout = options.requestTimeout = options.keepAliveTimeout = time;
    options.connectionsCheckingInterval = 500;
  }
  const where = { host: words["--address"], backlog: 4096 };
  http.createServer(options, handle).listen({ ...where, port: Number(words["--port"]) });
  if (words["--tls-port"]) {
    options.cert = fs.readFileSync(words["--tls-cert"]);
    options.key = fs.readFileSync(words["--tls-key"]);
    https.createServer(options, handle).listen({ ...where, port: Number(words["--tls-port"]) });
  }
}

const workers = Number(words["--workers"] || 1);
// As the first process of a container it would not end at SIGTERM without a handler.
process.on("SIGTERM", () => process.exit(0));
if (workers > 1 && cluster.isPrimary) {
  for (let one = 0; one < workers; one++) cluster.fork();
} else {
  serve();
}
