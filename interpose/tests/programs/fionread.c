/* FIONREAD: how many bytes can be read, from one to a buffer full of them. */
#include "program.h"

static int readable(int fd)
{
    int count = -1;
    MUST(ioctl(fd, FIONREAD, &count));
    return count;
}

static void server(int fd)
{
    static char bytes[50000];
    warm(fd, SERVER);
    say("nothing there: %d", readable(fd));
    meet();
    await_bytes(fd, 10);
    say("10 there: %d", readable(fd));
    recv_all(fd, bytes, 4);
    say("4 read: %d", readable(fd));
    MUST(recv(fd, bytes, 3, MSG_PEEK));
    say("peeked: %d", readable(fd));
    recv_all(fd, bytes, 6);
    say("all read: %d", readable(fd));
    meet();
    await_bytes(fd, 50000);
    say("50000 there: %d", readable(fd));
    recv_all(fd, bytes, 50000);
    say("all read: %d", readable(fd));
    meet();
    await_poll(fd, POLLRDHUP);
    await_bytes(fd, 5);
    say("5 and the end: %d", readable(fd));
    recv_all(fd, bytes, 5);
    say("at the end: %d", readable(fd));
    say_result("recv", recv(fd, bytes, 1, 0));
    say("end read: %d", readable(fd));
    meet();
}

static void client(int fd)
{
    char bytes[1000] = "";
    warm(fd, CLIENT);
    meet();
    send_all(fd, bytes, 10);
    meet();
    for (int i = 0; i < 50; i++)
        send_all(fd, bytes, 1000);
    meet();
    send_all(fd, bytes, 5);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

PAIR(server, client)
