/* SPDX-License-Identifier: Apache-2.0 */
/* Files of results; their course is in the header. */
#include "loadgen/results/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loadgen/base/memory.h"

static bool in_place(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

int output_open(struct output *output, const char *path, bool whole)
{
    *output = (struct output){.path = path};
    if (!path)
        return 0;
    if (whole && !in_place(path)) {
        size_t size = strlen(path) + sizeof(".part");

        output->part = memory_zeroed(1, size);
        snprintf(output->part, size, "%s.part", path);
    }
    output->file = fopen(output->part ? output->part : path, "we");
    if (output->file)
        return 0;
    fprintf(stderr, "spillload: %s can't be written: %s\n", path, strerror(errno));
    free(output->part);
    output->part = NULL;
    return -1;
}

static void tell(struct output *output, int error)
{
    if (!output->failed)
        fprintf(stderr, "spillload: %s: %s: what it should hold is lost\n", output->path,
                strerror(error ? error : EIO));
    output->failed = true;
}

bool output_flush(struct output *output)
{
    if (!output->file)
        return !output->failed;
    errno = 0;
    if (fflush(output->file) != 0 || ferror(output->file))
        tell(output, errno);
    clearerr(output->file);
    return !output->failed;
}

bool output_finish(struct output *output)
{
    if (!output->file)
        return !output->failed;
    output_flush(output);
    if (fclose(output->file) != 0)
        tell(output, errno);
    output->file = NULL;
    if (output->part && !output->failed && rename(output->part, output->path) != 0)
        tell(output, errno);
    if (output->part && output->failed)
        unlink(output->part);
    free(output->part);
    output->part = NULL;
    return !output->failed;
}

void output_drop(struct output *output)
{
    if (!output->file)
        return;
    fclose(output->file);
    output->file = NULL;
    if (output->part)
        unlink(output->part);
    free(output->part);
    output->part = NULL;
}
