/* report.c - what init tells the host: fixed-size packets, never blocking for ever. */
#include "box/init/init.h"
#include "kernel/step/sys.h"

#define MSG_NO_SIGNAL 0x4000
#define SCM_RIGHTS_TYPE 1
#define SOCKET_LEVEL 1

struct io_vector {
    const void *base;
    size_t len;
};

struct message_header {
    void *name;
    int name_len, pad;
    const struct io_vector *vectors;
    size_t vectors_len;
    void *control;
    size_t control_len;
    int flags, pad2;
};

struct control_fd {
    size_t len;
    int level, type;
    int fd, pad;
};

void init_exit(int status)
{
    for (;;)
        (void)sys_call(__NR_exit_group, status);
}

/* `fd` (or -1) travels with the packet. A host that is gone is noticed by the loop. */
int report_message(const struct init_message *message, int fd)
{
    const struct io_vector vector = {message, sizeof(*message)};
    struct control_fd control = {.len = offsetof(struct control_fd, pad),
                                 .level = SOCKET_LEVEL,
                                 .type = SCM_RIGHTS_TYPE,
                                 .fd = fd};
    struct message_header header = {.vectors = &vector, .vectors_len = 1};

    if (fd >= 0) {
        header.control = &control;
        header.control_len = sizeof(control);
    }
    return (int)sys_call(__NR_sendmsg, PLAN_FD_CONTROL, &header, MSG_NO_SIGNAL);
}

static void add_object(struct init_message *message, const struct step_state *s)
{
    size_t len = 0;

    if (s->object != NULL)
        text_add(message->text, sizeof(message->text), &len, s->object);
}

void report_failed(const struct step_state *s, unsigned step, int error)
{
    struct init_message message = {.kind = INIT_MESSAGE_FAILED, .step = step, .error = error};

    add_object(&message, s);
    (void)report_message(&message, -1);
}

void report_missing(struct step_state *s, enum layer layer, int error)
{
    struct init_message message = {.kind = INIT_MESSAGE_MISSING, .layer = layer, .error = error};

    add_object(&message, s);
    (void)report_message(&message, -1);
}
