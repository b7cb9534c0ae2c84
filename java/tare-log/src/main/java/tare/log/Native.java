// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.io.File;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;

/** The slow path, in libtare_log.so; loads it when it is first used. */
final class Native {
    /** Where the library was found, and what it is; or why there is none. */
    static final String FOUND;

    static final boolean IS_THERE;

    static {
        String found;
        boolean isThere = false;
        try {
            found = load();
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

    static native int open(byte[] name, byte[] options);

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
    private static String load() {
        String named = System.getProperty("tare.log.library", System.getenv("TARE_LOG_LIBRARY"));
        if (named != null) {
            System.load(new File(named).getAbsolutePath());
            return named;
        }
        Path beside = besideThisJar();
        if (beside != null && Files.exists(beside)) {
            System.load(beside.toString());
            return beside.toString();
        }
        System.loadLibrary("tare_log");
        return "tare_log of java.library.path";
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
        } catch (java.io.IOException | RuntimeException e) {
            return null; // no jar of a file system
        }
    }
}
