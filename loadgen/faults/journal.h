/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remedies that are still owed, in a file: written before a thing is done, struck when it has
 * been put right.
 *
 *   spillload-faults 1 BOOT-ID         a journal of another boot owes nothing any more
 *   +1 continue 4711 123456
 *   -1
 *
 * Who may do what
 *   - The file's lock (flock) is held through one open file description that the process which does
 *     the faults and its keeper share: as long as one of the two lives, no one else touches the
 *     journal. When it can be locked, whoever locks it owes the remedies.
 *   - Lines are appended whole, by one write; a last line without its end is as if never written.
 *   - A journal that owes nothing is removed by whoever holds the lock.
 *
 * The folder is ours alone (mode 0700, our user): what is in it is run as a command.
 */
#ifndef LOADGEN_FAULTS_JOURNAL_H
#define LOADGEN_FAULTS_JOURNAL_H

#include <limits.h>
#include <stddef.h>

#include "loadgen/faults/remedy.h"

struct journal {
    int fd;
    unsigned last; /* number of the last entry */
    char path[PATH_MAX];
};

/* /run/spillload for root, else in XDG_RUNTIME_DIR or /tmp. Into a buffer of PATH_MAX. */
void journal_default_folder(char out[PATH_MAX]);

/* Makes the folder if it is not there. 0, or negative errno after a message on stderr. */
int journal_folder(const char *folder);

/* A new one, locked. 0, or negative errno after a message on stderr. */
int journal_create(const char *folder, struct journal *out);

/* An existing one if nobody holds it: 0, locked; -EWOULDBLOCK when somebody does; negative errno.
 */
int journal_claim(const char *path, struct journal *out);

/* Writes a remedy down. The number of the entry, or negative errno after a message on stderr. */
int journal_note(struct journal *journal, const struct remedy *remedy);

/* It has been put right. */
void journal_strike(struct journal *journal, int entry);

/*
 * Applies every remedy that is owed, the latest first, and strikes what succeeded. Returns how many
 * failed, or negative errno; `done` (may be NULL) is how many succeeded.
 */
int journal_settle(struct journal *journal, int *done);

/* Removes the file, if it owes nothing; closes it in any case. */
void journal_close(struct journal *journal, int owed);

#endif
