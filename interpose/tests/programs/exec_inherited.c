/* exec with the stream inherited, in the middle of a message both ways; several times, and at both ends. */
#include "program.h"

enum { TIMES = 4, HALF = 777 };

static const char *side_names[] = {"server", "client"};

/* Half a message was sent and read before the exec; here comes the other half. */
static void other_half(int fd, enum side side)
{
    char bytes[2 * HALF];
    fill(side, 0, bytes, sizeof bytes);
    send_all(fd, bytes + HALF, HALF);
    if (recv_all(fd, bytes, HALF) != HALF || !intact(!side, HALF, bytes, HALF))
        die("other half");
}

static void go_on(int fd, enum side side, int times)
{
    char bytes[HALF], numbers[3][16];
    warm(fd, side);
    if (times == TIMES) {
        say("went on %d times", times);
        meet();
        return;
    }
    fill(side, 0, bytes, sizeof bytes);
    send_all(fd, bytes, sizeof bytes);
    if (recv_all(fd, bytes, sizeof bytes) != sizeof bytes || !intact(!side, 0, bytes, sizeof bytes))
        die("first half");
    sprintf(numbers[0], "%d", fd);
    sprintf(numbers[1], "%d", turns);
    sprintf(numbers[2], "%d", times + 1);
    MUST(fcntl(turns, F_SETFD, 0));
    execl(own_path, own_path, "again", side_names[side], numbers[0], numbers[1], numbers[2], NULL);
    die("exec");
}

static void server(int fd) { go_on(fd, SERVER, 0); }
static void client(int fd) { go_on(fd, CLIENT, 0); }

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "again")) {
        enum side side = strcmp(argv[2], "server") ? CLIENT : SERVER;
        own_path = argv[0];
        watchdog();
        turns = atoi(argv[4]);
        other_half(atoi(argv[3]), side);
        go_on(atoi(argv[3]), side, atoi(argv[5]));
        return 0;
    }
    return run_role(argc, argv, (struct roles){.paired_server = server, .paired_client = client});
}
