/* How a program gets its role, its connection and its turn. Included by program.h. */

static int turns = -1;         /* the Unix socket to the other role */
static const char *own_path;   /* argv[0], for cases that start themselves again */

/* ---- connections ---- */

FN struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A listening socket on a free port of 127.0.0.1. */
FN int listen_any(int *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    int listener = MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(listener, (struct sockaddr *)&address, sizeof address));
    MUST(listen(listener, 512));
    MUST(getsockname(listener, (struct sockaddr *)&address, &length));
    *port = ntohs(address.sin_port);
    return listener;
}

FN int accept_one(int listener) { return MUST(accept(listener, NULL, NULL)); }

FN int connect_to(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(connect(fd, (struct sockaddr *)&address, sizeof address));
    return fd;
}

/* The same, and enough traffic for the stream to have been moved. */
FN int accept_warm(int listener)
{
    int fd = accept_one(listener);
    warm(fd, SERVER);
    return fd;
}

FN int connect_warm(int port)
{
    int fd = connect_to(port);
    warm(fd, CLIENT);
    return fd;
}

FN void set_nonblocking(int fd) { MUST(fcntl(fd, F_SETFL, MUST(fcntl(fd, F_GETFL)) | O_NONBLOCK)); }
FN void set_blocking(int fd) { MUST(fcntl(fd, F_SETFL, MUST(fcntl(fd, F_GETFL)) & ~O_NONBLOCK)); }

/* Written beside and renamed, so that whoever sees the file sees all of it. */
FN void publish_port(const char *portfile, int port)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", portfile);
    FILE *file = fopen(beside, "w");
    if (!file || fprintf(file, "%d\n", port) < 0 || fclose(file) || rename(beside, portfile))
        die("publish_port");
}

/* ---- turns ---- */

FN socklen_t turns_address(struct sockaddr_un *address, int port)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int length = sprintf(address->sun_path + 1, "conformance-%d", port);
    return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

FN int turns_listen(int port)
{
    struct sockaddr_un address;
    socklen_t length = turns_address(&address, port);
    int listener = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    MUST(bind(listener, (struct sockaddr *)&address, length));
    MUST(listen(listener, 16));
    return listener;
}

FN int turns_connect(int port)
{
    struct sockaddr_un address;
    socklen_t length = turns_address(&address, port);
    int fd = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    MUST(connect(fd, (struct sockaddr *)&address, length));
    return fd;
}

/* Lets the other role take its next step. */
FN void tell(void) { (void)!send(turns, "", 1, MSG_NOSIGNAL); }

/* Waits for the other role's `tell`, or for its end. 1 if it was told something. */
FN int hear(void)
{
    char byte;
    long got;
    while ((got = read(turns, &byte, 1)) < 0 && errno == EINTR)
        ;
    return got == 1;
}

/* Both roles are at the same step. */
FN void meet(void)
{
    tell();
    hear();
}

/* Turns between the processes of one role, over a pipe. */
FN void pass_turn(int pipe_end) { MUST(write(pipe_end, "x", 1)); }
FN void await_turn(int pipe_end) { MUST(read(pipe_end, (char[1]){0}, 1)); }

/* ---- roles ---- */

/* A case that wants the listening socket itself, or several connections. */
struct roles {
    void (*server)(int listener);
    void (*client)(int port);
    void (*self)(void);
    void (*paired_server)(int fd);
    void (*paired_client)(int fd);
};

FN int run_role(int argc, char **argv, struct roles roles)
{
    own_path = argv[0];
    watchdog();
    if (argc == 3 && !strcmp(argv[1], "server")) {
        int port, listener = listen_any(&port), turns_listener = turns_listen(port);
        publish_port(argv[2], port);
        stage("accept");
        if (roles.paired_server) {
            int fd = accept_one(listener);
            turns = MUST(accept4(turns_listener, NULL, NULL, SOCK_CLOEXEC));
            close(turns_listener);
            close(listener);
            stage("server");
            roles.paired_server(fd);
        } else {
            turns = MUST(accept4(turns_listener, NULL, NULL, SOCK_CLOEXEC));
            close(turns_listener);
            stage("server");
            roles.server(listener);
        }
    } else if (argc == 3 && !strcmp(argv[1], "client")) {
        int port = atoi(argv[2]);
        if (roles.paired_client) {
            int fd = connect_to(port);
            turns = turns_connect(port);
            stage("client");
            roles.paired_client(fd);
        } else {
            turns = turns_connect(port);
            stage("client");
            roles.client(port);
        }
    } else if (argc == 2 && !strcmp(argv[1], "self") && roles.self) {
        stage("self");
        roles.self();
    } else {
        fprintf(stderr, "usage: %s server PORTFILE | client PORT | self\n", argv[0]);
        return 2;
    }
    return 0;
}

/* One connection: `server(fd)` has accepted it, `client(fd)` has made it. */
#define PAIR(server_, client_)                                                                                         \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        return run_role(argc, argv, (struct roles){.paired_server = server_, .paired_client = client_});               \
    }

/* The roles make their connections themselves: `server(listener)`, `client(port)`. */
#define ROLES(server_, client_)                                                                                        \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        return run_role(argc, argv, (struct roles){.server = server_, .client = client_});                             \
    }

/* One process for both ends. */
#define SELF(self_)                                                                                                    \
    int main(int argc, char **argv) { return run_role(argc, argv, (struct roles){.self = self_}); }
