/* The byte-exact stream, with a blocking thread for each direction. */
#include "bulk.h"

static int stream;

static void *sending(void *argument)
{
    struct bulk *out = argument;
    while (out->done < out->total)
        bulk_step(bulk_send(stream, out), "send");
    return NULL;
}

static void either(int fd, unsigned out_seed, unsigned in_seed)
{
    struct bulk out = bulk_new(out_seed), in = bulk_new(in_seed);
    pthread_t thread;
    stage("bulk");
    stream = fd;
    MUST(-pthread_create(&thread, NULL, sending, &out));
    while (in.done < in.total)
        bulk_step(bulk_recv(fd, &in), "recv");
    pthread_join(thread, NULL);
    bulk_end(fd, &in);
}

static void server(int fd) { either(fd, 1, 2); }
static void client(int fd) { either(fd, 2, 1); }
PAIR(server, client)
