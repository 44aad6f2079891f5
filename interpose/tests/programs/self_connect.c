/* A socket that is connected to itself: the simultaneous open of one. It is its own peer. */
#include "program.h"

static void self(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    char bytes[100];
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(fd, (struct sockaddr *)&address, sizeof address));
    MUST(getsockname(fd, (struct sockaddr *)&address, &length));
    say_result("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
    for (int i = 0; i < 60; i++) {
        fill(i, 0, bytes, sizeof bytes);
        send_all(fd, bytes, sizeof bytes);
        if (recv_all(fd, bytes, sizeof bytes) != sizeof bytes || !intact(i, 0, bytes, sizeof bytes))
            die("bytes");
    }
    say("to itself and back");
    MUST(shutdown(fd, SHUT_WR));
    say_result("at the end", recv(fd, bytes, 1, 0));
}

SELF(self)
