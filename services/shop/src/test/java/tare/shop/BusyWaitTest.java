// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.junit.jupiter.api.Test;

class BusyWaitTest {
    private static final long MILLISECOND = 1_000_000;

    @Test
    void lastsAsLongAsAskedAlsoAfterItWasCompiled() {
        for (int warmUp = 0; warmUp < 20_000; warmUp++) {
            BusyWait.spin(1_000);
        }
        for (int repetition = 0; repetition < 20; repetition++) {
            long start = System.nanoTime();
            BusyWait.spin(2 * MILLISECOND);
            assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(2 * MILLISECOND);
        }
    }

    @Test
    void keepsTheCpuBusy() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadCpuTime();
        BusyWait.spin(50 * MILLISECOND);
        assertThat(threads.getCurrentThreadCpuTime()).isGreaterThan(before);
    }
}
