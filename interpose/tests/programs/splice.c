/* splice from a pipe to the stream and from the stream to a pipe; tee and vmsplice beside it; ESPIPE and EINVAL. */
#include "program.h"

enum { BYTES = 1 << 20 };

static void client(int fd)
{
    static char bytes[40000];
    int ends[2];
    loff_t offset = 0;
    MUST(pipe(ends));
    warm(fd, CLIENT);
    for (size_t done = 0; done < BYTES;) {
        size_t size = 1 + mix(done) % sizeof bytes;
        if (size > BYTES - done)
            size = BYTES - done;
        fill(1, done, bytes, size);
        struct iovec part = {bytes, size};
        /* Gifts of pages are not made: the buffer is used again. */
        if (mix(done) % 2)
            size = MUST(write(ends[1], bytes, size));
        else
            size = MUST(vmsplice(ends[1], &part, 1, 0));
        for (size_t moved = 0; moved < size;)
            moved += MUST(splice(ends[0], NULL, fd, NULL, size - moved, SPLICE_F_MOVE));
        done += size;
        hear(); /* pages that were spliced are the buffer itself until they were read */
    }
    send_all(fd, "tail", 4);
    say_result("with an offset", splice(ends[0], NULL, fd, &offset, 10, 0));
    say_result("no pipe", splice(fd, NULL, fd, NULL, 10, 0));
    say_result("from an empty pipe", splice(ends[0], NULL, fd, NULL, 10, SPLICE_F_NONBLOCK));
    say_result("tee", tee(fd, ends[1], 10, 0));
    meet();
    /* The other way round: what the peer sends, by way of a pipe. */
    size_t total = 0;
    for (;;) {
        long moved = MUST(splice(fd, NULL, ends[1], NULL, 30000, 0));
        if (!moved)
            break;
        for (long got; moved; moved -= got, total += got) {
            got = MUST(read(ends[0], bytes, moved < (long)sizeof bytes ? moved : (long)sizeof bytes));
            if (!intact(2, total, bytes, got))
                die("bytes");
        }
    }
    say("by splice: %zu", total);
    say_result("at the end", splice(fd, NULL, ends[1], NULL, 10, 0));
    meet();
}

static void server(int fd)
{
    char bytes[40000];
    int ends[2];
    warm(fd, SERVER);
    for (size_t done = 0; done < BYTES;) {
        /* As much as the peer moves in one go: a pipe holds 64 KiB, so all of it. */
        size_t size = 1 + mix(done) % sizeof bytes;
        if (size > BYTES - done)
            size = BYTES - done;
        if (recv_all(fd, bytes, size) != size || !intact(1, done, bytes, size))
            die("bytes");
        done += size;
        tell();
    }
    recv_all(fd, bytes, 4);
    say("came: %.4s", bytes);
    MUST(pipe(ends));
    set_nonblocking(fd); /* SPLICE_F_NONBLOCK is about the pipe */
    say_result("nothing there", splice(fd, NULL, ends[1], NULL, 10, 0));
    set_blocking(fd);
    meet();
    send_pattern(fd, 2, BYTES);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

PAIR(server, client)
