/* SPDX-License-Identifier: Apache-2.0 */
/* Portmap version 2 (RFC 1833): asking a host for the port of a program, e.g. its MOUNT service. */
#ifndef SPILLWAY_PROTOCOLS_RPC_PORTMAP_H
#define SPILLWAY_PROTOCOLS_RPC_PORTMAP_H

#include "protocols/rpc/rpc_message.h"

#define PORTMAP_PROG 100000
#define PORTMAP_VERS 2
#define PORTMAP_PORT 111

enum portmap_proc {
    PORTMAP_PROC_NULL = 0,
    PORTMAP_PROC_SET = 1,
    PORTMAP_PROC_UNSET = 2,
    PORTMAP_PROC_GETPORT = 3,
    PORTMAP_PROC_DUMP = 4,
};

enum portmap_transport { PORTMAP_TCP = 6, PORTMAP_UDP = 17 };

#define PORTMAP_CALL_BYTES 60

/* A whole GETPORT call for TCP or UDP, mark included (over UDP: skip the first 4 bytes); 0 when
 * `size` is under PORTMAP_CALL_BYTES. */
size_t portmap_write_getport(uint8_t *buf, size_t size, uint32_t xid, uint32_t prog, uint32_t vers,
                             enum portmap_transport transport);
/* The mapping that GETPORT arguments ask for. OK, NEED_MORE. */
enum rpc_parse portmap_parse_getport(const uint8_t *args, size_t len, uint32_t *prog,
                                     uint32_t *vers, uint32_t *transport);
/* A whole GETPORT reply, mark included; port 0 says "not registered". */
size_t portmap_write_getport_reply(uint8_t *buf, size_t size, uint32_t xid, uint16_t port);
/* The results of GETPORT. *port 0: the program isn't registered. OK, NEED_MORE, GARBAGE (> 65535).
 */
enum rpc_parse portmap_parse_getport_reply(const uint8_t *results, size_t len, uint16_t *port);

#endif
