// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.UUID;

/**
 * A file of one request. Linux deletes its name as soon as it is open (DELETE_ON_CLOSE), so that
 * nothing is left over even if the service is killed.
 */
final class ScratchFile implements AutoCloseable {
    private static final int BLOCK_BYTES = 65_536;

    private final FileChannel file;
    private final ByteBuffer block = ByteBuffer.allocateDirect(BLOCK_BYTES);

    ScratchFile(Path folder) throws IOException {
        file = FileChannel.open(
                folder.resolve("shop-" + UUID.randomUUID()),
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE,
                StandardOpenOption.DELETE_ON_CLOSE);
    }

    /** Writes this many bytes from the start of the file. */
    void write(int bytes) throws IOException {
        for (int position = 0; position < bytes; ) {
            block.position(0).limit(Math.min(BLOCK_BYTES, bytes - position));
            position += file.write(block, position);
        }
    }

    /** Reads this many bytes from the start of the file. */
    void read(int bytes) throws IOException {
        for (int position = 0; position < bytes; ) {
            block.position(0).limit(Math.min(BLOCK_BYTES, bytes - position));
            int read = file.read(block, position);
            if (read < 0) {
                throw new EOFException("the file has " + position + " of " + bytes + " bytes");
            }
            position += read;
        }
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
