/* O_ASYNC in mid-stream: SIGIO, or the signal of F_SETSIG, when bytes and when the end come. */
#include "program.h"

static void expect(sigset_t *set, const char *what, int fd)
{
    struct timespec limit = {5, 0}, drain = {0, 30000000};
    siginfo_t info;
    int got = sigtimedwait(set, &info, &limit);
    say("%s: %s", what, got == SIGIO ? "SIGIO" : got == SIGRTMIN ? "SIGRTMIN" : "nothing");
    if (got == SIGRTMIN)
        say_yes("  with the descriptor", info.si_fd == fd && info.si_band & POLLIN);
    while (sigtimedwait(set, &info, &drain) > 0)
        ; /* one arrival may raise several */
}

static void server(int fd)
{
    char bytes[10];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    warm(fd, SERVER);
    MUST(fcntl(fd, F_SETOWN, getpid()));
    MUST(fcntl(fd, F_SETFL, O_ASYNC));
    say_yes("O_ASYNC", fcntl(fd, F_GETFL) & O_ASYNC);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            MUST(fcntl(fd, F_SETSIG, SIGRTMIN));
        if (i == 2) {
            int on = 1;
            MUST(fcntl(fd, F_SETSIG, 0));
            MUST(fcntl(fd, F_SETFL, 0));
            MUST(ioctl(fd, FIOASYNC, &on));
        }
        meet();
        expect(&set, "bytes came", fd);
        await_bytes(fd, 10);
        recv_all(fd, bytes, 10);
    }
    meet();
    expect(&set, "the end came", fd);
    say_result("recv", recv(fd, bytes, 1, 0));
    meet();
}

static void client(int fd)
{
    warm(fd, CLIENT);
    for (int i = 0; i < 3; i++) {
        meet();
        send_all(fd, "0123456789", 10);
    }
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

PAIR(server, client)
