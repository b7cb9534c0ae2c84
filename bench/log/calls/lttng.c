/* SPDX-License-Identifier: Apache-2.0 */
/* Logs events with LTTng-UST. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"
#include "timed_loop.h"

int main(void) { TIMED_LOOP(next, lttng_ust_tracepoint(tare_bench, call, next)); }
