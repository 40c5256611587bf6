/* sockets.c - socket families, and the way to somebody else's listener. */
#include <arpa/inet.h>
#include <linux/if_alg.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define SOCKET(name, family, type, protocol)                                                       \
    static int name(const char *arg)                                                               \
    {                                                                                              \
        (void)arg;                                                                                 \
        return RESULT(syscall(SYS_socket, (family), (type), (protocol)));                          \
    }

SOCKET(socket_unix, AF_UNIX, SOCK_STREAM, 0)
SOCKET(socket_tcp, AF_INET, SOCK_STREAM, 0)
SOCKET(socket_udp, AF_INET, SOCK_DGRAM, 0)
SOCKET(socket_tcp6, AF_INET6, SOCK_STREAM, 0)
SOCKET(socket_netlink, AF_NETLINK, SOCK_RAW, 0)
SOCKET(socket_netlink_high, AF_NETLINK | HIGH, SOCK_RAW, 0)
SOCKET(socket_packet, AF_PACKET, SOCK_RAW, 0)
SOCKET(socket_raw, AF_INET, SOCK_RAW, IPPROTO_ICMP)
SOCKET(socket_raw_high, AF_INET, SOCK_RAW | HIGH, IPPROTO_ICMP)
SOCKET(socket_ping, AF_INET, SOCK_DGRAM, IPPROTO_ICMP)
SOCKET(socket_alg, AF_ALG, SOCK_SEQPACKET, 0)
SOCKET(socket_vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(socket_key, AF_KEY, SOCK_RAW, 2)
SOCKET(socket_xdp, AF_XDP, SOCK_RAW, 0)
SOCKET(socket_rxrpc, AF_RXRPC, SOCK_DGRAM, AF_INET)
SOCKET(socket_sctp, AF_INET, SOCK_STREAM, IPPROTO_SCTP)
SOCKET(socket_mptcp, AF_INET, SOCK_STREAM, IPPROTO_MPTCP)
SOCKET(socket_mptcp_high, AF_INET, SOCK_STREAM, IPPROTO_MPTCP | HIGH)
SOCKET(socket_tipc, AF_TIPC, SOCK_RDM, 0)
SOCKET(socket_bluetooth, AF_BLUETOOTH, SOCK_RAW, 0)
SOCKET(socket_can, AF_CAN, SOCK_RAW, 1)

static int tcp_ulp(unsigned long high)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return errno;
    return RESULT(syscall(SYS_setsockopt, fd, IPPROTO_TCP | high, TCP_ULP | high, "tls", 4UL));
}
static int setsockopt_ulp(const char *arg)
{
    return (void)arg, tcp_ulp(0);
}
static int setsockopt_ulp_high(const char *arg)
{
    return (void)arg, tcp_ulp(HIGH);
}

static int connect_tcp(const char *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)strtoul(arg, NULL, 10)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? errno : RESULT(connect(fd, (struct sockaddr *)&address, sizeof address));
}

/* An address outside: without a network there is no way to it, whoever listens. */
static int connect_outside(const char *arg)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
    (void)arg;
    inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return fd < 0 ? errno : RESULT(connect(fd, (struct sockaddr *)&address, sizeof address));
}

static int connect_local(const char *name, size_t offset)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    memcpy(address.sun_path + offset, name, len);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? errno
                  : RESULT(connect(fd, (struct sockaddr *)&address,
                                   offsetof(struct sockaddr_un, sun_path) + offset + len));
}
static int connect_abstract(const char *arg)
{
    return connect_local(arg, 1);
}
static int connect_unix(const char *arg)
{
    return connect_local(arg, 0);
}

const struct attempt SOCKETS[] = {
    {"socket_unix", socket_unix},
    {"socket_tcp", socket_tcp},
    {"socket_udp", socket_udp},
    {"socket_tcp6", socket_tcp6},
    {"socket_netlink", socket_netlink},
    {"socket_netlink_high", socket_netlink_high},
    {"socket_packet", socket_packet},
    {"socket_raw", socket_raw},
    {"socket_raw_high", socket_raw_high},
    {"socket_ping", socket_ping},
    {"socket_alg", socket_alg},
    {"socket_vsock", socket_vsock},
    {"socket_key", socket_key},
    {"socket_xdp", socket_xdp},
    {"socket_rxrpc", socket_rxrpc},
    {"socket_sctp", socket_sctp},
    {"socket_mptcp", socket_mptcp},
    {"socket_mptcp_high", socket_mptcp_high},
    {"socket_tipc", socket_tipc},
    {"socket_bluetooth", socket_bluetooth},
    {"socket_can", socket_can},
    {"setsockopt_ulp", setsockopt_ulp},
    {"setsockopt_ulp_high", setsockopt_ulp_high},
    {"connect_tcp", connect_tcp},
    {"connect_outside", connect_outside},
    {"connect_abstract", connect_abstract},
    {"connect_unix", connect_unix},
    {NULL, NULL},
};
