/* What files have and sockets do not: pread, pwrite, lseek, truncate, mmap, fsync, and names with `at`. */
#include "program.h"
#include <sys/mman.h>
#include <sys/stat.h>

static void either(int fd, enum side side)
{
    char bytes[10] = "";
    struct iovec part = {bytes, sizeof bytes};
    struct stat status;
    int file = MUST(open("/dev/null", O_RDWR)), kind = 0;
    socklen_t length = sizeof kind;
    warm(fd, side);
    meet();
    say_result("pread", pread(fd, bytes, 10, 0));
    say_result("pwrite", pwrite(fd, bytes, 10, 0));
    say_result("preadv", preadv(fd, &part, 1, 0));
    say_result("pwritev", pwritev(fd, &part, 1, 0));
    say_result("preadv2, offset", preadv2(fd, &part, 1, 0, 0));
    say_result("pwritev2, offset", pwritev2(fd, &part, 1, 0, 0));
    say_result("preadv2, nothing there", preadv2(fd, &part, 1, -1, RWF_NOWAIT));
    say_result("lseek", lseek(fd, 0, SEEK_CUR));
    say_result("ftruncate", ftruncate(fd, 0));
    say_result("fsync", fsync(fd));
    say_yes("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
    say_result("copy_file_range", copy_file_range(fd, NULL, file, NULL, 10, 0));
    MUST(fstat(fd, &status));
    say_yes("a socket", S_ISSOCK(status.st_mode));
    MUST(getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length));
    say_yes("of streams", kind == SOCK_STREAM);
    say_result("isatty", isatty(fd));
    say_result("listen", listen(fd, 1));
    say_result("accept", accept(fd, NULL, NULL));
    struct sockaddr_in address = loopback(1);
    say_result("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
    say_result("bind", bind(fd, (struct sockaddr *)&address, sizeof address));
    say_result("sendto with an address", sendto(fd, bytes, 0, 0, (struct sockaddr *)&address, sizeof address));
    say_result("recv, MSG_OOB", recv(fd, bytes, 1, MSG_OOB));
    say_result("recv, MSG_ERRQUEUE", recv(fd, bytes, 1, MSG_ERRQUEUE));
    meet();
    /* preadv2 and pwritev2 with the offset -1 are readv and writev. */
    if (side == CLIENT) {
        say_result("pwritev2", pwritev2(fd, &part, 1, -1, 0));
    } else {
        await_bytes(fd, 10);
        say_result("preadv2", preadv2(fd, &part, 1, -1, 0));
    }
    /* recvfrom fills in no address on a connected stream. */
    length = sizeof address;
    meet();
    if (side == CLIENT) {
        send_all(fd, bytes, 10);
    } else {
        say_result("recvfrom", recvfrom(fd, bytes, 10, 0, (struct sockaddr *)&address, &length));
        say("length of its address: %d", (int)length);
    }
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
