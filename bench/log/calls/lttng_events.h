/* SPDX-License-Identifier: Apache-2.0 */
/* One event with a number, as LTTng-UST wants it declared. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tare_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"
#if !defined(LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENTS_H
#include <lttng/tracepoint.h>
#include <stdint.h>
LTTNG_UST_TRACEPOINT_EVENT(tare_bench, call, LTTNG_UST_TP_ARGS(int64_t, number),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, number, number)))
#endif
#include <lttng/tracepoint-event.h>
