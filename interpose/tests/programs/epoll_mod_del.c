/* ADD, MOD, DEL and their errors; data.u64 comes back whole; a number that is closed and used again is a new one. */
#include "program.h"

static void server(int listener)
{
    char bytes[16];
    uint64_t values[] = {0, 1, UINT64_MAX, 0x8000000000000000, 0xffffffff, 0x7fffffff00000000, 0xdeadbeefcafef00d};
    int set = MUST(epoll_create1(0));
    int fd = accept_warm(listener);
    struct epoll_event event = {.events = EPOLLIN};
    say_result("MOD before ADD", epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    say_result("DEL before ADD", epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    say_result("ADD", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say_result("ADD twice", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say_result("no such operation", epoll_ctl(set, 77, fd, &event));
    say_result("of itself", epoll_ctl(set, EPOLL_CTL_ADD, set, &event));
    say_result("no such descriptor", epoll_ctl(set, EPOLL_CTL_ADD, 1 << 20, &event));
    say_result("not an epoll", epoll_ctl(fd, EPOLL_CTL_ADD, set, &event));
    say_result("wait, not an epoll", epoll_wait(fd, &event, 1, 0));
    say_result("wait for no events", epoll_wait(set, &event, 0, 0));
    meet();
    await_bytes(fd, 1);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        event = (struct epoll_event){.events = EPOLLIN, .data.u64 = values[i]};
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
        event.data.u64 = ~values[i];
        if (MUST(epoll_wait(set, &event, 1, 5000)) != 1 || event.data.u64 != values[i])
            die("data.u64");
    }
    say_result("DEL", epoll_ctl(set, EPOLL_CTL_DEL, fd, &event));
    await_epoll(set, 20, "deleted");
    say_result("DEL twice", epoll_ctl(set, EPOLL_CTL_DEL, fd, &event));
    say_result("ADD again", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    await_epoll(set, 5000, "added again");
    recv_all(fd, bytes, 1);
    await_epoll(set, 20, "read");

    MUST(close(fd));
    say_result("DEL, closed", epoll_ctl(set, EPOLL_CTL_DEL, fd, &event));
    await_epoll(set, 20, "closed");
    int again = accept_one(listener);
    say_yes("the same number", again == fd);
    say_result("MOD, a new stream", epoll_ctl(set, EPOLL_CTL_MOD, again, &event));
    event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 5};
    say_result("ADD, a new stream", epoll_ctl(set, EPOLL_CTL_ADD, again, &event));
    warm(again, SERVER);
    await_epoll(set, 20, "nothing there");
    meet();
    await_epoll(set, 5000, "a byte there");
    say("data: %d", (int)event.data.u64);
}

static void client(int port)
{
    int fd = connect_warm(port);
    meet();
    send_all(fd, "x", 1);
    say_result("at the end", recv(fd, (char[1]){0}, 1, 0));
    close(fd);
    fd = connect_warm(port);
    meet();
    send_all(fd, "x", 1);
    hear();
}

ROLES(server, client)
