/* test_sockets.c - socket families, and listeners of the host that must stay out of reach. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/host.h"
#include "support/probe.h"

TestSuite(sockets, .timeout = 120);

Test(sockets, families_types_and_protocols)
{
    expect_denied(LIST("socket_netlink", "#socket_packet", "#socket_raw", "socket_alg",
                       "socket_vsock", "socket_key", "#socket_xdp", "socket_rxrpc", "socket_sctp",
                       "socket_mptcp", "socket_tipc", "socket_bluetooth", "socket_can",
                       "socket_ping"),
                  NULL);
}

Test(sockets, ulp_of_a_tcp_socket)
{
    struct attempts outside = probe_outside(LIST("setsockopt_ulp"), false);
    struct attempts box = probe_in_box(LIST("setsockopt_ulp"), NULL);
    cr_assert(got_through(attempt_result(&outside, "setsockopt_ulp")));
    cr_assert_not(got_through(attempt_result(&box, "setsockopt_ulp")));
}

Test(sockets, a_server_on_the_hosts_loopback_is_not_reached)
{
    int port;
    int listener = listen_tcp(&port);
    const char *attempt = text_format("connect_tcp:%d", port);
    struct attempts outside = probe_outside(LIST(attempt), false);
    cr_assert_str_eq(attempt_result(&outside, attempt), "OK");
    cr_assert(listener_reached(listener));
    struct attempts box = probe_in_box(LIST(attempt), NULL);
    cr_assert_str_eq(attempt_result(&box, attempt), "ECONNREFUSED");
    cr_assert_not(listener_reached(listener));
    close(listener);
}

Test(sockets, a_hosts_abstract_socket_is_not_reached)
{
    const char *name = text_format("hutch-test-abstract-%d", getpid());
    int listener = listen_abstract(name);
    const char *attempt = text_format("connect_abstract:%s", name);
    struct attempts outside = probe_outside(LIST(attempt), false);
    cr_assert_str_eq(attempt_result(&outside, attempt), "OK");
    cr_assert(listener_reached(listener));
    struct attempts box = probe_in_box(LIST(attempt), NULL);
    cr_assert(strcmp(attempt_result(&box, attempt), "ECONNREFUSED") == 0 ||
              strcmp(attempt_result(&box, attempt), "EPERM") == 0);
    cr_assert_not(listener_reached(listener));
    close(listener);
}

Test(sockets, a_hosts_socket_in_tmp_or_run_is_not_visible)
{
    _cleanup_tempdir_ struct tempdir dir = tempdir_new();
    const char *path = path_in(dir.path, "sock");
    int listener = listen_unix(path);
    const char *attempt = text_format("connect_unix:%s", path);
    struct attempts outside = probe_outside(LIST(attempt), false);
    cr_assert_str_eq(attempt_result(&outside, attempt), "OK");
    cr_assert(listener_reached(listener));
    struct attempts box = probe_in_box(LIST(attempt), NULL);
    cr_assert_str_eq(attempt_result(&box, attempt), "ENOENT");
    cr_assert_not(listener_reached(listener));
    close(listener);
    _cleanup_answer_ struct answer a =
        run_sh("find /run /tmp /dev /work -type s 2>/dev/null | head", NULL);
    expect_stdout(&a, "");
}

Test(sockets, two_boxes_do_not_meet)
{
    /* One box listens on an abstract name and on loopback; another looks for it. */
    struct spawn first = {
        .argv = LIST(hutch_path(), "run", "--timeout", "60", "--language", "python", "-"),
        .input = "import socket, time\n"
                 "a = socket.socket(socket.AF_UNIX); a.bind('\\0hutch-meet'); a.listen()\n"
                 "t = socket.create_server(('127.0.0.1', 4711))\n"
                 "print('listening', flush=True)\n"
                 "time.sleep(50)\n"};
    struct child child;
    struct output o;
    first.input_len = strlen(first.input);
    spawn_start(&first, &child);
    /* The code goes in through the pipe before any output is awaited. */
    cr_assert_eq(write(child.in, first.input, first.input_len), (ssize_t)first.input_len);
    close(child.in);
    child.in = -1;
    cr_assert(spawn_await(&child, "listening", 30000));
    struct attempts box =
        probe_in_box(LIST("connect_abstract:hutch-meet", "connect_tcp:4711"), NULL);
    cr_expect_str_neq(attempt_result(&box, "connect_abstract:hutch-meet"), "OK");
    cr_expect_str_eq(attempt_result(&box, "connect_tcp:4711"), "ECONNREFUSED");
    spawn_kill(&child, SIGKILL);
    spawn_finish(&child, &o);
}

Test(sockets, there_is_no_way_out)
{
    struct attempts box = probe_in_box(LIST("connect_outside"), NULL);
    cr_assert_str_eq(attempt_result(&box, "connect_outside"), "ENETUNREACH");
    _cleanup_answer_ struct answer a =
        run_command(NULL, LIST("sh", "-c", "cat /proc/net/dev | tail -n +3 | cut -d: -f1"));
    expect_clean(&a);
    expect(&a, strstr(answer_text(&a, "stdout"), "lo"));
    expect(&a,
           !strstr(answer_text(&a, "stdout"), "eth") && !strstr(answer_text(&a, "stdout"), "veth"));
}
