// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;

/** The slow path, in libtare_log.so; loads it when it is first used. */
final class Native {
    /** Where the library was found, and what it is; or why there is none. */
    static final String FOUND;

    static final boolean IS_THERE;

    static {
        String found;
        boolean isThere = false;
        try {
            found = find();
            isThere = true;
        } catch (LinkageError | RuntimeException e) {
            found = "events are discarded: " + e.getMessage();
        }
        FOUND = found;
        IS_THERE = isThere;
    }

    private Native() {}

    /** What {@link #status} tells: the address of the modes of channels, 0 where there is no memory. */
    static final int MODES = 0;

    static final int IS_ON = 1;
    static final int IS_SERVED = 2;
    static final int CLOCK = 3;
    static final int RING_BYTES = 4;

    /** As of the library: what is longer keeps its beginning and its last byte. */
    private static final int LONGEST_NAME = 1024;

    /** The channel of this name; {@code options} may be null. */
    static int open(String name, Options options) {
        byte[] letters = name.getBytes(StandardCharsets.UTF_8);
        if (letters.length > LONGEST_NAME) {
            byte last = letters[letters.length - 1];
            letters = Arrays.copyOf(letters, LONGEST_NAME);
            letters[LONGEST_NAME - 1] = last;
        }
        return open(letters, options == null ? null : options.bytes());
    }

    private static native int open(byte[] name, byte[] options);

    static native void close(int channel);

    static native long log(long writer, int channel, long payload);

    static native long logBytes(long writer, int channel, byte[] bytes, int from, int length);

    static native int tryVirtual(int channel, long payload, int number);

    /** Where the function behind {@link #tryVirtual} is, or for 1 that behind {@link #ticks}. */
    static native long address(int what);

    static native void logVirtual(int channel, long payload, int number, byte[] name);

    static native void logVirtualBytes(
            int channel, byte[] bytes, int from, int length, int number, byte[] name);

    static native long ticks();

    static native long status(int what);

    static native boolean export(Module module, String name, Module to);

    /** The library that is named; that beside this jar, as the wheel has it; that of java.library.path. */
    private static String find() {
        String named = System.getProperty("tare.log.library", System.getenv("TARE_LOG_LIBRARY"));
        if (named != null) {
            return load(Path.of(named).toAbsolutePath());
        }
        Path beside = besideThisJar();
        if (beside != null && Files.exists(beside)) {
            return load(beside);
        }
        System.loadLibrary("tare_log");
        return "tare_log of java.library.path";
    }

    /** For a second class loader with this class a copy: the JVM gives no two the same file. */
    private static String load(Path library) {
        try {
            System.load(library.toString());
            return library.toString();
        } catch (UnsatisfiedLinkError e) {
            String said = e.getMessage();
            if (said == null || !said.contains("already loaded in another classloader")) {
                throw e;
            }
        }
        try {
            Path copy = Files.createTempFile("libtare_log", ".so");
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toString());
            } finally {
                Files.delete(copy);
            }
            return library + ", a copy of it";
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "another class loader loaded this library, and it cannot be copied: " + e, e);
        }
    }

    /** Of FOLDER/java/tare-log.jar: FOLDER/lib/libtare_log.so. */
    private static Path besideThisJar() {
        URL here = Native.class.getResource("Native.class");
        if (here == null || !here.getProtocol().equals("jar")) {
            return null;
        }
        String jar = here.getPath().substring(0, here.getPath().indexOf('!'));
        try {
            Path folder = Path.of(URI.create(jar)).toRealPath().getParent().getParent();
            return folder == null ? null : folder.resolve("lib/libtare_log.so");
        } catch (IOException | RuntimeException e) {
            return null; // no jar of a file system
        }
    }
}
