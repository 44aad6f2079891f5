/* A seccomp filter refuses memfd_create, and sched_yield and membarrier too: plain TCP. */
#include "program.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#define REFUSE(number)                                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void refuse(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_memfd_create),
        REFUSE(SYS_membarrier),
        REFUSE(SYS_sched_yield),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    say_result("memfd_create", syscall(SYS_memfd_create, "", 0));
}

static void either(int fd, enum side side)
{
    refuse();
    warm(fd, side);
    say("works");
    meet();
}

static void server(int fd) { either(fd, SERVER); }
static void client(int fd) { either(fd, CLIENT); }
PAIR(server, client)
