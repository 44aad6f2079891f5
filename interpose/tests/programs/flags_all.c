/* Every flag of send and recv on a busy stream, whether it means something to TCP or not. */
#include "program.h"

static const struct {
    unsigned bit;
    const char *name;
} flags[] = {
    /* Those that pin, at the end. */
    {0x4, "MSG_DONTROUTE"},
    {0x40, "MSG_DONTWAIT"},
    {0x80, "MSG_EOR"},
    {0x800, "MSG_CONFIRM"},
    {0x4000, "MSG_NOSIGNAL"},
    {0x8000, "MSG_MORE"},
    {0x40000, "MSG_BATCH"},
    {0x20000000, "MSG_FASTOPEN"},
    {0x2, "MSG_PEEK"},
    {0x20, "MSG_TRUNC"},
    {0x100, "MSG_WAITALL"},
    {0x2000, "MSG_ERRQUEUE"},
    {0x10000, "MSG_WAITFORONE"},
    {0x2000000, "MSG_SOCK_DEVMEM"},
    {0x40000000, "MSG_CMSG_CLOEXEC"},
    {0x80000000, "MSG_CMSG_COMPAT"},
    {0x8, "MSG_CTRUNC"},
    {0x10, "MSG_PROXY"},
    {0x200, "MSG_FIN"},
    {0x400, "MSG_SYN"},
    {0x1000, "MSG_RST"},
    {0x20000, "MSG_SENDPAGE_NOTLAST"},
    {0x80000, "no name"},
    {0x100000, "no name"},
    {0x8000000, "MSG_SPLICE_PAGES"},
    {0x4000000, "MSG_ZEROCOPY"},
    {0x1, "MSG_OOB"},
};

/* A header whose fields show what the call has written; `named` if it wants the sender's address. */
static struct msghdr header(struct iovec *part, int named)
{
    static struct sockaddr_in address;
    static char control[64];
    return (struct msghdr){.msg_name = named ? &address : NULL,
                           .msg_namelen = sizeof address,
                           .msg_iov = part,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control,
                           .msg_flags = 0x55};
}

static void say_header(const char *what, long result, const struct msghdr *h)
{
    say_result(what, result);
    if (result >= 0)
        say("header: %d %zu %x", h->msg_namelen, h->msg_controllen, h->msg_flags);
}

/* Sends the same eight bytes by each call with the flag, then some without, which end what it may hold back. */
static void sending(int fd, unsigned bit)
{
    char bytes[8];
    fill(1, 0, bytes, 8);
    struct iovec part = {bytes, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    say_result("send", send(fd, bytes, 8, bit));
    say_result("sendto", sendto(fd, bytes, 8, bit, NULL, 0));
    say_result("sendmsg", sendmsg(fd, &message, bit));
    say_result("sendmmsg", sendmmsg(fd, many, 2, bit));
    send_all(fd, bytes, 8);
    MUST(shutdown(fd, SHUT_WR));
}

/* All that came. */
static void received(int fd)
{
    char bytes[100];
    long count = recv_all(fd, bytes, sizeof bytes);
    uint64_t sum = 0;
    sum_bytes(&sum, bytes, count);
    say("came: %ld, %llx", count, (unsigned long long)sum);
}

static void receiving(int fd, unsigned bit)
{
    char bytes[100];
    struct iovec part = {bytes, 7};
    await_bytes(fd, 100);
    for (int named = 0; named < 2; named++) {
        struct msghdr message = header(&part, named);
        say_header("recvmsg", recvmsg(fd, &message, bit), &message);
    }
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    say_result("recv", recv(fd, bytes, 7, bit));
    say_result("recvfrom", recvfrom(fd, bytes, 7, bit, (struct sockaddr *)&address, &length));
    struct mmsghdr many[2] = {{.msg_hdr = header(&part, 0)}, {.msg_hdr = header(&part, 1)}};
    say_result("recvmmsg", recvmmsg(fd, many, 2, bit, NULL));
    received(fd);
}

static void server(int listener)
{
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int fd = accept_warm(listener);
        stage(flags[i].name);
        say("%s", flags[i].name);
        meet();
        receiving(fd, flags[i].bit);
        sending(fd, flags[i].bit);
        meet();
        close(fd);
    }
}

static void client(int port)
{
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int fd = connect_warm(port);
        stage(flags[i].name);
        say("%s", flags[i].name);
        meet();
        send_pattern(fd, 1, 100);
        MUST(shutdown(fd, SHUT_WR));
        meet(); /* all has been sent then, and of urgent bytes only the last is left out */
        received(fd);
        close(fd);
    }
}

ROLES(server, client)
