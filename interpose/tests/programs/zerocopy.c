/* MSG_ZEROCOPY: the bytes arrive, and the completions are told by the error queue. */
#include "program.h"
#include <linux/errqueue.h>

enum { SENDS = 20, SIZE = 20000 };

static void client(int fd)
{
    static char bytes[SENDS][SIZE];
    char control[128];
    int on = 1, told = 0;
    warm(fd, CLIENT);
    MUST(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
    for (int i = 0; i < SENDS; i++) {
        fill(1, (uint64_t)i * SIZE, bytes[i], SIZE);
        for (size_t sent = 0; sent < SIZE;)
            sent += MUST(send(fd, bytes[i] + sent, SIZE - sent, MSG_ZEROCOPY));
    }
    while (told < SENDS) {
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        struct pollfd entry = {.fd = fd};
        MUST(poll(&entry, 1, -1));
        if (recvmsg(fd, &message, MSG_ERRQUEUE) < 0)
            die("error queue");
        struct sock_extended_err *completion = (void *)CMSG_DATA(CMSG_FIRSTHDR(&message));
        told += completion->ee_data - completion->ee_info + 1;
    }
    say_yes("completed", told >= SENDS);
    warm(fd, CLIENT);
    meet();
}

static void server(int fd)
{
    warm(fd, SERVER);
    say("received: %zu", recv_pattern(fd, 1, SENDS * SIZE));
    warm(fd, SERVER);
    meet();
}

PAIR(server, client)
