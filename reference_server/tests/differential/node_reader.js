// Reads messages from standard input, each behind its length in four octets, highest first; writes
// for each what node's http server makes of it: "accept", "need-more" or "reject" and why.
'use strict';
const http = require('node:http');
const { Duplex } = require('node:stream');

class Wire extends Duplex {
  _read() {}
  // The handlers below never answer: what is written is node's own refusal, or 100 Continue.
  _write(chunk, encoding, done) {
    const status = /^HTTP\/1\.1 ([45]\d\d)/.exec(chunk.toString('latin1'));
    if (status) this.refusal = status[1];
    done();
  }
  setTimeout() { return this; }
  setKeepAlive() { return this; }
  setNoDelay() { return this; }
}

function verdict(message) {
  return new Promise((resolve) => {
    let said = 'need-more';
    const server = http.createServer({ insecureHTTPParser: false, requireHostHeader: true });
    let first = null;
    const heard = (request, response) => {
      first = first || request;
      response.on('error', () => {});
      request.resume();
      request.on('end', () => { if (said === 'need-more') said = 'accept'; });
      request.on('error', () => {});
    };
    server.on('request', heard);
    server.on('checkContinue', heard);
    server.on('checkExpectation', () => { if (said === 'need-more') said = 'reject expectation'; });
    server.on('connect', () => { said = 'reject connect'; });
    server.on('upgrade', () => { said = 'accept'; });
    server.on('clientError', (error) => {
      if (said === 'need-more') said = 'reject ' + (error.code || error.message);
    });
    const wire = new Wire();
    wire.on('error', () => {});
    server.emit('connection', wire);
    wire.push(message);
    setImmediate(() => setImmediate(() => setImmediate(() => {
      // What stands behind the first message is another one: its faults do not count.
      if (first && first.complete) said = 'accept';
      resolve(said === 'need-more' && wire.refusal ? 'reject ' + wire.refusal : said);
      wire.destroy();
      server.close();
    })));
  });
}

async function main() {
  const pieces = [];
  for await (const piece of process.stdin) pieces.push(piece);
  const input = Buffer.concat(pieces);
  const lines = [];
  for (let at = 0; at < input.length;) {
    const size = input.readUInt32BE(at);
    lines.push(await verdict(input.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  process.stdout.write(lines.join('\n') + '\n');
}

main();
