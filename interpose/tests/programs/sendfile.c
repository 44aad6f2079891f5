/* sendfile to the stream: with an offset and without, odd sizes, to the end of the file and beyond, and from a stream. */
#include "program.h"
#include <sys/mman.h>
#include <sys/sendfile.h>

enum { SIZE = 300007 };

static int make_file(void)
{
    static char bytes[SIZE];
    FILE *file = tmpfile();
    fill(1, 0, bytes, SIZE);
    if (!file || fwrite(bytes, 1, SIZE, file) != SIZE || fflush(file))
        die("tmpfile");
    return dup(fileno(file));
}

/* All of `count`, in as many calls as it takes. */
static size_t send_file_all(int fd, int file, off_t *offset, size_t count)
{
    size_t done = 0;
    for (long sent; done < count && (sent = MUST(sendfile(fd, file, offset, count - done))) > 0; done += sent)
        ;
    return done;
}

static void client(int fd)
{
    int file = make_file();
    static const size_t sizes[] = {1, 7, 100, 4095, 4096, 4097, 65537, 100003};
    off_t offset = 0;
    warm(fd, CLIENT);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t sent = send_file_all(fd, file, &offset, sizes[i]);
        say_yes("sent", sent == sizes[i]);
    }
    say("offset: %ld, position: %ld", (long)offset, (long)lseek(file, 0, SEEK_CUR));
    lseek(file, 0, SEEK_SET);
    offset = 5;
    say("with an offset: %zu", send_file_all(fd, file, &offset, 1000));
    say("without: %zu, position: %ld", send_file_all(fd, file, NULL, 1000), (long)lseek(file, 0, SEEK_CUR));
    say("to the end: %zu", send_file_all(fd, file, NULL, SIZE * 2));
    say_result("at the end", sendfile(fd, file, NULL, 100));
    offset = SIZE + 100;
    say_result("beyond the end", sendfile(fd, file, &offset, 100));
    say_result("nothing", sendfile(fd, file, NULL, 0));
    say_result("not a file", sendfile(fd, 1 << 20, NULL, 10));
    offset = 0;
    say_result("from a stream, with an offset", sendfile(file, fd, &offset, 10));
    say_result("bad offset", sendfile(fd, file, (off_t *)16, 10));
    hear(); /* what was sent is the file's own pages until it was read */
    /* Between other calls, in order. */
    for (int i = 0; i < 100; i++) {
        char bytes[10];
        fill(2, i * 20, bytes, 10);
        send_all(fd, bytes, 10);
        fill(2, i * 20 + 10, bytes, 10);
        MUST(pwrite(file, bytes, 10, 0));
        offset = 0;
        if (send_file_all(fd, file, &offset, 10) != 10)
            die("sendfile");
        hear();
    }
    MUST(shutdown(fd, SHUT_WR));
    say_result("shut down", (signal(SIGPIPE, SIG_IGN), offset = 0, sendfile(fd, file, &offset, 10)));
    meet();
}

static void server(int fd)
{
    static char bytes[SIZE];
    size_t total = 1 + 7 + 100 + 4095 + 4096 + 4097 + 65537 + 100003;
    warm(fd, SERVER);
    say_yes("in odd sizes", recv_pattern(fd, 1, total) == total);
    recv_all(fd, bytes, 1000);
    say_yes("with an offset", intact(1, 5, bytes, 1000));
    say_yes("from the start to the end", recv_pattern(fd, 1, SIZE) == SIZE);
    tell();
    for (int i = 0; i < 100; i++) {
        if (recv_all(fd, bytes, 20) != 20 || !intact(2, i * 20, bytes, 20))
            die("mixed");
        tell();
    }
    say("mixed");
    say_result("at the end", recv(fd, bytes, 1, 0));
    meet();
}

PAIR(server, client)
