/* SIGTERM ends a process that is blocked in recv, poll or epoll_wait; its peer sees the end of the stream. */
#include "program.h"

static void wait_for_ever(int fd, int way)
{
    char byte;
    int set = MUST(epoll_create1(0));
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    epoll_add(set, fd, EPOLLIN);
    tell();
    if (way == 0)
        recv(fd, &byte, 1, 0);
    else if (way == 1)
        poll(&entry, 1, -1);
    else
        epoll_wait(set, &event, 1, -1);
    say("came back");
    _exit(3);
}

static void client(int port)
{
    for (int way = 0; way < 3; way++) {
        int status;
        pid_t child = MUST(fork());
        if (!child) {
            watchdog();
            int fd = connect_warm(port);
            wait_for_ever(fd, way);
        }
        hear();
        sleep_ms(100);
        MUST(kill(child, SIGTERM));
        MUST(waitpid(child, &status, 0));
        say("ended by signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static void server(int listener)
{
    char byte;
    for (int way = 0; way < 3; way++) {
        int fd = accept_warm(listener);
        hear();
        tell();
        say_result("at the end", recv(fd, &byte, 1, 0));
        close(fd);
    }
}

ROLES(server, client)
