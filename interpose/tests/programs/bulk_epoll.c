/* The byte-exact stream, without blocking, by epoll: edge-triggered at the server, level-triggered at the client. */
#include "bulk.h"

static void either(int fd, unsigned out_seed, unsigned in_seed, unsigned mode)
{
    struct bulk out = bulk_new(out_seed), in = bulk_new(in_seed);
    int set = MUST(epoll_create1(0));
    unsigned wanted = EPOLLIN | EPOLLOUT | mode;
    struct epoll_event event;
    stage("bulk");
    set_nonblocking(fd);
    epoll_add(set, fd, wanted);
    while (in.done < in.total || out.done < out.total) {
        MUST(epoll_wait(set, &event, 1, -1));
        unsigned events = event.events;
        for (long result = 1; (events & EPOLLIN) && in.done < in.total && result > 0;) {
            bulk_step(result = bulk_recv(fd, &in), "recv");
            /* MSG_DONTWAIT and the like end a level-triggered round early; an edge must be read to its end. */
            if (!(mode & EPOLLET) && next_random(&in.state, 4) == 0)
                break;
        }
        for (long result = 1; (events & EPOLLOUT) && out.done < out.total && result > 0;) {
            bulk_step(result = bulk_send(fd, &out), "send");
            if (!(mode & EPOLLET) && next_random(&out.state, 4) == 0)
                break;
        }
        /* Writable all the time would be asked for no longer than there is something to write. */
        if (!(mode & EPOLLET) && out.done == out.total && (wanted & EPOLLOUT)) {
            wanted = EPOLLIN;
            epoll_mod(set, fd, wanted);
        }
    }
    bulk_end(fd, &in);
}

static void server(int fd) { either(fd, 1, 2, EPOLLET); }
static void client(int fd) { either(fd, 2, 1, 0); }
PAIR(server, client)
