/* sendmmsg and recvmmsg: several messages in one call, flags, time limit, and the lengths that are filled in. */
#include "program.h"

enum { MESSAGES = 8, SIZE = 50 };

static char bytes[MESSAGES][SIZE];
static struct iovec parts[MESSAGES];
static struct mmsghdr messages[MESSAGES];

static void prepare(void)
{
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < MESSAGES; i++) {
        parts[i] = (struct iovec){bytes[i], SIZE};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
}

static void client(int fd)
{
    warm(fd, CLIENT);
    for (int round = 0; round < 50; round++) {
        prepare();
        for (int i = 0; i < MESSAGES; i++)
            fill(1, i * SIZE, bytes[i], SIZE);
        int count = sendmmsg(fd, messages, MESSAGES, 0);
        unsigned total = 0;
        for (int i = 0; i < count; i++)
            total += messages[i].msg_len;
        if (round == 0)
            say("sendmmsg: %d, %u bytes", count, total);
        hear();
    }
    say_result("sendmmsg of none", sendmmsg(fd, messages, 0, 0));
    say_result("sendmmsg, bad pointer", sendmmsg(fd, (void *)16, 1, 0));
    MUST(shutdown(fd, SHUT_WR));
    say_result("sendmmsg, shut down", sendmmsg(fd, messages, MESSAGES, MSG_NOSIGNAL));
    meet();
}

static void server(int fd)
{
    struct timespec limit = {0, 50000000};
    warm(fd, SERVER);
    for (int round = 0; round < 50; round++) {
        prepare();
        await_bytes(fd, MESSAGES * SIZE);
        int count = recvmmsg(fd, messages, MESSAGES, 0, NULL);
        int whole = count == MESSAGES;
        for (int i = 0; i < count; i++)
            whole = whole && messages[i].msg_len == SIZE && intact(1, i * SIZE, bytes[i], SIZE);
        if (round == 0 || !whole)
            say("recvmmsg: %d, whole: %d", count, whole);
        if (round == 49) {
            say_result("recvmmsg, nothing there", recvmmsg(fd, messages, MESSAGES, MSG_DONTWAIT, NULL));
            say_result("with a limit", recvmmsg(fd, messages, MESSAGES, MSG_DONTWAIT, &limit));
        }
        tell();
    }
    await_poll(fd, POLLRDHUP);
    say_result("recvmmsg of none", recvmmsg(fd, messages, 0, 0, NULL));
    /* At the end each message is one of no bytes. */
    say_result("recvmmsg, wait for one, at the end", recvmmsg(fd, messages, 2, MSG_WAITFORONE, NULL));
    say("lengths: %u %u", messages[0].msg_len, messages[1].msg_len);
    meet();
}

PAIR(server, client)
