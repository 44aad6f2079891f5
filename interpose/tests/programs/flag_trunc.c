/* MSG_TRUNC on a TCP socket throws bytes away uncopied and says how many. */
#include "program.h"

static void server(int fd)
{
    char bytes[400];
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 400);
    memset(bytes, 7, sizeof bytes);
    say_result("thrown away", recv(fd, bytes, 100, MSG_TRUNC));
    say_yes("buffer untouched", bytes[0] == 7 && bytes[99] == 7);
    say_result("recv", recv(fd, bytes, 100, 0));
    say_yes("intact", intact(1, 100, bytes, 100));
    say_result("with peek", recv(fd, bytes, 400, MSG_TRUNC | MSG_PEEK));
    say_result("no buffer", recv(fd, NULL, 100, MSG_TRUNC));
    say_result("recv", recv(fd, bytes, 50, 0));
    say_yes("intact", intact(1, 300, bytes, 50));
    say_result("more than there is", recv(fd, bytes, 400, MSG_TRUNC));
    say_result("nothing there", recv(fd, bytes, 400, MSG_TRUNC | MSG_DONTWAIT));
    meet();
    say_result("all, in pieces", recv(fd, NULL, 200000, MSG_TRUNC | MSG_WAITALL));
    say_result("recv", recv(fd, bytes, 10, MSG_WAITALL));
    say_yes("intact", intact(1, 200000, bytes, 10));
    meet();
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    send_pattern(fd, 1, 400);
    meet();
    send_pattern(fd, 1, 200010);
    meet();
}

PAIR(server, client)
