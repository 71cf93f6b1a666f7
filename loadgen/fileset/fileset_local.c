/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a file set in a local directory: directories one after the other, then files by several
 * threads, each taking the next number, then the marker. The first failure stops all of them.
 */
#include "loadgen/fileset/fileset.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

#define CHUNK_BYTES (1U << 20)
#define MAX_THREADS 256U

struct making {
    const struct fileset *set;
    int root_fd;
    const char *root; /* for messages */
    atomic_uint_fast64_t next;
    atomic_uint_fast64_t made;
    atomic_int error; /* errno of the first failure */
    char *problem;    /* written by who set `error` */
};

static void failed(struct making *making, int error, const char *what, const char *path)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&making->error, &none, error))
        snprintf(making->problem, FILESET_PROBLEM_BYTES, "%s %.96s/%.64s: %s", what, making->root,
                 path, strerror(error));
}

/* 0 or errno. */
static int write_all(int fd, const void *data, size_t length)
{
    const uint8_t *at = data;

    while (length > 0) {
        ssize_t written = write(fd, at, length);

        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            at += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

static void make_file(struct making *making, uint64_t file, uint8_t *buffer)
{
    uint64_t size = fileset_size_bytes(making->set, file);
    char path[FILESET_PATH_BYTES];
    int error = 0;

    fileset_file_path(making->set, file, path);
    int fd = openat(making->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0) {
        failed(making, errno, "can't create", path);
        return;
    }
    for (uint64_t at = 0; at < size && !error;) {
        size_t part = size - at < CHUNK_BYTES ? (size_t)(size - at) : CHUNK_BYTES;

        fileset_content(making->set, file, 0, at, buffer, part);
        error = write_all(fd, buffer, part);
        at += part;
    }
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        failed(making, error, "can't write", path);
    else
        atomic_fetch_add(&making->made, 1);
}

static void *maker(void *argument)
{
    struct making *making = argument;
    uint8_t *buffer = memory_zeroed(1, CHUNK_BYTES);

    while (atomic_load(&making->error) == 0) {
        uint64_t file = atomic_fetch_add(&making->next, 1);

        if (file >= making->set->spec.files)
            break;
        make_file(making, file, buffer);
    }
    free(buffer);
    return NULL;
}

static void make_files(struct making *making, unsigned threads)
{
    pthread_t others[MAX_THREADS];
    unsigned started = 0;

    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    while (started + 1 < threads && pthread_create(&others[started], NULL, maker, making) == 0)
        started++;
    maker(making);
    while (started > 0)
        pthread_join(others[--started], NULL);
}

static void make_directories(struct making *making)
{
    char path[FILESET_PATH_BYTES];

    for (uint64_t i = 0; i < making->set->directories; i++) {
        fileset_directory_path(making->set, i, path);
        if (mkdirat(making->root_fd, path, 0755) != 0 && errno != EEXIST) {
            failed(making, errno, "can't make", path);
            return;
        }
    }
}

/* Whether the marker is there and this set's. */
static bool already_made(struct making *making)
{
    char text[FILESET_MARKER_BYTES];
    char differs[FILESET_PROBLEM_BYTES];
    int fd = openat(making->root_fd, FILESET_MARKER_NAME, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        if (errno != ENOENT)
            failed(making, errno, "can't open", FILESET_MARKER_NAME);
        return false;
    }
    ssize_t length = read(fd, text, sizeof(text));
    int error = errno;

    close(fd);
    if (length < 0) {
        failed(making, error, "can't read", FILESET_MARKER_NAME);
        return false;
    }
    if (fileset_marker_matches(making->set, text, (size_t)length, differs))
        return true;
    atomic_store(&making->error, EEXIST);
    snprintf(making->problem, FILESET_PROBLEM_BYTES,
             "%.64s holds another set (%.110s): name another root, or remove it", making->root,
             differs);
    return false;
}

/* Under another name first: a marker is whole, or not there. */
static void write_marker(struct making *making)
{
    static const char temporary[] = FILESET_MARKER_NAME ".new";
    char text[FILESET_MARKER_BYTES];
    size_t length = fileset_marker(making->set, text);
    int fd = openat(making->root_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int error = fd < 0 ? errno : write_all(fd, text, length);

    if (fd >= 0 && close(fd) != 0 && !error)
        error = errno;
    if (!error && renameat(making->root_fd, temporary, making->root_fd, FILESET_MARKER_NAME) != 0)
        error = errno;
    if (error)
        failed(making, error, "can't write", FILESET_MARKER_NAME);
}

/* mkdir -p DIRECTORY/ROOT, but DIRECTORY must be there. The open directory, or negative errno. */
static int open_root(const char *directory, const char *root)
{
    char path[FILESET_ROOT_BYTES];
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    for (size_t length = 0; root[length]; length++) {
        size_t end = length + strcspn(root + length, "/");

        memcpy(path, root, end);
        path[end] = '\0';
        if (mkdirat(fd, path, 0755) != 0 && errno != EEXIST) {
            int error = errno;

            close(fd);
            return -error;
        }
        length = root[end] ? end : end - 1;
    }
    int root_fd = openat(fd, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;

    close(fd);
    return root_fd < 0 ? -error : root_fd;
}

int fileset_make_local(const struct fileset *set, const char *directory, unsigned threads,
                       uint64_t *made, char problem[FILESET_PROBLEM_BYTES])
{
    struct making making = {.set = set, .root = set->spec.root, .problem = problem};

    *made = 0;
    making.root_fd = open_root(directory, set->spec.root);
    if (making.root_fd < 0) {
        snprintf(problem, FILESET_PROBLEM_BYTES, "can't make or open %.96s/%.96s: %s", directory,
                 set->spec.root, strerror(-making.root_fd));
        return making.root_fd;
    }
    if (!already_made(&making) && atomic_load(&making.error) == 0) {
        make_directories(&making);
        if (atomic_load(&making.error) == 0)
            make_files(&making, threads);
        if (atomic_load(&making.error) == 0)
            write_marker(&making);
    }
    close(making.root_fd);
    *made = atomic_load(&making.made);
    return -atomic_load(&making.error);
}
