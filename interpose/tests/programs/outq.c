/* SIOCOUTQ: nothing is on its way once the peer has everything; a full stream shows it. */
#include "program.h"

static int under_way(int fd)
{
    int count = -1;
    MUST(ioctl(fd, SIOCOUTQ, &count));
    return count;
}

static void client(int fd)
{
    char bytes[1000] = "";
    warm(fd, CLIENT);
    for (int i = 0; i < 5; i++) {
        send_all(fd, bytes, sizeof bytes);
        hear();
        for (int tries = 0; under_way(fd) && tries < 500; tries++)
            sleep_ms(2);
        say("the peer has read it: %d", under_way(fd));
    }
    size_t sent = fill_up(fd);
    say_yes("full: something is under way", under_way(fd) > 0);
    MUST(send(turns, &sent, sizeof sent, 0));
    hear();
    for (int tries = 0; under_way(fd) && tries < 500; tries++)
        sleep_ms(2);
    say("the peer has read all: %d", under_way(fd));
}

static void server(int fd)
{
    static char bytes[65536];
    size_t sent = 0;
    warm(fd, SERVER);
    for (int i = 0; i < 5; i++) {
        recv_all(fd, bytes, 1000);
        tell();
    }
    MUST(recv(turns, &sent, sizeof sent, MSG_WAITALL));
    for (size_t total = 0; total < sent;)
        total += MUST(recv(fd, bytes, sizeof bytes, 0));
    tell();
    say_result("at the end", recv(fd, bytes, 1, 0));
}

PAIR(server, client)
