/* SPDX-License-Identifier: Apache-2.0 */
/* The file of remedies owed. */
#include "loadgen/faults/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

#define TITLE      "spillload-faults 1 "
#define LINE_BYTES (REMEDY_TEXT_BYTES + 32)

static void read_boot_id(char out[64])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!file || !fgets(out, 64, file))
        snprintf(out, 64, "unknown");
    if (file)
        fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

/* ---------------------------------------------------------------- the folder */

void journal_default_folder(char out[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        snprintf(out, PATH_MAX, "/run/spillload");
    else if (runtime && runtime[0] == '/')
        snprintf(out, PATH_MAX, "%s/spillload", runtime);
    else
        snprintf(out, PATH_MAX, "/tmp/spillload-%u", geteuid());
}

int journal_folder(const char *folder)
{
    struct stat status;

    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        int error = -errno;

        fprintf(stderr,
                "spillload fault: journal folder %s can't be made: %s; name another with "
                "--journal=DIR\n",
                folder, strerror(errno));
        return error;
    }
    if (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        (status.st_mode & 077)) {
        fprintf(stderr,
                "spillload fault: journal folder %s must be a folder of our own with mode 0700, "
                "for what is in it is run; name another with --journal=DIR\n",
                folder);
        return -EPERM;
    }
    return 0;
}

/* ---------------------------------------------------------------- opening */

int journal_create(const char *folder, struct journal *out)
{
    char boot[64];
    char title[128];
    struct stat status;
    int error;

    *out = (struct journal){.fd = -1};
    read_boot_id(boot);
    snprintf(title, sizeof(title), TITLE "%s\n", boot);
    /* Somebody may claim and remove it between making and locking it: then another one is made. */
    do {
        if (out->fd >= 0)
            close(out->fd);
        if (snprintf(out->path, sizeof(out->path), "%s/journal-XXXXXX", folder) >=
            (int)sizeof(out->path)) {
            errno = ENAMETOOLONG;
            break;
        }
        out->fd = mkostemp(out->path, O_CLOEXEC | O_APPEND);
    } while (out->fd >= 0 && (flock(out->fd, LOCK_EX) != 0 || fstat(out->fd, &status) != 0 ||
                              status.st_nlink == 0));
    if (out->fd >= 0 && write(out->fd, title, strlen(title)) == (ssize_t)strlen(title))
        return 0;
    error = errno ? -errno : -EIO;
    fprintf(stderr,
            "spillload fault: journal %s can't be written: %s; name another folder with "
            "--journal=DIR\n",
            out->path, strerror(-error));
    if (out->fd >= 0) {
        unlink(out->path);
        close(out->fd);
        out->fd = -1;
    }
    return error;
}

int journal_claim(const char *path, struct journal *out)
{
    struct stat status;
    int error = 0;

    *out = (struct journal){.fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW)};
    if (out->fd < 0)
        return -errno;
    snprintf(out->path, sizeof(out->path), "%s", path);
    if (flock(out->fd, LOCK_EX | LOCK_NB) != 0 || fstat(out->fd, &status) != 0)
        error = -errno;
    else if (status.st_nlink == 0)
        error = -ENOENT;
    if (error)
        close(out->fd);
    return error;
}

/* ---------------------------------------------------------------- entries */

static int append(struct journal *journal, const char *line)
{
    ssize_t length = (ssize_t)strlen(line);
    ssize_t written;

    do
        written = write(journal->fd, line, (size_t)length);
    while (written < 0 && errno == EINTR);
    if (written == length)
        return 0;
    return written < 0 ? -errno : -ENOSPC;
}

int journal_note(struct journal *journal, const struct remedy *remedy)
{
    char text[REMEDY_TEXT_BYTES];
    char line[LINE_BYTES];
    int error = remedy_format(remedy, text);

    if (!error) {
        snprintf(line, sizeof(line), "+%u %s\n", ++journal->last, text);
        error = append(journal, line);
    }
    if (error) {
        fprintf(stderr, "spillload fault: journal %s: %s: nothing is done that can't be noted\n",
                journal->path, strerror(-error));
        return error;
    }
    return (int)journal->last;
}

void journal_strike(struct journal *journal, int entry)
{
    char line[32];

    snprintf(line, sizeof(line), "-%d\n", entry);
    if (append(journal, line) != 0)
        fprintf(stderr, "spillload fault: journal %s can't be written any more\n", journal->path);
}

/* ---------------------------------------------------------------- settling */

/* The whole file; freed by the caller. NULL and errno when it can't be read. */
static char *read_all(int fd)
{
    size_t size = 65536;
    size_t length = 0;
    char *text = memory_grow(NULL, size);

    for (;;) {
        ssize_t got = pread(fd, text + length, size - 1 - length, (off_t)length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        length += (size_t)got;
        if (length + 1 == size)
            text = memory_grow(text, size *= 2);
    }
    text[length] = '\0';
    return text;
}

struct entry {
    unsigned number;
    bool struck;
    const char *text;
};

/* Entries in the order they were noted; the lines in `text` are cut. Returns how many. */
static size_t read_entries(char *text, struct entry **out)
{
    size_t count = 0;
    char *line;
    char *end;

    *out = NULL;
    for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (line[0] != '+' && line[0] != '-')
            continue;
        unsigned number = (unsigned)strtoul(line + 1, &line, 10);

        if (*line == ' ') {
            *out = memory_grow(*out, (count + 1) * sizeof(**out));
            (*out)[count++] = (struct entry){.number = number, .text = line + 1};
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if ((*out)[i].number == number)
                (*out)[i].struck = true;
        }
    }
    return count;
}

static bool of_this_boot(const char *text)
{
    char boot[64];
    size_t title = strlen(TITLE);

    read_boot_id(boot);
    return strncmp(text, TITLE, title) == 0 && strncmp(text + title, boot, strlen(boot)) == 0;
}

int journal_settle(struct journal *journal, int *done)
{
    char *text = read_all(journal->fd);
    struct entry *entries;
    int failed = 0;
    int succeeded = 0;

    if (done)
        *done = 0;
    if (!text)
        return -errno;
    if (!of_this_boot(text)) {
        free(text);
        return 0;
    }
    size_t count = read_entries(text, &entries);

    while (count-- > 0) {
        struct remedy remedy;

        if (entries[count].struck)
            continue;
        if (remedy_parse(entries[count].text, &remedy) != 0) {
            fprintf(stderr, "spillload fault: journal %s: '%s' is not understood\n", journal->path,
                    entries[count].text);
            failed++;
        } else if (remedy_apply(&remedy, NULL) != 0) {
            failed++;
        } else {
            journal_strike(journal, (int)entries[count].number);
            succeeded++;
        }
    }
    free(entries);
    free(text);
    if (done)
        *done = succeeded;
    return failed;
}

void journal_close(struct journal *journal, int owed)
{
    if (owed == 0)
        unlink(journal->path);
    close(journal->fd);
    journal->fd = -1;
}
