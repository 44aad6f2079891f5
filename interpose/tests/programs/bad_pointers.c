/* Pointers to nothing: EFAULT, no signal, and not a byte is lost. */
#include "program.h"
#include <sys/mman.h>

/* The compiler must not know that these are bad. */
static void *volatile nowhere = (void *)16, *volatile null = NULL;

/* A page whose successor is not there. */
static char *last_page(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || munmap(pages + 4096, 4096))
        die("mmap");
    return pages;
}

static void client(int fd)
{
    char *page = last_page(), bytes[1000];
    struct iovec good_and_bad[2] = {{bytes, 100}, {nowhere, 100}};
    struct msghdr message = {.msg_iov = nowhere, .msg_iovlen = 1};
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    say_result("send", send(fd, nowhere, 10, 0));
    say_result("send, NULL", send(fd, null, 10, 0));
    say_result("write", write(fd, nowhere, 10));
    say_result("writev", writev(fd, nowhere, 1));
    say_result("sendmsg, no message", sendmsg(fd, null, 0));
    say_result("sendmsg, no pieces", sendmsg(fd, &message, 0));
    say_result("send, read-only is fine", send(fd, "x", 1, 0));
    /* How much of a half good buffer goes out depends on pages of the kernel; what went out must arrive. */
    fill(1, 0, page, 4096);
    long sent[2] = {send(fd, page, 8192, 0), 0};
    say_yes("half good: EFAULT or a part", (sent[0] < 0 && errno == EFAULT) || (sent[0] > 0 && sent[0] <= 4096));
    fill(2, 0, bytes, sizeof bytes);
    sent[1] = writev(fd, good_and_bad, 2);
    say_yes("half good: EFAULT or a part", (sent[1] < 0 && errno == EFAULT) || (sent[1] > 0 && sent[1] <= 100));
    MUST(send(turns, sent, sizeof sent, 0));
    meet();
    send_pattern(fd, 3, 1000);
    meet();
    send_pattern(fd, 3, 8192);
    meet();
}

static void server(int fd)
{
    char *page = last_page(), bytes[10000];
    long sent[2];
    int set = MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    struct timeval limit = {1, 0};
    fd_set readable;
    warm(fd, SERVER);
    recv_all(fd, bytes, 1);
    MUST(recv(turns, sent, sizeof sent, MSG_WAITALL));
    for (int i = 0; i < 2; i++)
        say_yes("the part came", sent[i] < 0 || recv_pattern(fd, i + 1, sent[i]) == (size_t)sent[i]);
    say_result("no more than that", recv(fd, bytes, 1, MSG_DONTWAIT));
    say_result("recv, nothing there", recv(fd, nowhere, 10, MSG_DONTWAIT));
    meet();
    await_bytes(fd, 1000);
    say_result("recv", recv(fd, nowhere, 10, 0));
    say_result("recv, NULL", recv(fd, null, 10, 0));
    say_result("read", read(fd, nowhere, 10));
    say_result("readv", readv(fd, nowhere, 1));
    say_result("recvmsg", recvmsg(fd, null, 0));
    say_result("recv, read-only memory", recv(fd, (void *)"constant", 8, 0));
    say_yes("nothing was lost", recv_pattern(fd, 3, 1000) == 1000);
    meet();
    await_bytes(fd, 8192);
    long got = recv(fd, page, 8192, 0);
    say_yes("half good: EFAULT or a part", (got < 0 && errno == EFAULT) || (got > 0 && got <= 4096));
    got = got > 0 ? got : 0;
    say_yes("intact", intact(3, 0, page, got));
    recv_all(fd, bytes, 8192 - got);
    say_yes("the rest", intact(3, got, bytes, 8192 - got));

    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say_result("epoll_ctl", epoll_ctl(set, EPOLL_CTL_MOD, fd, null));
    event.events = EPOLLOUT;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    say_result("epoll_wait", epoll_wait(set, nowhere, 1, 0));
    await_epoll(set, 0, "epoll_wait, good");
    say_result("poll", poll(nowhere, 1, 0));
    say_result("poll, NULL", poll(null, 1, 0));
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    say_result("select", select(fd + 1, nowhere, NULL, NULL, &limit));
    say_result("select, negative", select(-1, &readable, NULL, NULL, &limit));
    meet();
}

PAIR(server, client)
