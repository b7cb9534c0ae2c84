// SPDX-License-Identifier: Apache-2.0
// A server of HTTP/2 in clear text that does what the path says; it prints its port. Settings
// of the server are its argument, as JSON.
'use strict';
const http2 = require('node:http2');

const ACTIONS = {
  '/hello': (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('hello');
  },
  '/echo': (stream) => {
    stream.respond({ ':status': 200 });
    stream.pipe(stream);
  },
  '/trailer': (stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</a.css>' });
    stream.respond({ ':status': 201 }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ digest: '1' }));
    stream.end('hello');
  },
  '/reset': (stream) => {
    stream.respond({ ':status': 200 });
    // close() would end the answer first.
    stream.write('hel', () => stream.destroy(new Error('reset')));
  },
  '/refuse': (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM),
  '/last': (stream) => {
    // It announces the end, still answers this request, and none that came with it.
    if (!stream.session.announced) {
      stream.session.announced = true;
      stream.session.goaway(http2.constants.NGHTTP2_NO_ERROR, stream.id);
      ACTIONS['/hello'](stream);
    }
  },
  '/cut': (stream) => {
    stream.respond({ ':status': 200, 'content-length': 500 });
    stream.write('hel', () => stream.session.socket.destroySoon());
  },
  '/wait': (stream) => {
    stream.respond({ ':status': 200 });
  },
  '/mute': () => {},
  '/slow': (stream) => {
    setTimeout(() => ACTIONS['/hello'](stream), 50);
  },
  '/missing': (stream) => {
    stream.respond({ ':status': 404 }, { endStream: true });
  },
};

const server = http2.createServer({ settings: JSON.parse(process.argv[2] || '{}') });
let sessions = 0;
server.on('session', () => { sessions += 1; });
server.on('sessionError', () => {});
server.on('stream', (stream, headers) => {
  stream.on('error', () => {});
  if (headers[':path'] === '/sessions') {
    stream.respond({ ':status': 200 });
    stream.end(String(sessions));
    return;
  }
  ACTIONS[headers[':path']](stream);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
