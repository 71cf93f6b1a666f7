/* SPDX-License-Identifier: Apache-2.0 */
/* Exports learnt from MOUNT: see exports.h. Two hash tables of bounded size and a list of paths
 * that only grows. */
#include "proxy/nfs/exports.h"

#include "proxy/io/memory.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define PATH_MAX_BYTES  1024 /* RFC 1813 section 5.1.4: MNTPATHLEN */
#define NFSD_VERSION    1
#define GANESHA_VERSION 0x43

struct path {
    UT_hash_handle hash; /* by text */
    char text[];
};

struct handle_key {
    const void *pool;
    uint8_t length;
    uint8_t bytes[NFS_EXPORT_KEY_BYTES];
};

struct handle {
    UT_hash_handle hash; /* by key; in order of insertion */
    struct handle_key key;
    const char *path;
};

struct client_key {
    const void *pool;
    uint8_t address[16]; /* IPv4: v4-mapped */
};

struct client {
    UT_hash_handle hash;
    struct client_key key;
    const char *paths[NFS_EXPORT_PER_CLIENT];
    unsigned path_count;
    bool more; /* mounted more than are remembered */
};

struct nfs_exports {
    pthread_mutex_t lock;
    struct path *paths;
    struct handle *handles;
    struct client *clients;
    unsigned users;
};

/* ------------------------------------------------------------------ life */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nfs_exports *shared;

struct nfs_exports *nfs_exports_create(void)
{
    struct nfs_exports *exports = memory_zalloc(sizeof(*exports), "the table of exports");

    pthread_mutex_init(&exports->lock, NULL);
    return exports;
}

void nfs_exports_destroy(struct nfs_exports *exports)
{
    struct path *path = exports->paths;
    struct handle *handle = exports->handles;
    struct client *client = exports->clients;

    /* The tables first: their entries stay linked in order. */
    HASH_CLEAR(hash, exports->paths);
    HASH_CLEAR(hash, exports->handles);
    HASH_CLEAR(hash, exports->clients);
    while (path != NULL) {
        struct path *next = path->hash.next;
        free(path);
        path = next;
    }
    while (handle != NULL) {
        struct handle *next = handle->hash.next;
        free(handle);
        handle = next;
    }
    while (client != NULL) {
        struct client *next = client->hash.next;
        free(client);
        client = next;
    }
    pthread_mutex_destroy(&exports->lock);
    free(exports);
}

struct nfs_exports *nfs_exports_acquire(void)
{
    pthread_mutex_lock(&shared_lock);
    if (shared == NULL)
        shared = nfs_exports_create();
    shared->users++;
    struct nfs_exports *exports = shared;
    pthread_mutex_unlock(&shared_lock);
    return exports;
}

void nfs_exports_release(struct nfs_exports *exports)
{
    pthread_mutex_lock(&shared_lock);
    if (--exports->users == 0) {
        nfs_exports_destroy(exports);
        shared = NULL;
    }
    pthread_mutex_unlock(&shared_lock);
}

/* ------------------------------------------------------------------ keys */

static size_t nfsd_fsid_bytes(uint8_t fsid_type)
{
    /* By fsid type: device and inode; a number; major, minor and inode; encoded device and inode;
     * four bytes of the UUID and inode; eight of the UUID; all of it; all of it and inode. */
    static const uint8_t bytes[] = {8, 4, 12, 8, 8, 8, 16, 24};

    return fsid_type < sizeof(bytes) ? bytes[fsid_type] : 0;
}

size_t nfs_exports_handle_key(const uint8_t *handle, size_t length,
                              uint8_t key[NFS_EXPORT_KEY_BYTES])
{
    if (length >= 4 && handle[0] == NFSD_VERSION) {
        size_t fsid = nfsd_fsid_bytes(handle[2]);
        if (fsid > 0 && length >= 4 + fsid) {
            memcpy(key, handle, 3); /* the fourth byte is the file's */
            memcpy(key + 3, handle + 4, fsid);
            return 3 + fsid;
        }
    }
    if (length >= 5 && handle[0] == GANESHA_VERSION) {
        key[0] = handle[0];
        memcpy(key + 1, handle + 2, 2);
        return 3;
    }
    if (length > NFS_EXPORT_KEY_BYTES)
        length = NFS_EXPORT_KEY_BYTES;
    memcpy(key, handle, length);
    return length;
}

static struct handle_key handle_key(const void *pool, const uint8_t *handle, size_t length)
{
    struct handle_key key;

    memset(&key, 0, sizeof(key));
    key.pool = pool;
    key.length = (uint8_t)nfs_exports_handle_key(handle, length, key.bytes);
    return key;
}

/* False for clients without an address (UNIX sockets). */
static bool client_key(const void *pool, const struct sockaddr *address, struct client_key *key)
{
    memset(key, 0, sizeof(*key));
    key->pool = pool;
    if (address->sa_family == AF_INET) {
        key->address[10] = key->address[11] = 0xff;
        memcpy(key->address + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        memcpy(key->address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ learning, under the lock */

/* "/export/" is mounted as "/export". */
static size_t path_length(const char *text)
{
    size_t length = strlen(text);

    while (length > 1 && text[length - 1] == '/')
        length--;
    return length;
}

/* The one copy of a path, or NULL. */
static const char *find_path(struct nfs_exports *exports, const char *text)
{
    struct path *path;

    HASH_FIND(hash, exports->paths, text, path_length(text), path);
    return path != NULL ? path->text : NULL;
}

/* Makes it if need be; NULL when there are too many. */
static const char *intern(struct nfs_exports *exports, const char *text)
{
    const char *known = find_path(exports, text);
    size_t length = path_length(text);
    struct path *path;

    if (known != NULL)
        return known;
    if (length == 0 || length > PATH_MAX_BYTES ||
        HASH_CNT(hash, exports->paths) >= NFS_EXPORT_PATHS)
        return NULL;
    path = memory_zalloc(sizeof(*path) + length + 1, "an export's path");
    memcpy(path->text, text, length);
    HASH_ADD_KEYPTR(hash, exports->paths, path->text, length, path);
    return path->text;
}

static bool is_below(const char *path, const char *top)
{
    size_t length = strlen(top);

    return strncmp(path, top, length) == 0 &&
           (path[length] == '/' || (length > 0 && top[length - 1] == '/'));
}

static void learn_handle(struct nfs_exports *exports, const struct handle_key *key,
                         const char *path)
{
    struct handle *handle;

    HASH_FIND(hash, exports->handles, key, sizeof(*key), handle);
    if (handle != NULL) {
        /* Mounting a folder of an export shows the same bytes: the export is the upper one. */
        if (!is_below(path, handle->path))
            handle->path = path;
        return;
    }
    if (HASH_CNT(hash, exports->handles) < NFS_EXPORT_HANDLES) {
        handle = memory_zalloc(sizeof(*handle), "an export's handle");
    } else {
        handle = exports->handles; /* the oldest */
        HASH_DELETE(hash, exports->handles, handle);
        memset(handle, 0, sizeof(*handle));
    }
    handle->key = *key;
    handle->path = path;
    HASH_ADD(hash, exports->handles, key, sizeof(handle->key), handle);
}

static void learn_client(struct nfs_exports *exports, const struct client_key *key,
                         const char *path)
{
    struct client *client;

    HASH_FIND(hash, exports->clients, key, sizeof(*key), client);
    if (client == NULL) {
        if (HASH_CNT(hash, exports->clients) < NFS_EXPORT_CLIENTS) {
            client = memory_zalloc(sizeof(*client), "a client's mounts");
        } else {
            client = exports->clients; /* the oldest */
            HASH_DELETE(hash, exports->clients, client);
            memset(client, 0, sizeof(*client));
        }
        client->key = *key;
        HASH_ADD(hash, exports->clients, key, sizeof(client->key), client);
    }
    for (unsigned i = 0; i < client->path_count; i++) {
        if (client->paths[i] == path)
            return;
    }
    if (client->path_count < NFS_EXPORT_PER_CLIENT)
        client->paths[client->path_count++] = path;
    else
        client->more = true;
}

void nfs_exports_mounted(struct nfs_exports *exports, const void *pool,
                         const struct sockaddr *client, const char *path, const uint8_t *handle,
                         size_t length)
{
    struct client_key key;

    pthread_mutex_lock(&exports->lock);
    const char *kept = intern(exports, path);
    if (kept != NULL) {
        if (length > 0) {
            struct handle_key by_handle = handle_key(pool, handle, length);
            learn_handle(exports, &by_handle, kept);
        }
        if (client_key(pool, client, &key))
            learn_client(exports, &key, kept);
    }
    pthread_mutex_unlock(&exports->lock);
}

static void forget(struct client *client, const char *path)
{
    for (unsigned i = 0; i < client->path_count; i++) {
        if (client->paths[i] == path) {
            client->paths[i] = client->paths[--client->path_count];
            return;
        }
    }
}

void nfs_exports_unmounted(struct nfs_exports *exports, const void *pool,
                           const struct sockaddr *client_address, const char *path)
{
    struct client_key key;
    struct client *client;

    if (!client_key(pool, client_address, &key))
        return;
    pthread_mutex_lock(&exports->lock);
    HASH_FIND(hash, exports->clients, &key, sizeof(key), client);
    if (client != NULL) {
        if (path != NULL)
            forget(client, find_path(exports, path));
        if (path == NULL || (client->path_count == 0 && !client->more)) {
            HASH_DELETE(hash, exports->clients, client);
            free(client);
        }
    }
    pthread_mutex_unlock(&exports->lock);
}

/* ------------------------------------------------------------------ finding */

const char *nfs_exports_find(struct nfs_exports *exports, const void *pool,
                             const struct sockaddr *client_address, const uint8_t *handle,
                             size_t length)
{
    struct client_key by_client;
    struct client *client;
    struct handle *known = NULL;
    const char *path = NULL;

    pthread_mutex_lock(&exports->lock);
    if (length > 0) {
        struct handle_key by_handle = handle_key(pool, handle, length);
        HASH_FIND(hash, exports->handles, &by_handle, sizeof(by_handle), known);
    }
    if (known != NULL) {
        path = known->path;
    } else if (client_key(pool, client_address, &by_client)) {
        HASH_FIND(hash, exports->clients, &by_client, sizeof(by_client), client);
        if (client != NULL && client->path_count == 1 && !client->more)
            path = client->paths[0];
    }
    pthread_mutex_unlock(&exports->lock);
    return path;
}
