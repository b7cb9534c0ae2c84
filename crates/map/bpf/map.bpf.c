// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "transitions.h"
#include "send_receive.h"
#include "drain.h"
#include "existing.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
