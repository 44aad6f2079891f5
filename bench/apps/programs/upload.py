"""Uploads that end in a half-close; the answer is what has come: its SHA-256 and its length.

upload.py serve PORT
upload.py send PORT BYTES TIMES
"""
import hashlib
import os
import random
import socket
import sys
import threading


def answer(stream):
    with stream:
        digest, length = hashlib.sha256(), 0
        while data := stream.recv(1 << 20):
            digest.update(data)
            length += len(data)
        stream.sendall(f"{digest.hexdigest()} {length}".encode())


def send(port, data):
    """In pieces small and large; says whether the answer is right."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as stream:
        rest = memoryview(data)
        while rest:
            piece = random.choice((100, 5000, 70000, 1000000))
            stream.sendall(rest[:piece])
            rest = rest[piece:]
        stream.shutdown(socket.SHUT_WR)
        got = b""
        while more := stream.recv(1000):
            got += more
    return got.decode() == f"{hashlib.sha256(data).hexdigest()} {len(data)}"


port = int(sys.argv[2])
if sys.argv[1] == "serve":
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
for turn in range(int(sys.argv[4])):
    print(turn, send(port, os.urandom(int(sys.argv[3]))))
