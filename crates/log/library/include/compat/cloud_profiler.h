/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that include Cloudprofiler's header: compile them with this folder in its place. */
#include "../tare_log_compat.h"
