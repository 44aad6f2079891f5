/* MSG_WAITALL: waits for everything; ends early at the end of the stream only. */
#include "program.h"

static void server(int fd)
{
    static char bytes[200000];
    struct iovec parts[3] = {{bytes, 100}, {bytes + 100, 0}, {bytes + 100, 900}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    warm(fd, SERVER);
    meet();
    say_result("recv", recv(fd, bytes, 1000, MSG_WAITALL));
    say_yes("intact", intact(1, 0, bytes, 1000));
    say_result("recvmsg", recvmsg(fd, &message, MSG_WAITALL));
    say_yes("intact", intact(1, 1000, bytes, 1000));
    say_result("a large one", recv(fd, bytes, 150000, MSG_WAITALL));
    say_yes("intact", intact(1, 2000, bytes, 150000));
    say_result("without blocking", recv(fd, bytes, 1000, MSG_WAITALL | MSG_DONTWAIT));
    meet();
    await_bytes(fd, 30);
    say_result("without blocking, 30 there", recv(fd, bytes, 1000, MSG_WAITALL | MSG_DONTWAIT));
    set_nonblocking(fd);
    say_result("non-blocking", recv(fd, bytes, 1000, MSG_WAITALL));
    set_blocking(fd);
    meet();
    say_result("until the end", recv(fd, bytes, 1000, MSG_WAITALL));
    say_result("at the end", recv(fd, bytes, 1000, MSG_WAITALL));
}

static void client(int fd)
{
    static char bytes[152000];
    warm(fd, CLIENT);
    fill(1, 0, bytes, sizeof bytes);
    meet();
    for (int i = 0; i < 2000; i += 50) {
        send_all(fd, bytes + i, 50);
        if (i % 500 == 0)
            sleep_ms(10);
    }
    for (int i = 2000; i < 152000; i += 3000)
        send_all(fd, bytes + i, 3000);
    meet();
    send_all(fd, bytes, 30);
    meet();
    send_all(fd, bytes, 70);
    sleep_ms(30);
    send_all(fd, bytes, 50);
}

PAIR(server, client)
