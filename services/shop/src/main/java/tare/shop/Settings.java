// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.nio.file.Path;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** What application.properties explains. */
@ConfigurationProperties("shop")
record Settings(
        String usersUrl,
        String paymentsUrl,
        int amount,
        Path folder,
        int largeFileBytes,
        int smallFileBytes,
        int smallFileTimes,
        int linpack1Size,
        int linpack1Times,
        int linpack2Size,
        int linpack2Times,
        int sleepUs) {
    Settings {
        check("amount", amount, 1, Amount.MOST);
        check("large-file-bytes", largeFileBytes, 0, 1_000_000_000);
        check("small-file-bytes", smallFileBytes, 0, 1_000_000);
        check("small-file-times", smallFileTimes, 0, 100_000);
        check("linpack1-size", linpack1Size, 1, 2_000);
        check("linpack1-times", linpack1Times, 0, 100_000);
        check("linpack2-size", linpack2Size, 1, 2_000);
        check("linpack2-times", linpack2Times, 0, 100_000);
        check("sleep-us", sleepUs, 0, 1_000_000);
    }

    private static void check(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    "shop." + name + ": expected " + least + " to " + most + " (found " + value + ")");
        }
    }
}
