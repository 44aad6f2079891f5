/* Socket calls by way of syscall(), as Node and others make them. */
#include "program.h"

static void server(int fd)
{
    char bytes[400];
    struct iovec parts[2] = {{bytes, 30}, {bytes + 30, 70}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    warm(fd, SERVER);
    meet();
    await_bytes(fd, 400);
    say_result("SYS_poll", syscall(SYS_poll, &entry, 1, 0));
    say_result("SYS_read", syscall(SYS_read, fd, bytes, 100));
    say_yes("intact", intact(1, 0, bytes, 100));
    say_result("SYS_recvfrom", syscall(SYS_recvfrom, fd, bytes, 100, 0, NULL, NULL));
    say_yes("intact", intact(1, 100, bytes, 100));
    say_result("SYS_readv", syscall(SYS_readv, fd, parts, 2));
    say_yes("intact", intact(1, 200, bytes, 100));
    say_result("SYS_recvmsg", syscall(SYS_recvmsg, fd, &message, 0));
    say_yes("intact", intact(1, 300, bytes, 100));
    say_result("SYS_recvfrom, nothing there", syscall(SYS_recvfrom, fd, bytes, 100, MSG_DONTWAIT, NULL, NULL));

    int set = MUST(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7};
    say_result("SYS_epoll_ctl", syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &event));
    say_result("SYS_epoll_wait", syscall(SYS_epoll_wait, set, &event, 1, 0));
    meet();
    say_result("SYS_epoll_wait", syscall(SYS_epoll_wait, set, &event, 1, 5000));
    int other = MUST(open("/dev/null", O_RDONLY));
    say_yes("SYS_dup3", syscall(SYS_dup3, fd, other, O_CLOEXEC) == other);
    say_result("SYS_close", syscall(SYS_close, fd));
    say_result("SYS_read", syscall(SYS_read, other, bytes, 100));
    say_yes("intact", intact(1, 400, bytes, 100));
    say_result("SYS_shutdown", syscall(SYS_shutdown, other, SHUT_WR));
    say_result("SYS_read, at the end", syscall(SYS_read, other, bytes, 100));
}

static void client(int fd)
{
    char bytes[500];
    struct iovec parts[2] = {{bytes + 200, 30}, {bytes + 230, 70}};
    struct iovec rest = {bytes + 300, 100};
    struct msghdr message = {.msg_iov = &rest, .msg_iovlen = 1};
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    say_result("SYS_write", syscall(SYS_write, fd, bytes, 100));
    say_result("SYS_sendto", syscall(SYS_sendto, fd, bytes + 100, 100, 0, NULL, 0));
    say_result("SYS_writev", syscall(SYS_writev, fd, parts, 2));
    say_result("SYS_sendmsg", syscall(SYS_sendmsg, fd, &message, 0));
    meet();
    meet();
    say_result("SYS_write", syscall(SYS_write, fd, bytes + 400, 100));
    say_result("SYS_read, at the end", syscall(SYS_read, fd, bytes, 100));
    say_result("SYS_close", syscall(SYS_close, fd));
}

PAIR(server, client)
