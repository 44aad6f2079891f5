/* Options that a stream may have and stay on the wire: each is set, read back, and the bytes go on. */
#include "options.h"

static const struct option options[] = {
    {SOL_SOCKET, 1, "SO_DEBUG", 0, 4, 0},
    {SOL_SOCKET, 2, "SO_REUSEADDR", 1, 4, 0},
    {SOL_SOCKET, 3, "SO_TYPE", 0, 4, 0},
    {SOL_SOCKET, 4, "SO_ERROR", 0, 4, 0},
    {SOL_SOCKET, 5, "SO_DONTROUTE", 1, 4, 0},
    {SOL_SOCKET, 6, "SO_BROADCAST", 1, 4, 0},
    {SOL_SOCKET, 7, "SO_SNDBUF", 100000, 4, 1},
    {SOL_SOCKET, 8, "SO_RCVBUF", 100000, 4, 1},
    {SOL_SOCKET, 9, "SO_KEEPALIVE", 1, 4, 0},
    {SOL_SOCKET, 10, "SO_OOBINLINE", 0, 4, 0},
    {SOL_SOCKET, 11, "SO_NO_CHECK", 1, 4, 0},
    {SOL_SOCKET, 12, "SO_PRIORITY", 3, 4, 0},
    {SOL_SOCKET, 13, "SO_LINGER", 0, 8, 0},
    {SOL_SOCKET, 14, "SO_BSDCOMPAT", 1, 4, 0},
    {SOL_SOCKET, 15, "SO_REUSEPORT", 1, 4, 0},
    {SOL_SOCKET, 16, "SO_PASSCRED", 1, 4, 0},
    {SOL_SOCKET, 17, "SO_PEERCRED", 0, 4, 0},
    {SOL_SOCKET, 18, "SO_RCVLOWAT", 1, 4, 0},
    {SOL_SOCKET, 19, "SO_SNDLOWAT", 1, 4, 0},
    {SOL_SOCKET, 20, "SO_RCVTIMEO", 100, 16, 0},
    {SOL_SOCKET, 21, "SO_SNDTIMEO", 100, 16, 0},
    {SOL_SOCKET, 22, "SO_SECURITY_AUTHENTICATION", 1, 4, 0},
    {SOL_SOCKET, 23, "SO_SECURITY_ENCRYPTION_TRANSPORT", 1, 4, 0},
    {SOL_SOCKET, 24, "SO_SECURITY_ENCRYPTION_NETWORK", 1, 4, 0},
    {SOL_SOCKET, 25, "SO_BINDTODEVICE", 0x6f6c, 4, 0}, /* "lo" */
    {SOL_SOCKET, 27, "SO_DETACH_FILTER", 0, 4, 0},
    {SOL_SOCKET, 28, "SO_PEERNAME", 0, 4, 1},
    {SOL_SOCKET, 30, "SO_ACCEPTCONN", 0, 4, 0},
    {SOL_SOCKET, 31, "SO_PEERSEC", 0, 4, 1},
    {SOL_SOCKET, 32, "SO_SNDBUFFORCE", 120000, 4, 1},
    {SOL_SOCKET, 33, "SO_RCVBUFFORCE", 120000, 4, 1},
    {SOL_SOCKET, 34, "SO_PASSSEC", 1, 4, 0},
    {SOL_SOCKET, 36, "SO_MARK", 0, 4, 0},
    {SOL_SOCKET, 38, "SO_PROTOCOL", 0, 4, 0},
    {SOL_SOCKET, 39, "SO_DOMAIN", 0, 4, 0},
    {SOL_SOCKET, 40, "SO_RXQ_OVFL", 1, 4, 0},
    {SOL_SOCKET, 41, "SO_WIFI_STATUS", 1, 4, 0},
    {SOL_SOCKET, 42, "SO_PEEK_OFF", -1, 4, 0},
    {SOL_SOCKET, 43, "SO_NOFCS", 1, 4, 0},
    {SOL_SOCKET, 44, "SO_LOCK_FILTER", 1, 4, 0},
    {SOL_SOCKET, 45, "SO_SELECT_ERR_QUEUE", 1, 4, 0},
    {SOL_SOCKET, 46, "SO_BUSY_POLL", 0, 4, 0},
    {SOL_SOCKET, 47, "SO_MAX_PACING_RATE", -1, 8, 0},
    {SOL_SOCKET, 48, "SO_BPF_EXTENSIONS", 0, 4, 0},
    {SOL_SOCKET, 49, "SO_INCOMING_CPU", 0, 4, 1},
    {SOL_SOCKET, 53, "SO_CNX_ADVICE", 1, 4, 0},
    {SOL_SOCKET, 54, "SCM_TIMESTAMPING_OPT_STATS", 1, 4, 0},
    {SOL_SOCKET, 55, "SO_MEMINFO", 0, 4, 1},
    {SOL_SOCKET, 56, "SO_INCOMING_NAPI_ID", 0, 4, 1},
    {SOL_SOCKET, 57, "SO_COOKIE", 0, 4, 1},
    {SOL_SOCKET, 58, "SCM_TIMESTAMPING_PKTINFO", 1, 4, 0},
    {SOL_SOCKET, 59, "SO_PEERGROUPS", 0, 4, 0},
    {SOL_SOCKET, 62, "SO_BINDTOIFINDEX", 0, 4, 0},
    {SOL_SOCKET, 66, "SO_RCVTIMEO_NEW", 100, 16, 0},
    {SOL_SOCKET, 67, "SO_SNDTIMEO_NEW", 100, 16, 0},
    {SOL_SOCKET, 68, "SO_DETACH_REUSEPORT_BPF", 0, 4, 0},
    {SOL_SOCKET, 69, "SO_PREFER_BUSY_POLL", 1, 4, 0},
    {SOL_SOCKET, 70, "SO_BUSY_POLL_BUDGET", 8, 4, 0},
    {SOL_SOCKET, 71, "SO_NETNS_COOKIE", 0, 4, 1},
    {SOL_SOCKET, 72, "SO_BUF_LOCK", 3, 4, 0},
    {SOL_SOCKET, 73, "SO_RESERVE_MEM", 0, 4, 0},
    {SOL_SOCKET, 74, "SO_TXREHASH", 1, 4, 0},
    {SOL_SOCKET, 75, "SO_RCVMARK", 1, 4, 0},
    {SOL_SOCKET, 76, "SO_PASSPIDFD", 1, 4, 0},
    {SOL_SOCKET, 77, "SO_PEERPIDFD", 0, 4, 0},
    {SOL_SOCKET, 78, "SO_DEVMEM_LINEAR", 0, 4, 0},
    {SOL_SOCKET, 79, "SO_DEVMEM_DMABUF", 0, 4, 0},
    {SOL_SOCKET, 80, "SO_DEVMEM_DONTNEED", 0, 4, 0},
    {SOL_SOCKET, 82, "SO_RCVPRIORITY", 1, 4, 0},
    {SOL_SOCKET, 83, "SO_PASSRIGHTS", 1, 4, 0},
    {IPPROTO_TCP, 1, "TCP_NODELAY", 1, 4, 0},
    {IPPROTO_TCP, 2, "TCP_MAXSEG", 1000, 4, 0},
    {IPPROTO_TCP, 4, "TCP_KEEPIDLE", 77, 4, 0},
    {IPPROTO_TCP, 5, "TCP_KEEPINTVL", 77, 4, 0},
    {IPPROTO_TCP, 6, "TCP_KEEPCNT", 7, 4, 0},
    {IPPROTO_TCP, 7, "TCP_SYNCNT", 3, 4, 0},
    {IPPROTO_TCP, 8, "TCP_LINGER2", 30, 4, 0},
    {IPPROTO_TCP, 9, "TCP_DEFER_ACCEPT", 1, 4, 0},
    {IPPROTO_TCP, 10, "TCP_WINDOW_CLAMP", 50000, 4, 1},
    {IPPROTO_TCP, 11, "TCP_INFO", 0, 4, 1},
    {IPPROTO_TCP, 12, "TCP_QUICKACK", 1, 4, 1},
    {IPPROTO_TCP, 13, "TCP_CONGESTION", 0x6f6e6572, 4, 0}, /* "reno" */
    {IPPROTO_TCP, 16, "TCP_THIN_LINEAR_TIMEOUTS", 1, 4, 0},
    {IPPROTO_TCP, 17, "TCP_THIN_DUPACK", 1, 4, 0},
    {IPPROTO_TCP, 18, "TCP_USER_TIMEOUT", 30000, 4, 0},
    {IPPROTO_TCP, 19, "TCP_REPAIR", 0, 4, 0},
    {IPPROTO_TCP, 20, "TCP_REPAIR_QUEUE", 1, 4, 0},
    {IPPROTO_TCP, 21, "TCP_QUEUE_SEQ", 1, 4, 0},
    {IPPROTO_TCP, 22, "TCP_REPAIR_OPTIONS", 1, 4, 0},
    {IPPROTO_TCP, 23, "TCP_FASTOPEN", 1, 4, 0},
    {IPPROTO_TCP, 24, "TCP_TIMESTAMP", 1, 4, 1},
    {IPPROTO_TCP, 25, "TCP_NOTSENT_LOWAT", 100000, 4, 0},
    {IPPROTO_TCP, 26, "TCP_CC_INFO", 0, 4, 1},
    {IPPROTO_TCP, 27, "TCP_SAVE_SYN", 1, 4, 0},
    {IPPROTO_TCP, 28, "TCP_SAVED_SYN", 0, 4, 0},
    {IPPROTO_TCP, 29, "TCP_REPAIR_WINDOW", 1, 4, 0},
    {IPPROTO_TCP, 33, "TCP_FASTOPEN_KEY", 1, 4, 0},
    {IPPROTO_TCP, 34, "TCP_FASTOPEN_NO_COOKIE", 1, 4, 0},
    {IPPROTO_TCP, 39, "TCP_AO_DEL_KEY", 1, 4, 0},
    {IPPROTO_TCP, 41, "TCP_AO_GET_KEYS", 0, 4, 0},
    {IPPROTO_TCP, 42, "TCP_AO_REPAIR", 1, 4, 0},
    {IPPROTO_TCP, 43, "TCP_IS_MPTCP", 0, 4, 0},
    {IPPROTO_TCP, 44, "TCP_RTO_MAX_MS", 60000, 4, 0},
    {IPPROTO_TCP, 45, "TCP_RTO_MIN_US", 100000, 4, 0},
    {IPPROTO_TCP, 46, "TCP_DELACK_MAX_US", 100000, 4, 0},
    {IPPROTO_IP, IP_TOS, "IP_TOS", 8, 4, 0},
    {IPPROTO_IP, IP_TTL, "IP_TTL", 50, 4, 0},
    {IPPROTO_IP, IP_RECVERR, "IP_RECVERR", 1, 4, 0},
    {IPPROTO_IP, IP_MTU_DISCOVER, "IP_MTU_DISCOVER", IP_PMTUDISC_DO, 4, 0},
    {IPPROTO_IP, IP_PKTINFO, "IP_PKTINFO", 1, 4, 0},
    {IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY", 1, 4, 0},
    {IPPROTO_TCP, 9999, "no such option", 1, 4, 0},
    /* Last, since they make TCP slow. */
    {IPPROTO_TCP, 3, "TCP_CORK", 1, 4, 0},
};

static void both(int fd, enum side side)
{
    warm(fd, side);
    meet();
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].number == 3 && options[i].level == IPPROTO_TCP) {
            say_result("TCP_CORK", set_option(fd, &options[i], 1));
            ping_pong(fd, side, 2);
            say_option("set", fd, &options[i]);
            say_result("uncorked", set_option(fd, &options[i], 0));
        } else {
            try_option(fd, side, &options[i]);
        }
    }
    stage("ioctl");
    int value = getpid(), owner = 0, unsent = -1;
    say_result("SIOCSPGRP", ioctl(fd, SIOCSPGRP, &value));
    say_result("SIOCGPGRP", ioctl(fd, SIOCGPGRP, &owner));
    say_yes("owner", owner == value);
    ping_pong(fd, side, 10);
    meet();
    say_result("SIOCOUTQNSD", ioctl(fd, SIOCOUTQNSD, &unsent));
    say("unsent: %d", unsent);
    stage("at the end");
    ping_pong(fd, side, 50);
    meet();
}

static void server(int fd) { both(fd, SERVER); }
static void client(int fd) { both(fd, CLIENT); }
PAIR(server, client)
