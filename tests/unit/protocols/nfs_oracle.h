/* SPDX-License-Identifier: Apache-2.0 */
/* libnfs's XDR routines as an independent decoder and encoder of NFS and MOUNT. The library is
 * loaded at run time, so that only the tests that ask it depend on it. */
#ifndef SPILLWAY_TESTS_UNIT_PROTOCOLS_NFS_ORACLE_H
#define SPILLWAY_TESTS_UNIT_PROTOCOLS_NFS_ORACLE_H

#include <dlfcn.h>
#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs-raw-nfs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t nfs_oracle_routine(ZDR *zdrs, void *object);

struct nfs_oracle {
    ZDR zdrs; /* owns what a decoded object points at */
};

/* A symbol of libnfs; the program ends with a message when it is not there. */
static inline void *nfs_oracle_symbol(const char *name)
{
    static void *library;
    void *symbol;

    if (!library)
        library = dlopen("libnfs.so", RTLD_NOW | RTLD_LOCAL);
    symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "libnfs (package libnfs-dev) is needed: %s\n", dlerror());
        abort();
    }
    return symbol;
}

static inline uint32_t nfs_oracle_position(struct nfs_oracle *o)
{
    uint32_t (*getpos)(ZDR *) = (uint32_t(*)(ZDR *))nfs_oracle_symbol("libnfs_zdr_getpos");

    return getpos(&o->zdrs);
}

static inline void nfs_oracle_create(struct nfs_oracle *o, void *buf, uint32_t size, enum zdr_op op)
{
    void (*create)(ZDR *, caddr_t, uint32_t, enum zdr_op) =
        (void (*)(ZDR *, caddr_t, uint32_t, enum zdr_op))nfs_oracle_symbol("libnfs_zdrmem_create");

    memset(&o->zdrs, 0, sizeof o->zdrs);
    create(&o->zdrs, buf, size, op);
}

/* Frees what the last decoded object points at. */
static inline void nfs_oracle_release(struct nfs_oracle *o)
{
    void (*destroy)(ZDR *) = (void (*)(ZDR *))nfs_oracle_symbol("libnfs_zdr_destroy");

    destroy(&o->zdrs);
}

/* Decodes buf[0..len) with the routine named (zdr_READ3res, ...): true when it is one object and
 * uses every byte. Release afterwards, whatever the result. */
static inline bool nfs_oracle_decode(struct nfs_oracle *o, const char *routine, const uint8_t *buf,
                                     size_t len, void *object)
{
    nfs_oracle_routine *decode = (nfs_oracle_routine *)nfs_oracle_symbol(routine);

    nfs_oracle_create(o, (void *)(uintptr_t)buf, (uint32_t)len, ZDR_DECODE);
    return decode(&o->zdrs, object) && nfs_oracle_position(o) == len;
}

/* libnfs allocates what it decodes without regard to alignment: lists and arrays are read by
 * copying an element out. False at a list's end. */
static inline bool nfs_oracle_element(void *element, const void *from, size_t size)
{
    if (!from)
        return false;
    memcpy(element, from, size);
    return true;
}

/* Encodes into buf; returns the bytes. */
static inline size_t nfs_oracle_encode(const char *routine, void *object, uint8_t *buf, size_t size)
{
    nfs_oracle_routine *encode = (nfs_oracle_routine *)nfs_oracle_symbol(routine);
    struct nfs_oracle o;
    size_t bytes;

    nfs_oracle_create(&o, buf, (uint32_t)size, ZDR_ENCODE);
    if (!encode(&o.zdrs, object))
        abort();
    bytes = nfs_oracle_position(&o);
    nfs_oracle_release(&o);
    return bytes;
}

#endif
