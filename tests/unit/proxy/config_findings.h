/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the configuration's checks share: a text is loaded, and what was found is compared
 * word for word. */
#ifndef SPILLWAY_TESTS_UNIT_PROXY_CONFIG_FINDINGS_H
#define SPILLWAY_TESTS_UNIT_PROXY_CONFIG_FINDINGS_H

#include "proxy/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HTTP "listeners: [{ name: web, bind: '127.0.0.1:0', protocol: http, pool: farm }]\n"
#define NFS  "listeners: [{ name: nas, bind: '127.0.0.1:0', protocol: nfs, pool: farm }]\n"
#define POOL "pools:\n- name: farm\n  servers: ['10.0.0.1:80']\n"

/* Loads the text; what was found is printed to a string, to be freed. */
static inline struct config *load_and_print(const char *text, char **printed)
{
    struct config_errors errors;
    struct config *config;
    size_t length;
    FILE *out = open_memstream(printed, &length);

    config_errors_init(&errors);
    config_load_text("f", text, strlen(text), CONFIG_NO_LOOKUP, &config, &errors);
    config_errors_print(&errors, out);
    fclose(out);
    config_errors_fini(&errors);
    return config;
}

/* The text is right, and there is nothing to say about it. */
static inline struct config *load(const char *text)
{
    char *printed;
    struct config *config = load_and_print(text, &printed);

    assert_string_equal(printed, "");
    assert_non_null(config);
    free(printed);
    return config;
}

static inline void expect(const char *text, const char *findings, bool loads)
{
    char *printed;
    struct config *config = load_and_print(text, &printed);

    assert_string_equal(printed, findings);
    assert_int_equal(config != NULL, loads);
    config_free(config);
    free(printed);
}

#endif
