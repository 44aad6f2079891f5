/* dup2 and dup3 close their target: a moving stream ends, a file, a pipe or another stream takes its number. */
#include "program.h"

static void server(int listener)
{
    char byte;
    for (int i = 0; i < 3; i++) {
        int fd = accept_warm(listener);
        say_result("at the end", recv(fd, &byte, 1, 0));
        MUST(close(fd));
    }
}

static void client(int port)
{
    char bytes[16];
    int ends[2];
    int fd = connect_warm(port);
    int file = MUST(open("/dev/zero", O_RDONLY));
    MUST(dup2(file, fd));
    say_result("read", read(fd, bytes, sizeof bytes));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    MUST(close(file));

    int second = connect_warm(port);
    MUST(pipe(ends));
    MUST(dup3(ends[0], second, 0));
    say_result("write", write(ends[1], "pipe", 4));
    say_poll("poll", second, POLLIN, 0);
    say_result("read", read(second, bytes, sizeof bytes));

    /* A stream onto the number of what was a stream before. */
    int third = connect_to(port);
    MUST(dup2(third, second));
    MUST(close(third));
    warm(second, CLIENT);
    MUST(close(second));
}

ROLES(server, client)
