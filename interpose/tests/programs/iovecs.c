/* 1 to 1024 pieces in one call, empty ones among them; too many are refused, with the error of each call. */
#include "program.h"

enum { BYTES = 65536 };

static const int counts[] = {1, 2, 3, 7, 64, 255, 1024};
static char bytes[BYTES];
static struct iovec parts[1100];
static volatile int minus_one = -1; /* which the compiler must not know */

/* `count` pieces over the buffer, of odd sizes, every fifth one empty; returns the sum. */
static size_t cut(int count, unsigned salt)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        size_t size = i % 5 == 4 ? 0 : 1 + mix(i + salt) % (BYTES / 1100 * 2);
        if (at + size > BYTES)
            size = BYTES - at;
        parts[i] = (struct iovec){bytes + at, size};
        at += size;
    }
    return at;
}

static void client(int fd)
{
    struct msghdr message = {.msg_iov = parts};
    warm(fd, CLIENT);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int way = 0; way < 2; way++) {
            size_t size = cut(counts[i], way);
            fill(i, 0, bytes, size);
            message.msg_iovlen = counts[i];
            long sent = way ? sendmsg(fd, &message, 0) : writev(fd, parts, counts[i]);
            say_yes(way ? "sendmsg" : "writev", sent == (long)size);
            hear();
        }
    }
    cut(1025, 0);
    message.msg_iovlen = 1025;
    say_result("writev of 1025", writev(fd, parts, 1025));
    say_result("sendmsg of 1025", sendmsg(fd, &message, 0));
    say_result("writev of -1", writev(fd, parts, minus_one));
    say_result("writev of 0", writev(fd, parts, 0));
    message.msg_iovlen = 0;
    say_result("sendmsg of 0", sendmsg(fd, &message, 0));
    parts[0].iov_len = (size_t)-1;
    say_result("writev, negative length", writev(fd, parts, 1));
    message.msg_iovlen = 1;
    say_result("sendmsg, negative length", sendmsg(fd, &message, 0));
    meet();
}

static void server(int fd)
{
    struct msghdr message = {.msg_iov = parts};
    warm(fd, SERVER);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int way = 0; way < 2; way++) {
            size_t left = cut(counts[i], way), at = 0;
            /* Other cuts than the sender's, and as many calls as it takes. */
            while (left) {
                size_t room = cut(counts[sizeof counts / sizeof *counts - 1 - i], 9);
                if (room > left) {
                    parts[0] = (struct iovec){bytes, left};
                    message.msg_iovlen = 1;
                } else {
                    message.msg_iovlen = counts[sizeof counts / sizeof *counts - 1 - i];
                }
                long got = way ? recvmsg(fd, &message, 0) : readv(fd, parts, message.msg_iovlen);
                if (got <= 0 || !intact(i, at, bytes, got))
                    die("bytes");
                at += got;
                left -= got;
            }
            tell();
        }
    }
    say("all came");
    message.msg_iovlen = 1025;
    say_result("readv of 1025", readv(fd, parts, 1025));
    say_result("recvmsg of 1025", recvmsg(fd, &message, MSG_DONTWAIT));
    say_result("readv of -1", readv(fd, parts, minus_one));
    say_result("readv of 0", readv(fd, parts, 0));
    say_result("nothing there", recv(fd, bytes, 1, MSG_DONTWAIT));
    meet();
}

PAIR(server, client)
