// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ScratchFileTest {
    @TempDir private Path folder;

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 140, 65_536, 65_537, 2_400_000})
    void readsWhatItWrote(int bytes) throws IOException {
        try (ScratchFile file = new ScratchFile(folder)) {
            file.write(bytes);
            file.read(bytes);
            assertThatThrownBy(() -> file.read(bytes + 1))
                    .isInstanceOf(EOFException.class)
                    .hasMessage("the file has " + bytes + " of " + (bytes + 1) + " bytes");
        }
    }

    @Test
    void writingAgainNeedsNoMoreSpace() throws IOException {
        try (ScratchFile file = new ScratchFile(folder)) {
            file.write(140);
            file.write(140);
            assertThatThrownBy(() -> file.read(141)).isInstanceOf(EOFException.class);
        }
    }

    @Test
    void filesOfConcurrentRequestsAreSeparate() throws IOException {
        List<ScratchFile> files = new ArrayList<>();
        for (int bytes = 0; bytes < 100; bytes++) {
            files.add(new ScratchFile(folder));
            files.get(bytes).write(bytes);
        }
        for (int bytes = 0; bytes < 100; bytes++) {
            int more = bytes + 1;
            try (ScratchFile file = files.get(bytes)) {
                file.read(bytes);
                assertThatThrownBy(() -> file.read(more)).isInstanceOf(EOFException.class);
            }
        }
    }

    @Test
    void leavesNoFileEvenWhileItIsOpen() throws IOException {
        try (ScratchFile file = new ScratchFile(folder)) {
            file.write(140);
            assertThat(folder).isEmptyDirectory();
        }
    }

    @Test
    void needsItsFolder() {
        assertThatThrownBy(() -> new ScratchFile(folder.resolve("absent"))).isInstanceOf(NoSuchFileException.class);
    }
}
