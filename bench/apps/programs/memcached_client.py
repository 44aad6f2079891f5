"""Talk memcached's text protocol: `PORT KEYS`; stores, reads back, counts and deletes, and prints a digest."""

import hashlib
import random
import socket
import sys

port, keys = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(1)
connection = socket.create_connection(("127.0.0.1", port))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
stream = connection.makefile("rb")


def command(line, body=None):
    connection.sendall(line.encode() + b"\r\n" + (body + b"\r\n" if body is not None else b""))
    return stream.readline().strip().decode()


def get(key):
    header = command(f"get {key}").split()
    if header == ["END"]:
        return None
    value = stream.read(int(header[3]) + 2)[:-2]
    assert stream.readline() == b"END\r\n"
    return value


values = {f"key{i}": rng.randbytes(rng.choice([1, 30, 900, 20000])) for i in range(keys)}
digest = hashlib.sha256()
for key, value in values.items():
    assert command(f"set {key} 0 0 {len(value)}", value) == "STORED"
for key, value in values.items():
    answer = get(key)
    assert answer == value, key
    digest.update(answer)

# A pipeline: all questions at once, the answers after that.
names = list(values)[:200]
connection.sendall(b"".join(f"get {key}\r\n".encode() for key in names))
for key in names:
    size = int(stream.readline().split()[3])
    digest.update(stream.read(size + 2))
    assert stream.readline() == b"END\r\n"

assert command("set counter 0 0 1", b"0") == "STORED"
for _ in range(keys):
    count = command("incr counter 1")
assert command("delete key0") == "DELETED" and get("key0") is None
print(digest.hexdigest(), count)
