/*
 * probe_net.c - a fresh network namespace as libnl sees it: only the loopback interface, and that
 * can be brought up.
 *
 * libnl-route is loaded here and nowhere else. Its few functions are declared by hand, so that
 * hutch builds without its headers; the types are never looked into.
 */
#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/dl.h"
#include "kernel/probe.h"

struct nl_sock;
struct nl_cache;
struct nl_object;
struct rtnl_link;

struct libnl {
    struct nl_sock *(*socket_alloc)(void);
    void (*socket_free)(struct nl_sock *);
    int (*connect)(struct nl_sock *, int protocol);
    int (*link_alloc_cache)(struct nl_sock *, int family, struct nl_cache **);
    void (*cache_free)(struct nl_cache *);
    struct nl_object *(*first)(struct nl_cache *);
    struct nl_object *(*next)(struct nl_object *);
    struct rtnl_link *(*link_alloc)(void);
    void (*link_put)(struct rtnl_link *);
    char *(*link_name)(struct rtnl_link *);
    unsigned (*link_flags)(struct rtnl_link *);
    void (*link_set_flags)(struct rtnl_link *, unsigned);
    int (*link_change)(struct nl_sock *, struct rtnl_link *, struct rtnl_link *, int flags);
};

static int load(struct libnl *nl, void **ret_handle, struct hutch_error *err)
{
    const struct dl_symbol symbols[] = {
        {"nl_socket_alloc", &nl->socket_alloc},
        {"nl_socket_free", &nl->socket_free},
        {"nl_connect", &nl->connect},
        {"rtnl_link_alloc_cache", &nl->link_alloc_cache},
        {"nl_cache_free", &nl->cache_free},
        {"nl_cache_get_first", &nl->first},
        {"nl_cache_get_next", &nl->next},
        {"rtnl_link_alloc", &nl->link_alloc},
        {"rtnl_link_put", &nl->link_put},
        {"rtnl_link_get_name", &nl->link_name},
        {"rtnl_link_get_flags", &nl->link_flags},
        {"rtnl_link_set_flags", &nl->link_set_flags},
        {"rtnl_link_change", &nl->link_change},
    };

    return dl_open("libnl-route-3.so.200", "libnl-route-3-200", symbols, ARRAY_LEN(symbols),
                   HUTCH_STAGE_HOST, ret_handle, err);
}

struct look {
    const struct libnl *nl;
    struct probe_net net;
};

/* libnl has error numbers of its own; the kernel's last errno says more than they do. */
static int failed(struct look *look, const char *doing)
{
    look->net.doing = doing;
    look->net.error = errno != 0 ? errno : EIO;
    return -1;
}

/* A cache entry is an rtnl_link: libnl's own callers cast in the same way. */
static struct rtnl_link *as_link(struct nl_object *object)
{
    return (struct rtnl_link *)(void *)object;
}

static int list_links(struct look *look, struct nl_sock *socket, struct rtnl_link **ret_loopback,
                      struct nl_cache **ret_cache)
{
    const struct libnl *nl = look->nl;
    size_t len = 0;

    if (nl->link_alloc_cache(socket, AF_UNSPEC, ret_cache) < 0)
        return failed(look, "list its interfaces");
    for (struct nl_object *at = nl->first(*ret_cache); at != NULL; at = nl->next(at)) {
        const char *name = nl->link_name(as_link(at));
        unsigned flags = nl->link_flags(as_link(at));
        if (name != NULL && strcmp(name, "lo") == 0)
            *ret_loopback = as_link(at);
        else if (name != NULL && (flags & IFF_UP) && len < sizeof(look->net.others))
            len += (size_t)snprintf(look->net.others + len, sizeof(look->net.others) - len, "%s%s",
                                    len > 0 ? " " : "", name);
    }
    look->net.has_loopback = *ret_loopback != NULL;
    return 0;
}

static int raise_loopback(struct look *look, struct nl_sock *socket, struct rtnl_link *loopback)
{
    struct rtnl_link *change = look->nl->link_alloc();
    int r = -1;

    if (change != NULL) {
        look->nl->link_set_flags(change, IFF_UP);
        r = look->nl->link_change(socket, loopback, change, 0);
        look->nl->link_put(change);
    }
    if (r < 0)
        return failed(look, "bring lo up");
    look->net.loopback_up = true;
    return 0;
}

/* In the child: its network namespace is fresh. */
static void look_at_links(void *arg)
{
    struct look *look = arg;
    struct nl_sock *socket = look->nl->socket_alloc();
    struct rtnl_link *loopback = NULL;
    struct nl_cache *cache = NULL;

    errno = 0;
    look->net.error = 0;
    if (socket == NULL || look->nl->connect(socket, NETLINK_ROUTE) < 0)
        (void)failed(look, "open a netlink socket");
    else if (list_links(look, socket, &loopback, &cache) == 0 && loopback != NULL)
        (void)raise_loopback(look, socket, loopback);
    if (cache != NULL)
        look->nl->cache_free(cache);
    if (socket != NULL)
        look->nl->socket_free(socket);
}

void probe_network(struct probe_net *ret_net)
{
    struct hutch_error err;
    struct libnl nl;
    void *handle = NULL;
    struct look *look;

    *ret_net = (struct probe_net){.error = PROBE_NOT_TRIED};
    if (load(&nl, &handle, &err) < 0) {
        (void)snprintf(ret_net->library, sizeof(ret_net->library), "%.*s", FINDING_TEXT - 1,
                       err.message);
        return;
    }
    look = mmap(NULL, sizeof(*look), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (look != MAP_FAILED) {
        *look = (struct look){.nl = &nl, .net = *ret_net};
        if (probe_child(CLONE_NEWUSER | CLONE_NEWNET, look_at_links, look) == 0)
            *ret_net = look->net;
        (void)munmap(look, sizeof(*look));
    }
    dl_close(handle);
}
