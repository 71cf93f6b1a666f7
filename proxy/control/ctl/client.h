/* SPDX-License-Identifier: Apache-2.0 */
/* spillctl's side of the control socket: one blocking HTTP request per connection. */
#ifndef SPILLWAY_CONTROL_CTL_CLIENT_H
#define SPILLWAY_CONTROL_CTL_CLIENT_H

#include <stddef.h>

struct client_answer {
    int status;
    char *body; /* ends with a zero byte beyond `length`; the caller's to free */
    size_t length;
};

/*
 * Sends the request and reads the whole answer. body NULL: GET, else POST. 0; -ENOENT,
 * -ECONNREFUSED, -EACCES, ... when the socket can't be reached, -ETIMEDOUT when nothing came for
 * timeout_s seconds, -EPROTO when what came is no answer. *answer is set on success only.
 */
int client_ask(const char *socket_path, const char *path, const char *body, unsigned timeout_s,
               struct client_answer *answer);

/* `name` percent-encoded as one segment of a path; the caller's to free, NULL without memory. */
char *client_encode(const char *name);

#endif
