"""A client of a service that sends back what it gets: `PORT STREAMS MESSAGES`. Prints a digest for each stream."""

import hashlib
import random
import socket
import sys
import threading


def exactly(stream, count):
    parts = []
    while count:
        part = stream.recv(min(count, 1 << 20))
        if not part:
            raise EOFError(f"{count} bytes are missing")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def talk(port, seed, messages, results):
    """Messages small enough to wait for none of them to be read, answered one by one; the end by half-close."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
        for _ in range(messages):
            message = rng.randbytes(rng.choice([1, 9, 100, 4096, 30000]))
            stream.sendall(message)
            back = exactly(stream, len(message))
            assert back == message, "the answer differs"
            digest.update(back)
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b"", "bytes after the last message"
    results[seed] = digest.hexdigest()


port, streams, messages = map(int, sys.argv[1:])
results = ["no result"] * streams
threads = [threading.Thread(target=talk, args=(port, seed, messages, results)) for seed in range(streams)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(results))
sys.exit("no result" in results)
