/* SPDX-License-Identifier: Apache-2.0 */
/* compat EVENTS: a program that is written for Cloudprofiler. It says what its calls have returned. */
#include <cloud_profiler.h>
#include <cstdio>
#include <cstdlib>
#include <thread>

static const char *const formats[] = {"ascii", "ascii tsc", "binary", "binary tsc",
                                      "zstd",  "zstd tsc",  "lzo1x",  "lzo1x tsc"};

int main(int, char **words) {
    const int64_t events = atoll(words[1]);
    for (int format = ASCII; format <= LZO1X_TSC; format++) {
        int64_t channel = openChannel(formats[format], static_cast<log_format>(format), BUFFER_IDENTITY);
        for (int64_t tuple = 0; tuple < events; tuple++)
            logTS(channel, tuple * tuple);
        nologTS(channel, 1);
        closeChannel(channel);
        logTS(channel, 1);
    }
    int64_t tenth = openChannel("tenth", ASCII, DOWNSAMPLE);
    int64_t some = openChannel("some of many", BINARY, XOY);
    int64_t none = openChannel("none", BINARY, NULLH);
    int64_t ends = openChannel("ends", ASCII, FIRSTLAST);
    int64_t middle = openChannel("middle", BINARY, MEDIAN);
    if (parameterizeChannel(middle, 0, 5))
        return 1;
    printf("%d", isOpen(tenth));
    printf(" %d", parameterizeChannel(some, 0, 3));
    printf(" %d", parameterizeChannel(some, 1, std::string("1KiB")));
    for (int64_t tuple = 0; tuple < 3000; tuple++) {
        logTS(tenth, tuple);
        logTS(some, tuple);
        logTS(none, tuple);
        logTS(ends, tuple);
        logTS(middle, tuple);
    }
    logTS(tenth, -1);
    closeChannel(ends);
    logTS(tenth, 4000);
    printf(" %d", isOpen(tenth));
    printf(" %d", parameterizeChannel(some, 1, 1000));
    printf(" %d", isOpen(some));
    logTS(some, 0);
    std::thread([] {
        int64_t again = openChannel("ascii", ASCII, IDENTITY);
        logTS(again, 7);
        int64_t outside = openChannel("a/b", BINARY, NET_CONF);
        logTS(outside, 8);
    }).join();
    printf(" %d\n", isOpen(0));
}
