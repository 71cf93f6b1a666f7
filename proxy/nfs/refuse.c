/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that the gate did not take: the protocol's word for "later" where there is one, else
 * another try while the client is not read from; and where no server is left, the connection's end,
 * because only a client may decide that a mount has failed.
 *
 *                       NFSv3           NFSv4                     NULL, MOUNT, others, RPCSEC_GSS
 *   admission           JUKEBOX         DELAY where it is safe    waits, its client is slowed down
 *   queue full          JUKEBOX         DELAY where it is safe    held, tried again
 *   waited too long     JUKEBOX         DELAY where it is safe    waits on
 *   no server           JUKEBOX         connection closed         connection closed
 *
 * If no server of the lane is left but another lane's is usable, the connection closes in any case:
 * the client's next one will go there.
 */
#include "proxy/nfs/internal.h"

#include "protocols/rpc/nfs3.h"
#include "protocols/rpc/nfs4_compound.h"
#include "proxy/control/log.h"

/* As much of the call as lies in one piece: its head, as when it was classified. */
static const uint8_t *call_bytes(const struct nfs_exchange *e, size_t *length)
{
    const uint8_t *bytes = e->arena;
    size_t mark = e->marked ? RPC_RECORD_MARK_BYTES : 0;

    *length = e->arena_bytes;
    if (bytes == NULL) {
        const struct nfs_block *block = TAILQ_FIRST(&e->blocks);
        bytes = block->bytes;
        *length = block->length;
    }
    *length -= mark;
    return bytes + mark;
}

/* Returns the bytes of the reply, 0 when there is no safe word. */
static size_t write_later(const struct nfs_exchange *e, enum refusal refusal, uint8_t *reply,
                          size_t size)
{
    struct nfs4_compound compound;

    if (e->prog != NFS_PROG || e->gss)
        return 0;
    if (e->vers == NFS3_VERS)
        return nfs3_write_jukebox(reply, size, e->entry.xid, e->proc);
    if (e->vers != NFS4_VERS || e->proc != NFS4_PROC_COMPOUND || refusal == REFUSAL_NO_SERVER)
        return 0;
    size_t length;
    const uint8_t *bytes = call_bytes(e, &length);
    if (nfs4_parse_compound(bytes + e->body_offset, length - e->body_offset, &compound) ==
        RPC_PARSE_GARBAGE)
        return 0;
    return nfs4_write_delay(reply, size, e->entry.xid, &compound);
}

static const char *end_text(enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_FLOW_FULL:
    case REFUSAL_POOL_FULL:
        return "refused";
    case REFUSAL_TIMEOUT:
        return "queue-timeout";
    case REFUSAL_AT_LIMIT:
        return "at-limit";
    case REFUSAL_ADMISSION:
        return "admission";
    case REFUSAL_NO_SERVER:
        break;
    }
    return "no-server";
}

static void submit_again(struct nfs_exchange *e)
{
    e->in_gate = true;
    gate_submit(&e->exchange);
}

/* There is no word for it: the gate slows its client down instead. */
static void insist(struct nfs_exchange *e)
{
    e->exchange.insists = true;
    submit_again(e);
}

static void hold(struct nfs_exchange *e)
{
    struct nfs_session *s = e->session;

    e->held = true;
    TAILQ_INSERT_TAIL(&s->held, e, conn_link);
    nfs_session_pause(s, NFS_PAUSE_HELD);
    if (s->retry_timer.deadline_ns == 0)
        timer_set(&s->nfs->loop->wheel, &s->retry_timer,
                  loop_now_ns(s->nfs->loop) + NFS_HOLD_RETRY_NS);
}

bool nfs_call_retry_first_held(struct nfs_session *s)
{
    struct nfs_exchange *e = TAILQ_FIRST(&s->held);

    if (e == NULL)
        return false;
    TAILQ_REMOVE(&s->held, e, conn_link);
    e->held = false;
    submit_again(e);
    return true;
}

bool nfs_call_retry_held(struct nfs_session *s)
{
    bool any = false;

    while (nfs_call_retry_first_held(s))
        any = true;
    return any;
}

static bool another_lane_is_usable(const struct nfs_session *s)
{
    const struct lane *lane =
        gate_choose_lane(s->binding->pool, nfs_session_client(s), loop_now_ns(s->nfs->loop));

    return lane != NULL && lane != s->binding->lane;
}

static void answer_later(struct nfs_exchange *e, const uint8_t *reply, size_t size,
                         enum refusal refusal)
{
    struct nfs_session *s = e->session;

    e->status = NFS3_STATUS_JUKEBOX; /* NFS4ERR_DELAY is the same number */
    e->exchange.bytes_out = size - RPC_RECORD_MARK_BYTES;
    nfs_session_send_copy(s, reply, size);
    nfs_call_log(e, end_text(refusal));
    nfs_call_forget(e);
    e->done = true;
    nfs_arena_leave(e->nfs, e);
    nfs_blocks_clear(e->nfs, &e->blocks);
    nfs_call_settle(e);
    nfs_session_call_left(s);
}

static void end_for_want_of_servers(struct nfs_session *s)
{
    static struct log_limit limit;
    char text[NFS_ADDRESS_TEXT_BYTES];

    log_limited(&limit, loop_now_ns(s->nfs->loop), CONFIG_LOG_WARNING,
                "pool %s: the server of client %s takes no more calls; its connection is closed",
                s->binding->pool->name, nfs_address_text(nfs_session_client(s), text));
    nfs_session_wind_down(s);
}

void nfs_call_refused(struct exchange *exchange, enum refusal refusal)
{
    struct nfs_exchange *e = container_of(exchange, struct nfs_exchange, exchange);
    struct nfs_session *s = e->session;
    uint8_t reply[NFS4_DELAY_MAX_BYTES];

    e->in_gate = false;
    if (refusal == REFUSAL_NO_SERVER && another_lane_is_usable(s)) {
        gate_count_refusal(exchange, refusal);
        end_for_want_of_servers(s);
        return;
    }
    size_t size = write_later(e, refusal, reply, sizeof(reply));
    /* A call that is held is not refused. */
    if (size > 0 || refusal == REFUSAL_NO_SERVER)
        gate_count_refusal(exchange, refusal);
    if (size > 0)
        answer_later(e, reply, size, refusal);
    else if (refusal == REFUSAL_NO_SERVER)
        end_for_want_of_servers(s);
    else if (refusal == REFUSAL_ADMISSION)
        insist(e);
    else if (refusal == REFUSAL_TIMEOUT)
        submit_again(e);
    else
        hold(e);
}

void nfs_call_marked(struct exchange *exchange)
{
    struct nfs_exchange *e = container_of(exchange, struct nfs_exchange, exchange);

    if (e->session != NULL)
        nfs_session_slow(e->session, exchange->mark_ns);
}
