/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong with a call, in words. */
#include "loadgen/client/nfs/nfs_calls.h"

#include <stdio.h>

/* RFC 1813 and RFC 8881 share these numbers. */
static const struct {
    uint32_t status;
    const char *name;
} names[] = {
    {1, "PERM"},        {2, "NOENT"},           {5, "IO"},        {13, "ACCES"},
    {17, "EXIST"},      {20, "NOTDIR"},         {21, "ISDIR"},    {22, "INVAL"},
    {27, "FBIG"},       {28, "NOSPC"},          {30, "ROFS"},     {63, "NAMETOOLONG"},
    {66, "NOTEMPTY"},   {69, "DQUOT"},          {70, "STALE"},    {10001, "BADHANDLE"},
    {10004, "NOTSUPP"}, {10006, "SERVERFAULT"}, {10013, "GRACE"}, {10016, "WRONGSEC"},
};

const char *nfs_call_problem(uint32_t status, char text[NFS_CALL_PROBLEM_BYTES])
{
    const char *name = NULL;

    if (status == 0)
        return "the server refused the RPC call, or its reply is malformed or not whole";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].status == status)
            name = names[i].name;
    }
    if (name)
        snprintf(text, NFS_CALL_PROBLEM_BYTES, "NFS status %u (%s)", status, name);
    else
        snprintf(text, NFS_CALL_PROBLEM_BYTES, "NFS status %u", status);
    return text;
}
