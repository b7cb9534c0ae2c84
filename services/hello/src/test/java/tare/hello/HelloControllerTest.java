// SPDX-License-Identifier: Apache-2.0
package tare.hello;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class HelloControllerTest {
    @Test
    void waitsAsLongAsTheVariableAsksWhereTheRequestSaysNothing() {
        long start = System.nanoTime();
        assertThat(new HelloController("20000").hello(null).getBody()).isEqualTo("Hello World");
        assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(20_000_000);
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "1000001", "soon", ""})
    void doesNotStartWithAnyOtherVariable(String variable) {
        assertThatThrownBy(() -> new HelloController(variable))
                .hasMessage("BUSY_WAIT_US: expected whole microseconds from 0 to 1000000");
    }
}
