/*
 * A byte-exact stream of random sizes in both directions at once, by all kinds of calls; its flavours differ in how
 * they wait. SIDEWIRE_TEST_BYTES is the number of bytes in both directions together.
 */
#ifndef BULK_H
#define BULK_H

#include "program.h"

enum { LARGEST = 80000, ROOM = 2 * LARGEST };

/* One direction at one end. */
struct bulk {
    unsigned seed;
    uint64_t done, total, state;
    char *room;
};

FN uint64_t bulk_total(void)
{
    const char *text = getenv("SIDEWIRE_TEST_BYTES");
    return (text ? strtoull(text, NULL, 10) : 256ull << 20) / 2;
}

FN struct bulk bulk_new(unsigned seed)
{
    /* What sizes and calls are used may differ from run to run: the bytes may not. */
    return (struct bulk){seed, 0, bulk_total(), seed ^ (uint64_t)getpid() << 20, malloc(ROOM)};
}

/* Mostly small, now and then large, never more than is left. */
FN size_t bulk_size(struct bulk *bulk)
{
    static const unsigned limits[] = {8, 100, 100, 1500, 1500, 9000, LARGEST, LARGEST};
    size_t size = 1 + next_random(&bulk->state, limits[next_random(&bulk->state, 8)]);
    return size < bulk->total - bulk->done ? size : bulk->total - bulk->done;
}

/* Two pieces, and an empty one between them. */
FN void bulk_cut(struct bulk *bulk, struct iovec parts[3], size_t size)
{
    size_t first = 1 + next_random(&bulk->state, size);
    parts[0] = (struct iovec){bulk->room, first};
    parts[1] = (struct iovec){bulk->room + first, 0};
    parts[2] = (struct iovec){bulk->room + first, size - first};
}

/* One call of a random kind that sends; what it returned. Counts what was sent. */
FN long bulk_send(int fd, struct bulk *bulk)
{
    struct iovec parts[3];
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}},
                                  {.msg_hdr = {.msg_iov = parts + 2, .msg_iovlen = 1}}};
    size_t size = bulk_size(bulk);
    long sent = -1;
    fill(bulk->seed, bulk->done, bulk->room, size);
    bulk_cut(bulk, parts, size);
    switch (next_random(&bulk->state, 8)) {
    case 0: sent = write(fd, bulk->room, size); break;
    case 1: sent = writev(fd, parts, 3); break;
    case 2: sent = sendto(fd, bulk->room, size, 0, NULL, 0); break;
    case 3: sent = sendmsg(fd, &(struct msghdr){.msg_iov = parts, .msg_iovlen = 3}, 0); break;
    case 4: sent = send(fd, bulk->room, size, bulk->done + size < bulk->total ? MSG_MORE : 0); break;
    case 5:
        /* A message that went out in part only must be the last of the call, or bytes would be missing. */
        if (sendmmsg(fd, messages, size < 100 ? 2 : 1, 0) > 0)
            sent = messages[0].msg_len + (messages[0].msg_len == parts[0].iov_len ? messages[1].msg_len : 0);
        break;
    default: sent = send(fd, bulk->room, size, MSG_NOSIGNAL); break;
    }
    if (sent > 0)
        bulk->done += sent;
    return sent;
}

/* One call of a random kind that receives, and checks. */
FN long bulk_recv(int fd, struct bulk *bulk)
{
    struct iovec parts[3];
    struct mmsghdr messages[1] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 3}}};
    size_t size = bulk_size(bulk);
    long got = -1;
    bulk_cut(bulk, parts, size);
    switch (next_random(&bulk->state, 9)) {
    case 0: got = read(fd, bulk->room, size); break;
    case 1: got = readv(fd, parts, 3); break;
    case 2: got = recvfrom(fd, bulk->room, size, 0, NULL, NULL); break;
    case 3: got = recvmsg(fd, &(struct msghdr){.msg_iov = parts, .msg_iovlen = 3}, 0); break;
    case 4: got = recv(fd, bulk->room, size, MSG_WAITALL); break;
    case 5:
        got = recvmmsg(fd, messages, 1, 0, NULL);
        got = got > 0 ? (long)messages[0].msg_len : got;
        break;
    case 6:
        got = recv(fd, bulk->room, size, MSG_PEEK);
        if (got > 0) {
            if (!intact(bulk->seed, bulk->done, bulk->room, got))
                exit(94);
            got = recv(fd, bulk->room, got, 0);
        }
        break;
    case 7: got = recv(fd, bulk->room, size, MSG_DONTWAIT); break;
    default: got = recv(fd, bulk->room, size, 0); break;
    }
    if (got > 0) {
        if (!intact(bulk->seed, bulk->done, bulk->room, got))
            exit(94);
        bulk->done += got;
    }
    return got;
}

FN int bulk_again(long result) { return result > 0 || (result < 0 && (errno == EAGAIN || errno == EINTR)); }

FN void bulk_step(long result, const char *what)
{
    if (!bulk_again(result))
        die(what);
}

FN void bulk_end(int fd, struct bulk *in)
{
    char byte;
    set_blocking(fd);
    MUST(shutdown(fd, SHUT_WR));
    say_yes("every byte intact", in->done == in->total);
    say_result("at the end", recv(fd, &byte, 1, 0));
    meet();
}

#endif
