/* SPDX-License-Identifier: Apache-2.0 */
/* second FILE: has its data as descriptor 2, limits the size of files, and logs. */
#include <fcntl.h>
#include <sys/resource.h>
#include <tare_log.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct rlimit small = {1 << 20, 1 << 20};
    close(2);
    if (argc < 2 || open(argv[1], O_RDWR | O_CREAT, 0600) != 2)
        return 1;
    setrlimit(RLIMIT_FSIZE, &small);
    tare_log(tare_log_open("numbers"), 1);
    return 0;
}
