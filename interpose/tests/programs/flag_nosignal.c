/* MSG_NOSIGNAL and SIGPIPE: which calls raise it, and in which thread. */
#include "pester.h"

static void *in_a_thread(void *fd)
{
    sigset_t blocked, waiting;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    say_result("send in a thread", send(*(int *)fd, "x", 1, 0));
    sigpending(&waiting);
    say_yes("pending there", sigismember(&waiting, SIGPIPE));
    return NULL;
}

static void server(int fd)
{
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    pthread_t thread;
    warm(fd, SERVER);
    handle(SIGPIPE, 0);
    meet();
    await_poll(fd, POLLRDHUP);
    say_result("the first", send(fd, &byte, 1, 0)); /* accepted, and answered by a reset */
    await_poll(fd, POLLHUP);
    say("SIGPIPE: %d", (int)handled);
    say_result("MSG_NOSIGNAL", send(fd, &byte, 1, MSG_NOSIGNAL));
    say("SIGPIPE: %d", (int)handled);
    say_result("send", send(fd, &byte, 1, 0));
    say_result("write", write(fd, &byte, 1));
    say_result("writev", writev(fd, &part, 1));
    say_result("sendmsg", sendmsg(fd, &message, 0));
    say_result("sendmsg, MSG_NOSIGNAL", sendmsg(fd, &message, MSG_NOSIGNAL));
    say_result("sendto", sendto(fd, &byte, 1, 0, NULL, 0));
    say("SIGPIPE: %d", (int)handled);
    MUST(-pthread_create(&thread, NULL, in_a_thread, &fd));
    pthread_join(thread, NULL);
    say("SIGPIPE: %d", (int)handled);
    signal(SIGPIPE, SIG_DFL);
    send(fd, &byte, 1, 0);
    say("not reached");
}

static void client(int fd)
{
    warm(fd, CLIENT);
    meet();
    close(fd);
    hear(); /* until the server is killed */
}

PAIR(server, client)
