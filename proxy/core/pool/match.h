/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request meets the conditions of a route or a flow. Pure functions, no lock. */
#ifndef SPILLWAY_CORE_POOL_MATCH_H
#define SPILLWAY_CORE_POOL_MATCH_H

#include "proxy/core/pool/plan.h"

bool match_http(const struct config_match *match, const struct http_facts *facts);
bool match_nfs(const struct config_match *match, const struct nfs_facts *facts);

#endif
