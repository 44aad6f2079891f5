/* The byte-exact stream, without blocking, by poll at the server and by select at the client. */
#include "bulk.h"

/* What is ready of what is wanted, as poll bits. */
static int wait_for(int fd, int wanted, int by_select)
{
    struct pollfd entry = {.fd = fd, .events = wanted};
    fd_set in, out;
    if (!by_select) {
        MUST(poll(&entry, 1, -1));
        return entry.revents;
    }
    FD_ZERO(&in);
    FD_ZERO(&out);
    if (wanted & POLLIN)
        FD_SET(fd, &in);
    if (wanted & POLLOUT)
        FD_SET(fd, &out);
    MUST(select(fd + 1, &in, &out, NULL, NULL));
    return (FD_ISSET(fd, &in) ? POLLIN : 0) | (FD_ISSET(fd, &out) ? POLLOUT : 0);
}

static void either(int fd, unsigned out_seed, unsigned in_seed, int by_select)
{
    struct bulk out = bulk_new(out_seed), in = bulk_new(in_seed);
    stage("bulk");
    set_nonblocking(fd);
    for (int wanted; (wanted = (in.done < in.total ? POLLIN : 0) | (out.done < out.total ? POLLOUT : 0));) {
        int ready = wait_for(fd, wanted, by_select);
        if (ready & POLLIN)
            bulk_step(bulk_recv(fd, &in), "recv");
        if (ready & POLLOUT)
            bulk_step(bulk_send(fd, &out), "send");
    }
    bulk_end(fd, &in);
}

static void server(int fd) { either(fd, 1, 2, 0); }
static void client(int fd) { either(fd, 2, 1, 1); }
PAIR(server, client)
