/* Options that only the kernel can honour: they have their effect, or their error, and the stream goes on. */
#include "program.h"
#include <linux/filter.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif

static void either(int fd, enum side side)
{
    int on = 1, off = 0, seen = 0, idle = 77;
    char name[20] = "";
    socklen_t length = sizeof seen;
    struct sock_filter accept_all[] = {BPF_STMT(BPF_RET | BPF_K, 0xffffffff)};
    struct sock_fprog filter = {1, accept_all};
    warm(fd, side);
    meet();
    say_result("SO_TIMESTAMP", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on));
    ping_pong(fd, side, 50);
    say_result("SO_ATTACH_FILTER", setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
    ping_pong(fd, side, 50);
    say_result("SO_DETACH_FILTER", setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof off));
    say_result("SO_ZEROCOPY", setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
    ping_pong(fd, side, 50);
    say_result("TCP_ULP", setsockopt(fd, IPPROTO_TCP, TCP_ULP, "nonsense", 8));
    say_result("TCP_CONGESTION", setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
    length = sizeof name;
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length));
    say("TCP_CONGESTION: %.8s", name);
    say_result("TCP_NODELAY", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    say_result("SO_KEEPALIVE", setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    say_result("TCP_KEEPIDLE", setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle));
    length = sizeof seen;
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seen, &length));
    say("TCP_KEEPIDLE: %d", seen);
    say_result("SO_BUSY_POLL", setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &off, sizeof off));
    say_result("no such option", setsockopt(fd, IPPROTO_TCP, 9999, &on, sizeof on));
    ping_pong(fd, side, 200);
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
