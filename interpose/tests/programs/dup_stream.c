/* dup, dup2, dup3 and F_DUPFD of a moving stream: whichever descriptor is left goes on, and only the last close ends it. */
#include "program.h"

static void server(int fd)
{
    char byte;
    warm(fd, SERVER);
    int copy = MUST(dup(fd));
    MUST(close(fd));
    say_result("recv on the closed one", recv(fd, &byte, 1, MSG_DONTWAIT));
    warm(copy, SERVER);

    int target = MUST(open("/dev/null", O_RDONLY));
    MUST(dup2(copy, target));
    warm(target, SERVER);
    warm(copy, SERVER);

    /* Both descriptors take from one stream, in turn. */
    meet();
    for (int i = 0; i < 200; i++) {
        recv_all(i % 2 ? copy : target, &byte, 1);
        if (byte != (char)i)
            die("out of turn");
    }
    MUST(close(copy));
    int high = MUST(fcntl(target, F_DUPFD, 300));
    say("F_DUPFD: %d", high);
    MUST(close(target));
    warm(high, SERVER);
    say_result("dup2 onto itself", dup2(high, high));
    say_result("dup3 onto itself", dup3(high, high, 0));
    say_result("dup3", dup3(high, 400, O_CLOEXEC));
    MUST(close(high));
    warm(400, SERVER);
    /* The flags belong to the stream, not to the descriptor. */
    MUST(dup2(400, 401));
    set_nonblocking(401);
    say_result("recv, non-blocking by the other", recv(400, &byte, 1, 0));
    set_blocking(401);
    MUST(close(400));
    meet();
    warm(401, SERVER);
    MUST(close(401));
}

static void client(int fd)
{
    char byte;
    warm(fd, CLIENT);
    warm(fd, CLIENT);
    warm(fd, CLIENT);
    warm(fd, CLIENT);
    meet();
    for (int i = 0; i < 200; i++) {
        byte = i;
        send_all(fd, &byte, 1);
    }
    warm(fd, CLIENT);
    warm(fd, CLIENT);
    meet();
    say_poll("not yet at the end", fd, POLLIN | POLLRDHUP, 50);
    warm(fd, CLIENT);
    say_result("at the end", recv(fd, &byte, 1, 0));
}

PAIR(server, client)
