/* Calls for no bytes: read returns 0 at once, recv waits for bytes all the same, send of nothing is nothing. */
#include "program.h"

static void server(int fd)
{
    char bytes[10];
    struct iovec nothing = {bytes, 0};
    struct msghdr message = {.msg_iov = &nothing, .msg_iovlen = 1};
    warm(fd, SERVER);
    say_result("read", read(fd, bytes, 0));
    say_result("readv", readv(fd, &nothing, 1));
    say_result("recv, nothing there", recv(fd, bytes, 0, MSG_DONTWAIT));
    say_result("recvmsg, nothing there", recvmsg(fd, &message, MSG_DONTWAIT));
    say_result("recv, no buffer", recv(fd, NULL, 0, MSG_DONTWAIT));
    meet();
    say_result("recv, blocked", recv(fd, bytes, 0, 0));
    await_bytes(fd, 10);
    say_result("recv, bytes there", recv(fd, bytes, 0, MSG_DONTWAIT));
    say_result("peek, bytes there", recv(fd, bytes, 0, MSG_PEEK));
    say_result("recvmsg, bytes there", recvmsg(fd, &message, 0));
    say_result("all", recv(fd, bytes, 10, 0));
    meet();
    await_poll(fd, POLLRDHUP);
    say_result("recv, at the end", recv(fd, bytes, 0, 0));
    say_result("read, at the end", read(fd, bytes, 0));
    meet();
}

static void client(int fd)
{
    char bytes[10] = "";
    struct iovec nothing = {bytes, 0};
    struct msghdr message = {.msg_iov = &nothing, .msg_iovlen = 1};
    warm(fd, CLIENT);
    say_result("send", send(fd, bytes, 0, 0));
    say_result("write", write(fd, bytes, 0));
    say_result("writev", writev(fd, &nothing, 1));
    say_result("sendmsg", sendmsg(fd, &message, 0));
    say_result("no buffer", send(fd, NULL, 0, 0));
    meet();
    sleep_ms(60);
    send_all(fd, bytes, 10);
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say_result("send, shut down", send(fd, bytes, 0, MSG_NOSIGNAL));
    signal(SIGPIPE, SIG_IGN);
    say_result("write, shut down", write(fd, bytes, 0));
    meet();
}

PAIR(server, client)
