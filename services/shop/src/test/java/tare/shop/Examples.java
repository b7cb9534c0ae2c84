// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.nio.file.Path;

/** Settings of tests. */
final class Examples {
    static final int SLEEP_US = 5_000;

    private Examples() {}

    static Settings settings(Path folder) {
        return new Settings("http://users", "http://payments", 10, folder, 100_000, 140, 10, 20, 1, 10, 1, SLEEP_US);
    }
}
