"""A WSGI application: /PID says which process answers, /N is N bytes, and what is sent by POST comes back as a digest."""

import hashlib
import os


def application(environ, start_response):
    path = environ["PATH_INFO"][1:]
    if environ["REQUEST_METHOD"] == "POST":
        digest = hashlib.sha256()
        while data := environ["wsgi.input"].read(100000):
            digest.update(data)
        body = digest.hexdigest().encode()
    elif path == "PID":
        body = str(os.getpid()).encode()
    else:
        count = int(path)
        body = (path.encode() * (count // len(path) + 1))[:count]
    start_response("200 OK", [("Content-Type", "application/octet-stream"), ("Content-Length", str(len(body)))])
    return [body]
