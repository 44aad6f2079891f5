/* A double fork in mid-stream, as daemons do it: parent and child are gone, the grandchild goes on with the stream. */
#include "program.h"

static void server(int fd)
{
    char byte;
    int status;
    warm(fd, SERVER);
    pid_t pid = MUST(fork());
    if (!pid) {
        MUST(setsid());
        if (MUST(fork()))
            _exit(0);
        watchdog();
        sleep_ms(50); /* the others are gone */
        warm(fd, SERVER);
        say_result("at the end", recv(fd, &byte, 1, 0));
        tell();
        exit(0);
    }
    MUST(waitpid(pid, &status, 0));
    _exit(0);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    warm(fd, CLIENT);
    MUST(shutdown(fd, SHUT_WR));
    hear();
    say_result("at the end", recv(fd, (char[1]){0}, 1, 0));
}

PAIR(server, client)
