/* Privilege separation as sshd has it: a child with a system call filter of its own, which kills for everything that
 * the program does not do itself, talks first; when it is gone, its parent goes on. */
#include "program.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#define ALLOW(name)                                                                                                    \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void confine(int by_syscall)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read), ALLOW(write), ALLOW(sendto), ALLOW(recvfrom), ALLOW(poll), ALLOW(close), ALLOW(exit_group),
        ALLOW(getpid), ALLOW(rt_sigprocmask), ALLOW(clock_gettime), ALLOW(prctl), ALLOW(rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_syscall)
        MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
    else
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void server(int listener)
{
    for (int round = 0; round < 2; round++) {
        int status, fd = accept_one(listener);
        if (!MUST(fork())) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            close(listener);
            confine(round);
            MUST(poll(&p, 1, -1));
            ping_pong(fd, SERVER, 100);
            close(fd);
            _exit(0);
        }
        MUST(wait(&status));
        say("child: %d", status);
        ping_pong(fd, SERVER, 2000);
        close(fd);
    }
}

static void client(int port)
{
    for (int round = 0; round < 2; round++) {
        int fd = connect_to(port);
        ping_pong(fd, CLIENT, 100);
        ping_pong(fd, CLIENT, 2000);
        close(fd);
    }
    say("all served");
}

ROLES(server, client)
