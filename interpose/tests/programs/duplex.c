/* One reader and one writer thread at each end, all at full speed. */
#include "program.h"

enum { BYTES = 48 << 20 };

static int stream;

static void *writing(void *seed)
{
    stage("duplex");
    send_pattern(stream, *(unsigned *)seed, BYTES);
    MUST(shutdown(stream, SHUT_WR));
    return NULL;
}

static void either(int fd, unsigned out, unsigned in)
{
    pthread_t writer;
    stream = fd;
    MUST(-pthread_create(&writer, NULL, writing, &out));
    size_t got = recv_pattern(fd, in, (size_t)BYTES + 1);
    pthread_join(writer, NULL);
    say("received: %zu", got);
    meet();
}

static void server(int fd)
{
    warm(fd, SERVER);
    either(fd, 1, 2);
}

static void client(int fd)
{
    warm(fd, CLIENT);
    either(fd, 2, 1);
}

PAIR(server, client)
