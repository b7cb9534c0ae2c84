// SPDX-License-Identifier: Apache-2.0
// covers: read, write, accept
// cc: -fexceptions
// With unwind tables the cleanup is found by walking through the hook's own frames.
#include "cancelled.c"
