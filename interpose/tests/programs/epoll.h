/* Epoll sets whose events name the descriptor, and what they show. Included by program.h. */

FN void epoll_add(int set, int fd, unsigned events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

FN void epoll_mod(int set, int fd, unsigned events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
}

/* Says what the set shows now or within `ms`, and returns that event, or no bits. */
FN struct epoll_event await_epoll(int set, int ms, const char *what)
{
    struct epoll_event event = {0};
    int count = epoll_wait(set, &event, 1, ms);
    say_events(what, count, event.events);
    return event;
}
