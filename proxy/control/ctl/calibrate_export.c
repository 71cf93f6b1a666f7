/* SPDX-License-Identifier: Apache-2.0 */
/* Getting into an NFS export and out of it again: see calibrate_export.h. */
#include "proxy/control/ctl/calibrate_export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocols/rpc/mount3.h"
#include "protocols/rpc/portmap.h"
#include "protocols/rpc/rpc_record.h"

#define NFS_PORT        "2049"
#define PORTMAP_PORT    111
#define ONE_REPLY_BYTES 65536
#define LIST_BYTES      32768
#define REMOVE_ROUNDS   64 /* of listing and removing, before giving up on a folder */

const char *calibrate_status_text(uint32_t status, char *text, size_t size)
{
    static const struct {
        uint32_t status;
        const char *name;
    } names[] = {
        {NFS3_STATUS_PERM, "EPERM"},
        {NFS3_STATUS_NOENT, "ENOENT"},
        {NFS3_STATUS_IO, "EIO"},
        {NFS3_STATUS_ACCES, "EACCES"},
        {NFS3_STATUS_EXIST, "EEXIST"},
        {NFS3_STATUS_NOTDIR, "ENOTDIR"},
        {NFS3_STATUS_INVAL, "EINVAL"},
        {NFS3_STATUS_NOSPC, "ENOSPC"},
        {NFS3_STATUS_ROFS, "EROFS"},
        {69, "EDQUOT"},
        {NFS3_STATUS_STALE, "ESTALE"},
        {NFS3_STATUS_NOTSUPP, "NOTSUPP"},
        {NFS3_STATUS_SERVERFAULT, "SERVERFAULT"},
        {NFS3_STATUS_JUKEBOX, "JUKEBOX"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].status == status) {
            snprintf(text, size, "%u (%s)", status, names[i].name);
            return text;
        }
    }
    snprintf(text, size, "%u", status);
    return text;
}

/* ------------------------------------------------------------------ replies */

uint32_t calibrate_export_xid(struct calibrate_export *export, const struct calibrate_link *link)
{
    return export->xids[link->index] = ++export->xid;
}

/* Whether a whole record lies at the beginning; joins its fragments. *used: its bytes, marks and
 * all; *payload: those behind the first mark. False with an error in the loop, too. */
static bool whole_record(struct calibrate_loop *loop, struct calibrate_link *link, size_t *used,
                         size_t *payload)
{
    size_t at = 0;
    size_t joined = 0;
    bool last = false;

    while (!last) {
        if (link->in_bytes - at < RPC_RECORD_MARK_BYTES)
            return false;
        uint32_t mark = rpc_load_u32(link->in + at);
        size_t bytes = mark & 0x7fffffff;
        if (bytes > RPC_RECORD_DEFAULT_BYTES) {
            calibrate_loop_fail(loop, "%s: does not speak RPC; is this the port of an NFS server?",
                                loop->peer);
            return false;
        }
        if (link->in_bytes - at - RPC_RECORD_MARK_BYTES < bytes)
            return false;
        joined += bytes;
        at += RPC_RECORD_MARK_BYTES + bytes;
        last = (mark & 0x80000000) != 0;
    }
    *used = at;
    *payload = joined;
    if (at == RPC_RECORD_MARK_BYTES + joined)
        return true;
    for (size_t from = 0, to = RPC_RECORD_MARK_BYTES; from < at;) {
        size_t bytes = rpc_load_u32(link->in + from) & 0x7fffffff;
        memmove(link->in + to, link->in + from + RPC_RECORD_MARK_BYTES, bytes);
        from += RPC_RECORD_MARK_BYTES + bytes;
        to += bytes;
    }
    return true;
}

enum calibrate_reply calibrate_export_take(struct calibrate_export *export,
                                           struct calibrate_link *link, size_t *used,
                                           struct rpc_slice *results)
{
    struct calibrate_loop *loop = &export->loop;
    const uint8_t *payload = link->in + RPC_RECORD_MARK_BYTES;
    struct rpc_reply reply;
    size_t bytes;

    if (!whole_record(loop, link, used, &bytes))
        return loop->error[0] != '\0' ? CALIBRATE_WRONG : CALIBRATE_MORE;
    if (rpc_parse_reply(payload, bytes, &reply) != RPC_PARSE_OK ||
        reply.xid != export->xids[link->index]) {
        calibrate_loop_fail(loop,
                            "%s: sends what is no RPC reply to the call; is this the port of "
                            "an NFS server?",
                            loop->peer);
        return CALIBRATE_WRONG;
    }
    if (reply.denied) {
        calibrate_loop_fail(loop,
                            "%s: denies the call (RPC reject %u, authentication %u): it does not "
                            "take AUTH_SYS from here; allow sec=sys for this export",
                            loop->peer, reply.reject, reply.auth_status);
        return CALIBRATE_WRONG;
    }
    if (reply.accept != RPC_ACCEPT_SUCCESS) {
        calibrate_loop_fail(loop, "%s: does not serve this program or version (RPC status %u)",
                            loop->peer, reply.accept);
        return CALIBRATE_WRONG;
    }
    *results =
        (struct rpc_slice){payload + reply.body_offset, (uint32_t)(bytes - reply.body_offset)};
    return CALIBRATE_DONE;
}

/* ------------------------------------------------------------------ single calls */

struct single {
    struct calibrate_export *export;
    const uint8_t *call;
    size_t call_bytes;
    const uint8_t *data;
    size_t data_bytes;
    bool sent;
    uint8_t results[ONE_REPLY_BYTES];
    size_t results_bytes;
};

static bool single_next(void *context, struct calibrate_link *link)
{
    struct single *single = context;

    if (single->sent)
        return false;
    single->sent = true;
    memcpy(link->out, single->call, single->call_bytes);
    link->out_bytes = single->call_bytes;
    link->tail = single->data;
    link->tail_bytes = single->data_bytes;
    single->export->xids[link->index] = single->export->xid;
    return true;
}

static enum calibrate_reply single_reply(void *context, struct calibrate_link *link, size_t *used)
{
    struct single *single = context;
    struct rpc_slice results;
    enum calibrate_reply result = calibrate_export_take(single->export, link, used, &results);

    if (result == CALIBRATE_DONE) {
        single->results_bytes = results.len < ONE_REPLY_BYTES ? results.len : ONE_REPLY_BYTES;
        memcpy(single->results, results.data, single->results_bytes);
    }
    return result;
}

/* Sends the call, whose xid is the export's latest, and fills the results. 0, or -1 (loop.error).
 */
static int ask(struct single *single, const uint8_t *call, size_t call_bytes)
{
    const struct calibrate_work work = {single, single_next, single_reply};
    struct calibrate_run run;

    single->call = call;
    single->call_bytes = call_bytes;
    single->sent = false;
    return calibrate_loop_run(&single->export->loop, &work, 1, UINT64_MAX, &run);
}

/* Likewise for an NFS procedure. 0 and *reply, whatever its status; -1 (loop.error). */
static int ask_nfs(struct single *single, uint32_t proc, const uint8_t *call, size_t call_bytes,
                   struct nfs3_reply *reply)
{
    struct calibrate_loop *loop = &single->export->loop;

    if (ask(single, call, call_bytes) < 0)
        return -1;
    if (nfs3_parse_reply(proc, single->results, single->results_bytes, reply) != RPC_PARSE_OK)
        return calibrate_loop_fail(loop, "%s: a malformed reply to %s", loop->peer,
                                   nfs3_proc_name(proc));
    return 0;
}

static bool keep(struct calibrate_handle *handle, struct rpc_slice slice)
{
    if (slice.len == 0 || slice.len > sizeof(handle->bytes))
        return false;
    memcpy(handle->bytes, slice.data, slice.len);
    handle->length = slice.len;
    return true;
}

/* ------------------------------------------------------------------ mounting */

/* The port that the host's portmapper has for MOUNT; 0: none (loop.error says why). */
static uint16_t ask_portmapper(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint8_t call[PORTMAP_CALL_BYTES];
    uint16_t port = 0;

    calibrate_loop_disconnect(&export->loop);
    calibrate_loop_set_port(&export->loop, PORTMAP_PORT);
    size_t bytes = portmap_write_getport(call, sizeof(call), ++export->xid, MOUNT_PROG, MOUNT3_VERS,
                                         PORTMAP_TCP);
    if (ask(single, call, bytes) < 0)
        return 0;
    if (portmap_parse_getport_reply(single->results, single->results_bytes, &port) != RPC_PARSE_OK)
        return 0;
    return port;
}

static int ask_mount(struct single *single, uint16_t port, struct mount3_reply *reply)
{
    struct calibrate_export *export = single->export;
    struct calibrate_loop *loop = &export->loop;
    uint8_t call[MOUNT3_CALL_MAX_BYTES];

    calibrate_loop_disconnect(loop);
    calibrate_loop_set_port(loop, port);
    size_t bytes = mount3_write_mnt_call(call, sizeof(call), ++export->xid,
                                         &export->client.identity, export->path);
    if (ask(single, call, bytes) < 0)
        return -1;
    if (mount3_parse_mnt_reply(single->results, single->results_bytes, reply) != RPC_PARSE_OK)
        return calibrate_loop_fail(loop, "%s: a malformed reply to MNT", loop->peer);
    return 0;
}

/* What the server exports, into `list`: "/a, /b". True when `path` is one of them or below one. */
static bool list_exports(struct single *single, const char *path, char *list, size_t size)
{
    struct calibrate_export *export = single->export;
    uint8_t call[RPC_CALL_HEADER_MAX_BYTES + RPC_RECORD_MARK_BYTES];
    size_t bytes =
        mount3_write_export_call(call, sizeof(call), ++export->xid, &export->client.identity);
    struct rpc_reader reader;
    struct rpc_slice one;
    bool found = false;

    list[0] = '\0';
    if (ask(single, call, bytes) < 0)
        return false;
    rpc_reader_init(&reader, single->results, single->results_bytes);
    while (mount3_next_export(&reader, &one) == RPC_PARSE_OK) {
        size_t used = strlen(list);
        snprintf(list + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)one.len,
                 (const char *)one.data);
        found |= strncmp(path, (const char *)one.data, one.len) == 0 &&
                 (path[one.len] == '\0' || path[one.len] == '/' || one.len == 1);
    }
    return found;
}

/* Servers answer EACCES to what is not exported at all, too. */
static int say_not_mounted(struct single *single, uint32_t status)
{
    const struct calibrate_export *export = single->export;
    char list[512];
    char text[32];
    bool exported = list_exports(single, export->path, list, sizeof(list));

    calibrate_status_text(status, text, sizeof(text));
    if (!exported && list[0] != '\0')
        status = MOUNT3_STATUS_NOENT;
    switch (status) {
    case MOUNT3_STATUS_NOENT:
    case MOUNT3_STATUS_NOTDIR:
        calibrate_say("%s: there is no export %s (MOUNT status %s); expected one of: %s",
                      export->loop.peer, export->path, text,
                      list[0] != '\0' ? list : "those that `showmount -e` lists");
        break;
    case MOUNT3_STATUS_PERM:
    case MOUNT3_STATUS_ACCES:
        calibrate_say("%s: does not let this machine mount %s (MOUNT status %s); add its address "
                      "to the clients of that export%s",
                      export->loop.peer, export->path, text,
                      geteuid() == 0 ? ""
                                     : ", or run this as root: the server may want a port "
                                       "below 1024");
        break;
    default:
        calibrate_say("%s: can't mount %s (MOUNT status %s)", export->loop.peer, export->path,
                      text);
        break;
    }
    return CALIBRATE_REFUSED;
}

/* NFS's own port has the MOUNT service, too, on some servers. */
static int mount_it(struct single *single, uint16_t nfs_port, unsigned mount_port)
{
    struct calibrate_export *export = single->export;
    struct calibrate_loop *loop = &export->loop;
    struct mount3_reply reply;
    uint16_t port = mount_port != 0 ? (uint16_t)mount_port : nfs_port;

    if (ask_mount(single, port, &reply) < 0) {
        uint16_t mapped = mount_port != 0 ? 0 : ask_portmapper(single);
        if (mapped == 0 || ask_mount(single, mapped, &reply) < 0) {
            calibrate_say("%s; no MOUNT service was found: say --mount-port N", loop->error);
            return CALIBRATE_UNREACHABLE;
        }
        port = mapped;
    }
    if (reply.status != MOUNT3_STATUS_OK)
        return say_not_mounted(single, reply.status);
    if (!keep(&export->root, reply.handle)) {
        calibrate_say("%s: a file handle of no or too many bytes", loop->peer);
        return CALIBRATE_REFUSED;
    }
    export->mount_port = port;
    calibrate_loop_disconnect(loop);
    calibrate_loop_set_port(loop, nfs_port);
    return CALIBRATE_OK;
}

/* ------------------------------------------------------------------ the scratch folder */

static int say_refused(const struct calibrate_export *export, const char *what, uint32_t status)
{
    const char *advice = "";
    char text[32];

    if (status == NFS3_STATUS_ACCES || status == NFS3_STATUS_PERM)
        advice = "; say --uid and --gid of a user who may write there (servers take root for "
                 "nobody unless told not to)";
    else if (status == NFS3_STATUS_ROFS)
        advice = "; the export is read-only, and measuring writes needs one that is not";
    calibrate_say("%s%s: user %u can't %s (NFS status %s)%s", export->loop.peer, export->path,
                  export->client.identity.uid, what,
                  calibrate_status_text(status, text, sizeof(text)), advice);
    return CALIBRATE_REFUSED;
}

static int say_broken(const struct calibrate_export *export)
{
    calibrate_say("%s", export->loop.error);
    return CALIBRATE_UNREACHABLE;
}

static int make_folder(struct single *single, const struct calibrate_handle *in, const char *name,
                       struct calibrate_handle *made)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_reply reply;
    size_t bytes = nfs3_call_mkdir(call, sizeof(call), &export->client, ++export->xid,
                                   calibrate_slice(in), name, 0700);

    if (ask_nfs(single, NFS3_PROC_MKDIR, call, bytes, &reply) < 0)
        return say_broken(export);
    if (reply.status == NFS3_STATUS_OK && keep(made, reply.handle))
        return CALIBRATE_OK;
    return say_refused(export, "make a folder", reply.status);
}

static int make_file(struct single *single, const struct calibrate_handle *in, const char *name,
                     struct calibrate_handle *made)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_reply reply;
    size_t bytes = nfs3_call_create(call, sizeof(call), &export->client, ++export->xid,
                                    calibrate_slice(in), name, 0600, true);

    if (ask_nfs(single, NFS3_PROC_CREATE, call, bytes, &reply) < 0)
        return say_broken(export);
    if (reply.status == NFS3_STATUS_OK && keep(made, reply.handle))
        return CALIBRATE_OK;
    return say_refused(export, "make a file", reply.status);
}

static int fill_file(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint32_t block = export->write_max_bytes;
    uint8_t *data = calloc(1, block);
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_reply reply = {.status = NFS3_STATUS_OK};
    int result = data != NULL ? 0 : -1;

    single->data = data;
    single->data_bytes = block;
    for (uint64_t at = 0; at < CALIBRATE_FILE_BYTES && result == 0 && reply.status == 0;
         at += block) {
        size_t bytes = nfs3_call_write(call, sizeof(call), &export->client, ++export->xid,
                                       calibrate_slice(&export->file), at, block, NFS3_FILE_SYNC);
        result = ask_nfs(single, NFS3_PROC_WRITE, call, bytes, &reply);
    }
    single->data = NULL;
    single->data_bytes = 0;
    free(data);
    if (result < 0)
        return say_broken(export);
    return reply.status == 0 ? CALIBRATE_OK : say_refused(export, "write", reply.status);
}

static int ask_sizes(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_reply reply;
    size_t bytes = nfs3_call_fsinfo(call, sizeof(call), &export->client, ++export->xid,
                                    calibrate_slice(&export->root));

    if (ask_nfs(single, NFS3_PROC_FSINFO, call, bytes, &reply) < 0)
        return say_broken(export);
    if (reply.status != NFS3_STATUS_OK)
        return say_refused(export, "ask for its limits", reply.status);
    /* In whole words, and not more than anybody would send. */
    export->read_max_bytes = reply.read_max_bytes & ~3U;
    export->write_max_bytes = reply.write_max_bytes & ~3U;
    if (export->write_max_bytes > 1U << 20)
        export->write_max_bytes = 1U << 20;
    if (export->write_max_bytes < 4)
        return say_refused(export, "write any bytes at a time", reply.status);
    return CALIBRATE_OK;
}

static int make_scratch(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct calibrate_handle none;
    struct nfs3_reply reply;
    char name[64];

    snprintf(name, sizeof(name), ".spillway-calibrate-%d", (int)getpid());
    int status = make_folder(single, &export->root, name, &export->scratch);
    if (status != CALIBRATE_OK)
        return status;
    memcpy(export->folder, name, sizeof(name));
    calibrate_say("working in %s%s/%s, which is removed at the end", export->loop.peer,
                  export->path, name);
    status = make_file(single, &export->scratch, "file", &export->file);
    if (status == CALIBRATE_OK)
        status = fill_file(single);
    if (status == CALIBRATE_OK)
        status = make_folder(single, &export->scratch, "many", &export->many);
    for (unsigned i = 0; i < CALIBRATE_MANY && status == CALIBRATE_OK; i++) {
        snprintf(name, sizeof(name), "entry%u", i);
        status = make_file(single, &export->many, name, &none);
    }
    if (status != CALIBRATE_OK)
        return status;
    size_t bytes = nfs3_call_symlink(call, sizeof(call), &export->client, ++export->xid,
                                     calibrate_slice(&export->scratch), "link", "file");
    if (ask_nfs(single, NFS3_PROC_SYMLINK, call, bytes, &reply) < 0)
        return say_broken(export);
    if (reply.status == NFS3_STATUS_OK)
        keep(&export->link, reply.handle);
    return CALIBRATE_OK;
}

/* ------------------------------------------------------------------ in and out */

static int take_target(struct calibrate_export *export, const char *target, char *host_text,
                       size_t size, char **host, char **port)
{
    const char *slash = strchr(target, '/');

    *port = (char *)NFS_PORT;
    if (slash == NULL || (size_t)(slash - target) >= size || strlen(slash) >= sizeof(export->path))
        slash = NULL;
    if (slash != NULL) {
        memcpy(host_text, target, (size_t)(slash - target));
        host_text[slash - target] = '\0';
        memcpy(export->path, slash, strlen(slash) + 1);
    }
    if (slash == NULL || !calibrate_split_host(host_text, host, port)) {
        calibrate_say("'%s' is no export; expected HOST[:PORT]/EXPORT such as 10.0.0.5:2049/data",
                      target);
        return CALIBRATE_USAGE;
    }
    return CALIBRATE_OK;
}

static int check_nfs(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    size_t bytes = nfs3_call_null(call, sizeof(call), &export->client, ++export->xid);

    if (ask(single, call, bytes) == 0)
        return CALIBRATE_OK;
    calibrate_say("%s%s", export->loop.error,
                  strstr(export->loop.error, "program or version") != NULL
                      ? ": no NFS version 3; enable it, or give the port where it is served"
                      : "");
    return CALIBRATE_UNREACHABLE;
}

int calibrate_export_open(struct calibrate_export *export, const struct calibrate_options *options,
                          const char *target)
{
    static struct single single;
    char host_text[280];
    char *host;
    char *port;

    memset(export, 0, sizeof(*export));
    int status = take_target(export, target, host_text, sizeof(host_text), &host, &port);
    if (status != CALIBRATE_OK)
        return status;
    single = (struct single){.export = export};
    export->client.identity = (struct rpc_identity){
        .sys = true, .uid = options->uid, .gid = options->gid, .machine = "spillctl"};
    if (calibrate_loop_init(&export->loop, host, port, options->timeout_s) < 0)
        return say_broken(export);
    export->loop.reserved_port = geteuid() == 0;
    export->xid = (uint32_t)getpid() << 12;
    status = check_nfs(&single);
    if (status == CALIBRATE_OK)
        status = mount_it(&single, (uint16_t)strtoul(port, NULL, 10), options->mount_port);
    if (status == CALIBRATE_OK)
        status = ask_sizes(&single);
    if (status == CALIBRATE_OK)
        status = make_scratch(&single);
    return status;
}

/* Removes a name, whatever it is. */
static int remove_name(struct single *single, const struct calibrate_handle *in, const char *name,
                       uint32_t *status)
{
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_reply reply;
    size_t bytes = nfs3_call_remove(call, sizeof(call), &export->client, ++export->xid,
                                    calibrate_slice(in), name);

    if (ask_nfs(single, NFS3_PROC_REMOVE, call, bytes, &reply) < 0)
        return -1;
    if (reply.status != NFS3_STATUS_OK && reply.status != NFS3_STATUS_NOENT) {
        bytes = nfs3_call_rmdir(call, sizeof(call), &export->client, ++export->xid,
                                calibrate_slice(in), name);
        if (ask_nfs(single, NFS3_PROC_RMDIR, call, bytes, &reply) < 0)
            return -1;
    }
    *status = reply.status;
    return 0;
}

/* Removes what one listing from the folder's beginning names. *left: entries that it named. */
static int clear_some(struct single *single, const struct calibrate_handle *folder, unsigned *left)
{
    static uint8_t listing[ONE_REPLY_BYTES];
    struct calibrate_export *export = single->export;
    uint8_t call[NFS3_CALL_MAX_BYTES];
    struct nfs3_entries entries;
    struct rpc_slice name;
    uint32_t status;
    size_t bytes = nfs3_call_readdir(call, sizeof(call), &export->client, ++export->xid,
                                     calibrate_slice(folder), 0, 0, LIST_BYTES);

    *left = 0;
    if (ask(single, call, bytes) < 0)
        return -1;
    memcpy(listing, single->results, single->results_bytes);
    if (nfs3_entries_begin(&entries, listing, single->results_bytes) != RPC_PARSE_OK)
        return -1;
    while (nfs3_entries_next(&entries, &name) == RPC_PARSE_OK) {
        char text[NFS3_NAME_MAX_BYTES + 1];
        memcpy(text, name.data, name.len);
        text[name.len] = '\0';
        if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
            continue;
        ++*left;
        if (remove_name(single, folder, text, &status) < 0)
            return -1;
    }
    return 0;
}

static int clear_folder(struct single *single, const struct calibrate_handle *folder)
{
    unsigned left = 1;

    for (unsigned round = 0; round < REMOVE_ROUNDS && left > 0; round++) {
        if (clear_some(single, folder, &left) < 0)
            return -1;
    }
    return 0;
}

static void unmount(struct single *single)
{
    struct calibrate_export *export = single->export;
    uint8_t call[MOUNT3_CALL_MAX_BYTES];

    calibrate_loop_disconnect(&export->loop);
    calibrate_loop_set_port(&export->loop, export->mount_port);
    size_t bytes = mount3_write_umnt_call(call, sizeof(call), ++export->xid,
                                          &export->client.identity, export->path);
    /* A courtesy: the server keeps a list of mounts, which nobody relies on. */
    (void)ask(single, call, bytes);
}

void calibrate_export_close(struct calibrate_export *export)
{
    static struct single single;
    uint32_t status = NFS3_STATUS_IO;

    single = (struct single){.export = export};
    if (export->folder[0] != '\0') {
        bool cleared = (export->many.length == 0 || clear_folder(&single, &export->many) == 0) &&
                       clear_folder(&single, &export->scratch) == 0 &&
                       remove_name(&single, &export->root, export->folder, &status) == 0;
        if (!cleared || status != NFS3_STATUS_OK)
            calibrate_say("%s%s/%s could not be removed; please do", export->loop.peer,
                          export->path, export->folder);
    }
    if (export->mount_port != 0)
        unmount(&single);
    calibrate_loop_fini(&export->loop);
}
