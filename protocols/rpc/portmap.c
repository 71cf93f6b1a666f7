/* SPDX-License-Identifier: Apache-2.0 */
/* Portmap version 2, GETPORT: see portmap.h. Layouts are RFC 1833 section 3. */
#include "protocols/rpc/portmap.h"

size_t portmap_write_getport(uint8_t *buf, size_t size, uint32_t xid, uint32_t prog, uint32_t vers,
                             enum portmap_transport transport)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_call(&w, xid, PORTMAP_PROG, PORTMAP_VERS, PORTMAP_PROC_GETPORT, NULL);
    rpc_put_u32(&w, prog);
    rpc_put_u32(&w, vers);
    rpc_put_u32(&w, transport);
    rpc_put_u32(&w, 0); /* port: not looked at */
    return rpc_writer_finish(&w, 0);
}

enum rpc_parse portmap_parse_getport(const uint8_t *args, size_t len, uint32_t *prog,
                                     uint32_t *vers, uint32_t *transport)
{
    struct rpc_reader r;

    rpc_reader_init(&r, args, len);
    if (!rpc_reader_has(&r, 16))
        return RPC_PARSE_NEED_MORE;
    *prog = rpc_load_u32(r.at);
    *vers = rpc_load_u32(r.at + 4);
    *transport = rpc_load_u32(r.at + 8);
    return RPC_PARSE_OK;
}

size_t portmap_write_getport_reply(uint8_t *buf, size_t size, uint32_t xid, uint16_t port)
{
    struct rpc_writer w;

    rpc_writer_init(&w, buf, size);
    rpc_write_success(&w, xid);
    rpc_put_u32(&w, port);
    return rpc_writer_finish(&w, 0);
}

enum rpc_parse portmap_parse_getport_reply(const uint8_t *results, size_t len, uint16_t *port)
{
    struct rpc_reader r;
    uint32_t word;

    *port = 0;
    rpc_reader_init(&r, results, len);
    if (!rpc_read_u32(&r, &word))
        return RPC_PARSE_NEED_MORE;
    if (word > UINT16_MAX)
        return RPC_PARSE_GARBAGE;
    *port = (uint16_t)word;
    return RPC_PARSE_OK;
}
