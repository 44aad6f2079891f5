"""Threads that start programs in every way that Python knows, beside threads that keep TCP streams busy.

`server PORT STARTERS` sends back what it gets; `client PORT STREAMS MESSAGES STARTERS` prints a digest of each stream.
On each side STARTERS threads start programs for as long as there is a stream, and look at what they print.
"""

import hashlib
import os
import random
import socket
import subprocess
import sys
import threading
import time

LIMIT = 60
trouble = []


def complain(line):
    trouble.append(line)
    print(line, flush=True)


def by_fork(word):
    """A child of Python's own that never becomes another program."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, word.encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return said


def by_popen(word):
    with os.popen(f"echo {word}") as pipe:
        return pipe.read().strip()


def by_spawn(word):
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {len(word)}"], os.environ)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == len(word)
    return word


def by_run(**how):
    def run(word):
        command = f"echo {word}" if how.get("shell") else ["/bin/echo", word]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT, **how).stdout.strip()

    return run


WAYS = [
    by_run(),  # vfork
    by_run(close_fds=False),  # posix_spawn: the child has the streams, if they are not close-on-exec
    by_run(preexec_fn=lambda: None),  # fork
    by_run(shell=True, start_new_session=True),
    by_popen,
    by_spawn,
    by_fork,
    lambda word: word if os.system("exit 3") >> 8 == 3 else "another status",
]


def start_programs(seed, enough):
    count = 0
    end = time.monotonic() + LIMIT
    while not enough.is_set() and time.monotonic() < end:
        word = "w" * (1 + (seed + count) % 90)
        try:
            said = WAYS[(seed + count) % len(WAYS)](word)
            if said != word:
                complain(f"way {(seed + count) % len(WAYS)} said {said!r}")
        except Exception as error:
            complain(f"way {(seed + count) % len(WAYS)}: {error!r}")
        count += 1


def storm(starters):
    enough = threading.Event()
    threads = [threading.Thread(target=start_programs, args=(i, enough)) for i in range(starters)]
    for thread in threads:
        thread.start()

    def end():
        enough.set()
        for thread in threads:
            thread.join()

    return end


def echo(stream):
    with stream:
        while data := stream.recv(65536):
            stream.sendall(data)


def serve(port, starters):
    """One round: as many streams as there are, until the last has ended; then the next."""
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        streams = []
        end = None
        while not streams or any(thread.is_alive() for thread in streams):
            listener.settimeout(0.2 if streams else None)
            try:
                stream, _ = listener.accept()
            except TimeoutError:
                continue
            stream.settimeout(None)
            # Every other stream is what a program of C would have: its children inherit it.
            stream.set_inheritable(len(streams) % 2 == 0)
            end = end or storm(starters)
            streams.append(threading.Thread(target=echo, args=(stream,), daemon=True))
            streams[-1].start()
        end()


def talk(port, seed, messages, results):
    rng = random.Random(seed)
    digest = hashlib.sha256()
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as stream:
        stream.set_inheritable(seed % 3 == 0)
        for _ in range(messages):
            message = rng.randbytes(rng.choice([1, 9, 100, 4096, 30000]))
            stream.sendall(message)
            back = bytearray()
            while len(back) < len(message):
                part = stream.recv(len(message) - len(back))
                assert part, "the end came too early"
                back += part
            assert back == message, "the answer differs"
            digest.update(back)
        # Close would not do while a child has the stream, too.
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(1) == b"", "bytes after the last message"
    results[seed] = digest.hexdigest()


def client(port, streams, messages, starters):
    end = storm(starters)
    results = ["no result"] * streams
    threads = [threading.Thread(target=talk, args=(port, seed, messages, results)) for seed in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end()
    print("\n".join(results))
    sys.exit(bool(trouble) or "no result" in results)


numbers = [int(word) for word in sys.argv[2:]]
(serve if sys.argv[1] == "server" else client)(*numbers)
