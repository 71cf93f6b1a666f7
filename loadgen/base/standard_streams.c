/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers 0, 1 and 2 are taken. */
#include "loadgen/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void standard_streams_guard(void)
{
    /* From the lowest on: open() takes the first number that is free. Each is opened for what is
     * not done with it. */
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number)
            return;
    }
}
