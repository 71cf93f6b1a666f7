/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and sessions: see nfs4_session.h. */
#include "loadgen/client/nfs4/nfs4_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/base/memory.h"

#define CACHED_BYTES   2048U
#define OPERATIONS_MAX 32U

void nfs4_session_init(struct nfs4_session *session, uint32_t minorversion, const char *owner,
                       uint64_t verifier, uint32_t slots, uint32_t data_bytes)
{
    *session = (struct nfs4_session){
        .minorversion = minorversion,
        .verifier = verifier,
        .wanted = {data_bytes + NFS4_AROUND_DATA_BYTES, data_bytes + NFS4_AROUND_DATA_BYTES,
                   CACHED_BYTES, OPERATIONS_MAX, slots},
        .slots = slots,
        .sequences = memory_zeroed(slots, sizeof(*session->sequences))};
    snprintf(session->owner, sizeof(session->owner), "%s", owner);
    nfs4_session_begin(session);
}

void nfs4_session_fini(struct nfs4_session *session)
{
    free(session->sequences);
    session->sequences = NULL;
}

void nfs4_session_begin(struct nfs4_session *session)
{
    if (session->has_id) {
        memcpy(session->old, session->id, sizeof(session->old));
        session->has_old = true;
        session->has_id = false;
    }
    session->step = session->minorversion > 0 ? NFS4_STEP_EXCHANGE_ID : NFS4_STEP_SETCLIENTID;
}

const char *nfs4_session_step_name(const struct nfs4_session *session)
{
    static const char *const names[] = {
        [NFS4_STEP_SETCLIENTID] = "SETCLIENTID",
        [NFS4_STEP_SETCLIENTID_CONFIRM] = "SETCLIENTID_CONFIRM",
        [NFS4_STEP_EXCHANGE_ID] = "EXCHANGE_ID",
        [NFS4_STEP_CREATE_SESSION] = "CREATE_SESSION",
        [NFS4_STEP_RECLAIM_COMPLETE] = "RECLAIM_COMPLETE",
        [NFS4_STEP_DESTROY_SESSION] = "DESTROY_SESSION",
        [NFS4_STEP_DONE] = "done",
    };

    return names[session->step];
}

void nfs4_session_put_step(const struct nfs4_session *session, struct nfs4_call *call)
{
    struct rpc_slice owner = {(const uint8_t *)session->owner, (uint32_t)strlen(session->owner)};

    switch (session->step) {
    case NFS4_STEP_SETCLIENTID:
        nfs4_put_setclientid(call, session->verifier, owner);
        break;
    case NFS4_STEP_SETCLIENTID_CONFIRM:
        nfs4_put_setclientid_confirm(call, session->client_id, session->confirm);
        break;
    case NFS4_STEP_EXCHANGE_ID:
        nfs4_put_exchange_id(call, session->verifier, owner);
        break;
    case NFS4_STEP_CREATE_SESSION:
        nfs4_put_create_session(call, session->client_id, session->sequence, &session->wanted);
        break;
    case NFS4_STEP_RECLAIM_COMPLETE:
        nfs4_session_put_sequence(session, call, 0, true);
        nfs4_put_reclaim_complete(call);
        break;
    case NFS4_STEP_DESTROY_SESSION:
        nfs4_put_destroy_session(call, session->old);
        break;
    case NFS4_STEP_DONE:
    default:
        break;
    }
}

static void session_made(struct nfs4_session *session, const struct nfs4_result *result)
{
    memcpy(session->id, result->session, sizeof(session->id));
    session->has_id = true;
    session->fore = result->fore;
    for (uint32_t i = 0; i < session->slots; i++)
        session->sequences[i] = 1;
}

static uint32_t operation_of(enum nfs4_session_step step)
{
    static const uint32_t operations[] = {
        [NFS4_STEP_SETCLIENTID] = NFS4_OP_SETCLIENTID,
        [NFS4_STEP_SETCLIENTID_CONFIRM] = NFS4_OP_SETCLIENTID_CONFIRM,
        [NFS4_STEP_EXCHANGE_ID] = NFS4_OP_EXCHANGE_ID,
        [NFS4_STEP_CREATE_SESSION] = NFS4_OP_CREATE_SESSION,
        [NFS4_STEP_RECLAIM_COMPLETE] = NFS4_OP_RECLAIM_COMPLETE,
        [NFS4_STEP_DESTROY_SESSION] = NFS4_OP_DESTROY_SESSION,
    };

    return operations[step];
}

/* The step was good. */
static void step_on(struct nfs4_session *session, const struct nfs4_result *result)
{
    switch (session->step) {
    case NFS4_STEP_SETCLIENTID:
        session->client_id = result->client_id;
        session->confirm = result->verifier;
        session->step = NFS4_STEP_SETCLIENTID_CONFIRM;
        break;
    case NFS4_STEP_EXCHANGE_ID:
        session->client_id = result->client_id;
        session->sequence = result->sequence;
        session->step = NFS4_STEP_CREATE_SESSION;
        break;
    case NFS4_STEP_CREATE_SESSION:
        session_made(session, result);
        session->step = NFS4_STEP_RECLAIM_COMPLETE;
        break;
    case NFS4_STEP_RECLAIM_COMPLETE:
        session->step = session->has_old ? NFS4_STEP_DESTROY_SESSION : NFS4_STEP_DONE;
        break;
    case NFS4_STEP_DESTROY_SESSION:
        session->has_old = false;
        session->step = NFS4_STEP_DONE;
        break;
    case NFS4_STEP_SETCLIENTID_CONFIRM:
    case NFS4_STEP_DONE:
    default:
        session->step = NFS4_STEP_DONE;
        break;
    }
}

/* Failures that are as good as success: what was to be done had been done before. */
static bool done_before(enum nfs4_session_step step, uint32_t status)
{
    if (step == NFS4_STEP_RECLAIM_COMPLETE)
        return status == NFS4_STATUS_COMPLETE_ALREADY;
    return step == NFS4_STEP_DESTROY_SESSION && status != NFS4_STATUS_DELAY;
}

enum rpc_parse nfs4_session_take_step(struct nfs4_session *session, struct nfs4_results *results,
                                      uint32_t *status)
{
    struct nfs4_result result;
    enum rpc_parse parse;

    if (results->left == 0 && results->status != NFS4_STATUS_OK) {
        *status = results->status;
        return RPC_PARSE_OK;
    }
    if (session->step == NFS4_STEP_RECLAIM_COMPLETE) {
        parse = nfs4_results_next(results, NFS4_OP_SEQUENCE, &result);
        *status = result.status;
        if (parse != RPC_PARSE_OK || result.status != NFS4_STATUS_OK)
            return parse;
        nfs4_session_advance(session, 0);
    }
    parse = nfs4_results_next(results, operation_of(session->step), &result);
    if (parse == RPC_PARSE_OK)
        parse = nfs4_results_end(results);
    *status = result.status;
    if (parse == RPC_PARSE_OK && done_before(session->step, result.status))
        *status = NFS4_STATUS_OK;
    if (parse == RPC_PARSE_OK && *status == NFS4_STATUS_OK)
        step_on(session, &result);
    return parse;
}

uint32_t nfs4_session_slots(const struct nfs4_session *session)
{
    if (session->minorversion == 0 || session->fore.max_requests > session->slots)
        return session->slots;
    return session->fore.max_requests;
}

void nfs4_session_put_sequence(const struct nfs4_session *session, struct nfs4_call *call,
                               uint32_t slot, bool cache)
{
    if (session->minorversion > 0)
        nfs4_put_sequence(call, session->id, session->sequences[slot], slot,
                          nfs4_session_slots(session) - 1, cache);
}

void nfs4_session_advance(struct nfs4_session *session, uint32_t slot)
{
    session->sequences[slot]++;
}

bool nfs4_session_lost(uint32_t status)
{
    switch (status) {
    case NFS4_STATUS_BADSESSION:
    case NFS4_STATUS_DEADSESSION:
    case NFS4_STATUS_CONN_NOT_BOUND_TO_SESSION:
    case NFS4_STATUS_BADSLOT:
    case NFS4_STATUS_SEQ_MISORDERED:
    case NFS4_STATUS_RETRY_UNCACHED_REP:
    case NFS4_STATUS_STALE_CLIENTID:
    case NFS4_STATUS_EXPIRED:
        return true;
    default:
        return false;
    }
}

void nfs4_session_put_renewal(const struct nfs4_session *session, struct nfs4_call *call)
{
    if (session->minorversion == 0)
        nfs4_put_renew(call, session->client_id);
}
