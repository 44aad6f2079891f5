"""A server whose children read requests from, and write answers to, a stream that it goes on using.

`server PORT`; `client PORT STREAMS MESSAGES` prints a digest of each stream. A message is its length in 8 digits and so
many bytes. Most are answered by the server itself; some are read, or answered, or both, by a program that it starts
with the stream as standard input or output, under Sidewire or (with no environment) not.
"""

import hashlib
import random
import socket
import subprocess
import sys
import threading

LIMIT = 60


def exactly(stream, count):
    got = bytearray()
    while len(got) < count:
        part = stream.recv(count - len(got))
        if not part:
            break
        got += part
    return bytes(got)


def read_by_child(stream, count, env):
    return subprocess.run(["/usr/bin/head", "-c", str(count)], stdin=stream, stdout=subprocess.PIPE, env=env,
                          check=True, timeout=LIMIT).stdout


def write_by_child(stream, message, env, **how):
    subprocess.run(["/bin/cat"], input=message, stdout=stream, env=env, check=True, timeout=LIMIT, **how)


def answer(stream):
    number = 0
    with stream:
        while length := exactly(stream, 8):
            count = int(length)
            # Far enough from each other for the stream to get onto the faster wire in between.
            env = {} if number % 2 else None
            way = {30: "read", 60: "write", 90: "fork", 120: "both"}.get(number % 123)
            message = read_by_child(stream, count, env) if way in ("read", "both") else exactly(stream, count)
            if way == "fork":
                write_by_child(stream, message, env, preexec_fn=lambda: None)
            elif way in ("write", "both"):
                write_by_child(stream, message, env)
            else:
                stream.sendall(message)
            number += 1


def serve(port):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=answer, args=(stream,), daemon=True).start()


def talk(port, seed, messages, results):
    rng = random.Random(seed)
    digest = hashlib.sha256()
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as stream:
        for number in range(messages):
            message = rng.randbytes(rng.choice([1, 9, 100, 4096, 30000]))
            stream.sendall(b"%08d" % len(message) + message)
            back = exactly(stream, len(message))
            assert back == message, f"answer {number} differs ({len(back)} of {len(message)} bytes)"
            digest.update(back)
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b"", "bytes after the last message"
    results[seed] = digest.hexdigest()


def client(port, streams, messages):
    results = ["no result"] * streams
    threads = [threading.Thread(target=talk, args=(port, seed, messages, results)) for seed in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("\n".join(results))
    sys.exit("no result" in results)


numbers = [int(word) for word in sys.argv[2:]]
(serve if sys.argv[1] == "server" else client)(*numbers)
