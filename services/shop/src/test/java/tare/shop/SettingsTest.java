// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.test.context.ConfigDataApplicationContextInitializer;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class SettingsTest {
    @EnableConfigurationProperties(Settings.class)
    private static class Application {}

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withInitializer(new ConfigDataApplicationContextInitializer())
            .withUserConfiguration(Application.class);

    @Test
    void theFileHasTheSizesOfTheThesis() {
        runner.run(context -> {
            Settings settings = context.getBean(Settings.class);
            assertThat(settings.largeFileBytes()).isEqualTo(2_400_000);
            assertThat(settings.smallFileBytes()).isEqualTo(140);
            assertThat(settings.smallFileTimes()).isEqualTo(10);
            assertThat(settings.sleepUs()).isZero();
            assertThat(settings.folder()).isEqualTo(Path.of(System.getProperty("java.io.tmpdir")));
        });
    }

    @ParameterizedTest
    @CsvSource({
        "amount,0,1 to 1000000", "sleep-us,-1,0 to 1000000", "sleep-us,1000001,0 to 1000000",
        "large-file-bytes,-1,0 to 1000000000", "small-file-bytes,-1,0 to 1000000",
        "small-file-times,-1,0 to 100000", "linpack1-size,0,1 to 2000", "linpack1-times,-1,0 to 100000",
        "linpack2-size,2001,1 to 2000", "linpack2-times,100001,0 to 100000"
    })
    void aSettingOutOfItsRangeIsAnError(String name, int value, String range) {
        runner.withPropertyValues("shop." + name + "=" + value).run(context ->
                assertThatThrownBy(() -> context.getBean(Settings.class))
                        .rootCause()
                        .hasMessage("shop." + name + ": expected " + range + " (found " + value + ")"));
    }
}
