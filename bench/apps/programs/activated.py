"""Socket activation in systemd's manner.

`launch PORT PROGRAM ARGUMENTS` listens, and becomes the program, which finds the socket at descriptor 3 (LISTEN_FDS).
`serve` is such a program: it sends back what it gets, a thread for each connection.
"""

import os
import socket
import sys
import threading


def launch(port, program):
    listener = socket.create_server(("127.0.0.1", port))
    # dup2 onto itself would leave the descriptor closed on exec.
    number = listener.detach()
    if number == 3:
        os.set_inheritable(3, True)
    else:
        os.dup2(number, 3)
        os.close(number)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execvp(program[0], program)


def echo(stream):
    with stream:
        while data := stream.recv(65536):
            stream.sendall(data)


def serve():
    assert os.environ["LISTEN_FDS"] == "1" and os.environ["LISTEN_PID"] == str(os.getpid()), "not activated"
    listener = socket.socket(fileno=3)
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=echo, args=(stream,), daemon=True).start()


if sys.argv[1] == "launch":
    launch(int(sys.argv[2]), sys.argv[3:])
else:
    serve()
