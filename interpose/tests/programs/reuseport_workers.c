/* Workers with listening sockets of their own on one port (SO_REUSEPORT); every connection is served by one of them. */
#include "program.h"

enum { WORKERS = 3, CONNECTIONS = 60 };

static int listen_shared(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address));
    MUST(listen(fd, 128));
    return fd;
}

static void worker(int listener, int counts)
{
    for (;;) {
        int fd = accept_one(listener);
        char kind, byte;
        recv_all(fd, &kind, 1);
        if (kind == 'q')
            exit(0);
        ping_pong(fd, SERVER, 60);
        if (recv(fd, &byte, 1, 0) == 0)
            MUST(write(counts, "x", 1));
        close(fd);
    }
}

static void server(int unused)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    int counts[2], served = 0, status;
    pid_t pids[WORKERS];
    char byte;
    MUST(close(unused));
    int first = MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
    MUST(setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
    MUST(bind(first, (struct sockaddr *)&address, sizeof address));
    MUST(getsockname(first, (struct sockaddr *)&address, &length));
    int port = ntohs(address.sin_port);
    MUST(pipe(counts));
    for (int i = 0; i < WORKERS; i++) {
        int listener = listen_shared(port);
        if (!(pids[i] = MUST(fork()))) {
            watchdog();
            worker(listener, counts[1]);
        }
        close(listener);
    }
    MUST(send(turns, &port, sizeof port, 0));
    for (; served < CONNECTIONS; served++)
        MUST(read(counts[0], &byte, 1));
    say("served: %d", served);
    for (int i = 0; i < WORKERS; i++) {
        kill(pids[i], SIGTERM);
        MUST(waitpid(pids[i], &status, 0));
    }
    meet();
}

static void client(int unused)
{
    int port;
    (void)unused;
    MUST(recv(turns, &port, sizeof port, MSG_WAITALL));
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = connect_to(port);
        send_all(fd, "c", 1);
        ping_pong(fd, CLIENT, 60);
        close(fd);
    }
    say("all served");
    meet();
}

ROLES(server, client)
