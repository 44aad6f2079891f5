/*
 * dup2 onto a stream in which another thread is blocked in recv: that call goes on with the old stream until bytes
 * come, the number is another file's at once, and the peer sees the end when the call is over.
 */
#include "program.h"

static int stream;

static void *blocked(void *unused)
{
    char bytes[10];
    (void)unused;
    say_result("recv", recv(stream, bytes, 5, MSG_WAITALL));
    return NULL;
}

static void server(int fd)
{
    pthread_t thread;
    char bytes[16];
    warm(fd, SERVER);
    stream = fd;
    MUST(-pthread_create(&thread, NULL, blocked, NULL));
    sleep_ms(80);
    int zeros = MUST(open("/dev/zero", O_RDONLY));
    MUST(dup2(zeros, fd));
    say_result("read of the new file", read(fd, bytes, sizeof bytes));
    meet();
    pthread_join(thread, NULL);
    say_result("recv of the new file", recv(fd, bytes, sizeof bytes, 0));
    meet();
}

static void client(int fd)
{
    char byte;
    warm(fd, CLIENT);
    meet();
    say_poll("not at the end yet", fd, POLLIN | POLLRDHUP, 0);
    send_all(fd, "12345", 5);
    say_result("at the end", recv(fd, &byte, 1, 0));
    meet();
}

PAIR(server, client)
