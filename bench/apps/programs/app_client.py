"""Clients of app.py: `PORT THREADS REQUESTS keep|close|retry`. Prints a digest of all answers.

keep uses one connection for each thread, close one for each request. retry keeps connections, and begins a new one if
the server has ended the old one between two requests, as servers do that are told to reload.
"""

import hashlib
import http.client
import random
import sys
import threading

ATTEMPTS = 20


def ask(connection, mode, *request):
    """The answer's body. Only a connection that ends before any of the answer is there may be tried again."""
    for attempt in range(ATTEMPTS):
        try:
            connection.request(*request)
            answer = connection.getresponse()
            break
        except ConnectionError:
            connection.close()
            if mode != "retry" or attempt == ATTEMPTS - 1:
                raise
    assert answer.status == 200, f"status {answer.status}"
    return answer.read()


def talk(port, seed, count, mode, results):
    rng = random.Random(seed)
    digest = hashlib.sha256()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Connection": "close"} if mode == "close" else {}
    for _ in range(count):
        body = rng.randbytes(rng.choice([10, 5000, 200000])) if rng.random() < 0.3 else None
        request = ("POST", "/", body) if body else ("GET", f"/{rng.choice([1, 100, 9000, 300000])}", None)
        data = ask(connection, mode, *request, headers)
        if body:
            assert data.decode() == hashlib.sha256(body).hexdigest(), "the server got something else"
        digest.update(data)
    connection.close()
    results[seed] = digest.hexdigest()


port, clients, count = map(int, sys.argv[1:4])
results = ["no result"] * clients
running = [threading.Thread(target=talk, args=(port, i, count, sys.argv[4], results)) for i in range(clients)]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
print("\n".join(results))
sys.exit("no result" in results)
