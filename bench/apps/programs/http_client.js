// PORT REQUESTS keep|close: GETs of many sizes and a few large POSTs; prints one digest of all answers.
const http = require('http');
const crypto = require('crypto');

const [port, requests] = process.argv.slice(2, 4).map(Number);
const agent = new http.Agent({ keepAlive: process.argv[4] === 'keep', maxSockets: 8 });
const sizes = [1, 100, 1500, 20000, 300000];

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path, agent }, (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks)));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function main() {
  const gets = Array.from({ length: requests }, (_, i) => ask('GET', `/${sizes[i % sizes.length] + i}`));
  const posts = [1000, 200000, 3000000].map((size) => ask('POST', '/', Buffer.alloc(size, 'sidewire')));
  const hash = crypto.createHash('sha256');
  for (const answer of await Promise.all([...gets, ...posts])) hash.update(answer);
  console.log(hash.digest('hex'));
  agent.destroy();
}
main().catch((error) => { console.error(error); process.exit(1); });
