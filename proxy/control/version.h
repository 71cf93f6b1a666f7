/* SPDX-License-Identifier: Apache-2.0 */
/* The version that the programs print and the metrics page names. */
#ifndef SPILLWAY_CONTROL_VERSION_H
#define SPILLWAY_CONTROL_VERSION_H

#define SPILLWAY_VERSION "0.1.0"

#endif
