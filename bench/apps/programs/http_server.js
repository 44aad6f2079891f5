// A plain Node HTTP server: GET /N answers N bytes, POST answers the digest of what was sent.
const http = require('http');
const crypto = require('crypto');

const server = http.createServer((request, response) => {
  if (request.method === 'POST') {
    const hash = crypto.createHash('sha256');
    request.on('data', (chunk) => hash.update(chunk));
    request.on('end', () => response.end(hash.digest('hex')));
    return;
  }
  const size = Number(request.url.slice(1));
  response.setHeader('Content-Length', size);
  response.end(Buffer.alloc(size, request.url));
});
server.listen(Number(process.argv[2]), '127.0.0.1');
process.on('SIGTERM', () => process.exit(0));
