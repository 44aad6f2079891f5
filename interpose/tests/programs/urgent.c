/* Urgent data: MSG_OOB, POLLPRI, SIGURG, SIOCATMARK, and in line with SO_OOBINLINE. */
#include "pester.h"

static void server(int fd)
{
    char bytes[20] = "";
    int on = 1;
    warm(fd, SERVER);
    handle(SIGURG, SA_RESTART);
    MUST(fcntl(fd, F_SETOWN, getpid()));
    say_result("nothing urgent", recv(fd, bytes, 1, MSG_OOB));
    meet();
    await_poll(fd, POLLPRI);
    await_bytes(fd, 3);
    say_poll("poll", fd, POLLIN | POLLPRI, 0);
    say_yes("SIGURG", handled > 0);
    say("at the mark: %d", sockatmark(fd));
    say_result("recv", recv(fd, bytes, sizeof bytes, 0));
    say("it says: %.3s, at the mark: %d", bytes, sockatmark(fd));
    say_result("recv, urgent", recv(fd, bytes, 1, MSG_OOB));
    say("it says: %.1s", bytes);
    say_result("recv, urgent again", recv(fd, bytes, 1, MSG_OOB));
    say_result("recv", recv(fd, bytes, 3, MSG_WAITALL));
    say("it says: %.3s", bytes);
    MUST(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
    meet();
    await_poll(fd, POLLPRI);
    await_bytes(fd, 7);
    say_result("recv, urgent", recv(fd, bytes, 1, MSG_OOB));
    say_result("recv to the mark", recv(fd, bytes, sizeof bytes, 0));
    say("at the mark: %d", sockatmark(fd));
    say_result("recv from the mark", recv(fd, bytes, sizeof bytes, 0));
    say("it says: %.4s", bytes);
    meet();
    warm(fd, SERVER);
    meet();
}

static void client(int fd)
{
    warm(fd, CLIENT);
    for (int i = 0; i < 2; i++) {
        meet();
        send_all(fd, "abc", 3);
        MUST(send(fd, "!", 1, MSG_OOB));
        send_all(fd, "def", 3);
    }
    meet();
    warm(fd, CLIENT);
    meet();
}

PAIR(server, client)
