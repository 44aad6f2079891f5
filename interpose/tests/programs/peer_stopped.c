/* The peer is stopped for a while: nothing is heard, time limits run off, and then it goes on. */
#include "program.h"

static void client(int port)
{
    int status, fd;
    pid_t pid = MUST(fork());
    if (!pid) {
        watchdog();
        fd = connect_warm(port);
        tell();
        raise(SIGSTOP);
        say("received: %zu", recv_pattern(fd, 1, 50000));
        send_all(fd, "x", 1);
        exit(0);
    }
    MUST(waitpid(pid, &status, WUNTRACED));
    say_yes("stopped", WIFSTOPPED(status));
    tell();
    hear();
    MUST(kill(pid, SIGCONT));
    MUST(waitpid(pid, &status, 0));
    say("ended with %d", WEXITSTATUS(status));
}

static void server(int listener)
{
    char byte;
    struct timeval limit = {0, 200000};
    int fd = accept_warm(listener);
    hear();
    hear();
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    long start = now_ms();
    say_result("recv", recv(fd, &byte, 1, 0));
    say_time("recv", start, 200);
    say_poll("poll", fd, POLLIN | POLLRDHUP, 100);
    stage("send to a stopped peer");
    send_pattern(fd, 1, 50000);
    say_result("recv", recv(fd, &byte, 1, 0));
    tell();
    say_poll("poll", fd, POLLIN, 10000);
    say_result("recv", recv(fd, &byte, 1, 0));
}

ROLES(server, client)
