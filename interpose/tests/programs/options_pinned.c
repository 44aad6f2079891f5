/* Options that only the kernel can honour, each on a busy stream of its own, set at one end or the other. */
#include "options.h"

static const struct option options[] = {
    {SOL_SOCKET, 10, "SO_OOBINLINE", 1, 4, 0},
    {SOL_SOCKET, 18, "SO_RCVLOWAT", -1, 4, 0},
    {SOL_SOCKET, 26, "SO_ATTACH_FILTER", 1, 4, 1},
    {SOL_SOCKET, 29, "SO_TIMESTAMP", 1, 4, 0},
    {SOL_SOCKET, 35, "SO_TIMESTAMPNS", 1, 4, 0},
    {SOL_SOCKET, 37, "SO_TIMESTAMPING", 16, 4, 0},
    {SOL_SOCKET, 42, "SO_PEEK_OFF", 0, 4, 0},
    {SOL_SOCKET, 47, "SO_MAX_PACING_RATE", 1 << 24, 8, 0},
    {SOL_SOCKET, 50, "SO_ATTACH_BPF", -1, 4, 0},
    {SOL_SOCKET, 51, "SO_ATTACH_REUSEPORT_CBPF", 1, 4, 0},
    {SOL_SOCKET, 52, "SO_ATTACH_REUSEPORT_EBPF", -1, 4, 0},
    {SOL_SOCKET, 60, "SO_ZEROCOPY", 1, 4, 0},
    {SOL_SOCKET, 61, "SO_TXTIME", 1, 8, 0},
    {SOL_SOCKET, 63, "SO_TIMESTAMP_NEW", 1, 4, 0},
    {SOL_SOCKET, 64, "SO_TIMESTAMPNS_NEW", 1, 4, 0},
    {SOL_SOCKET, 65, "SO_TIMESTAMPING_NEW", 16, 4, 0},
    {IPPROTO_TCP, 14, "TCP_MD5SIG", 1, 4, 0},
    {IPPROTO_TCP, 19, "TCP_REPAIR", 1, 4, 0},
    {IPPROTO_TCP, 30, "TCP_FASTOPEN_CONNECT", 1, 4, 0},
    {IPPROTO_TCP, 31, "TCP_ULP", 0x78787878, 4, 0},
    {IPPROTO_TCP, 32, "TCP_MD5SIG_EXT", 1, 4, 0},
    {IPPROTO_TCP, 36, "TCP_INQ", 1, 4, 0},
    {IPPROTO_TCP, 37, "TCP_TX_DELAY", 100, 4, 1},
    {IPPROTO_TCP, 38, "TCP_AO_ADD_KEY", 1, 4, 0},
    {IPPROTO_TCP, 40, "TCP_AO_INFO", 1, 4, 0},
};

/* The peer is busy, and sets nothing. */
static void look_on(int fd, enum side side)
{
    ping_pong(fd, side, 10);
    ping_pong(fd, side, 20);
    meet();
}

static void peek_by_offset(int fd)
{
    char bytes[20];
    int at = 5;
    MUST(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &at, sizeof at));
    meet();
    await_bytes(fd, 100);
    for (int i = 0; i < 3; i++) {
        say_result("peeked", recv(fd, bytes, 20, MSG_PEEK));
        say_yes("intact", intact(1, 5 + 20 * i, bytes, 20));
    }
    say_result("received", recv(fd, bytes, 10, 0));
    say_yes("intact", intact(1, 0, bytes, 10));
    say_result("peeked", recv(fd, bytes, 20, MSG_PEEK));
    say_yes("intact", intact(1, 65, bytes, 20));
}

/* TCP_ZEROCOPY_RECEIVE with nothing to map: it copies. */
static void receive_pages(int fd)
{
    static char bytes[200];
    struct {
        uint64_t address;
        uint32_t length, skip, inq;
        int32_t error;
        uint64_t copy_to;
        int32_t copied;
        uint32_t flags;
        uint64_t control[2];
        uint32_t control_flags, reserved;
    } ask = {.copy_to = (uintptr_t)bytes, .copied = 100};
    size_t got = 0;
    await_bytes(fd, 100);
    while (got < 100) {
        socklen_t length = sizeof ask;
        ask.copy_to = (uintptr_t)bytes + got;
        ask.copied = 100 - got;
        MUST(getsockopt(fd, IPPROTO_TCP, 35, &ask, &length));
        if (ask.copied > 0)
            got += ask.copied;
        else if (!ask.skip)
            die("nothing to skip");
        else
            got += MUST(recv(fd, bytes + got, 100 - got, 0));
    }
    say_yes("TCP_ZEROCOPY_RECEIVE", intact(1, 0, bytes, 100));
    meet();
    await_poll(fd, POLLIN);
    socklen_t length = sizeof ask;
    say_result("at the end", getsockopt(fd, IPPROTO_TCP, 35, &ask, &length));
}

static void one_end(int fd, enum side side, int i)
{
    int count = sizeof options / sizeof *options;
    meet();
    if (i < 2 * count) {
        const struct option *o = &options[i / 2];
        if (side != i % 2) {
            look_on(fd, side);
            return;
        }
        stage(o->name);
        int repairs = o->level == IPPROTO_TCP && o->number == 19;
        if (repairs || o->number == SO_RCVLOWAT) {
            /* Nothing moves as long as it is set. */
            say_result(o->name, set_option(fd, o, o->value));
            say_option("set", fd, o);
            say_result("unset", set_option(fd, o, repairs ? -1 : 1));
            look_on(fd, side);
        } else {
            try_option(fd, side, o);
        }
    } else {
        if (side == CLIENT && i == 2 * count)
            meet();
        if (side == CLIENT)
            send_pattern(fd, 1, 100);
        else if (i == 2 * count)
            peek_by_offset(fd);
        else
            receive_pages(fd);
        if (side == CLIENT && i > 2 * count) {
            meet();
            MUST(shutdown(fd, SHUT_WR));
        }
        meet();
    }
}

static const int connections = 2 * sizeof options / sizeof *options + 2;

static void server(int listener)
{
    for (int i = 0; i < connections; i++) {
        int fd = accept_warm(listener);
        one_end(fd, SERVER, i);
        close(fd);
    }
}

static void client(int port)
{
    for (int i = 0; i < connections; i++) {
        int fd = connect_warm(port);
        one_end(fd, CLIENT, i);
        close(fd);
    }
}

ROLES(server, client)
