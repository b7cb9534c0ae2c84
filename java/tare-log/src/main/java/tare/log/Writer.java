// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Writes the events of one platform thread into its ring: the fast path of tare_log.h, with the
 * same fields in the same order, so that C code of the thread goes on where Java has ended.
 */
final class Writer {
    /** Where the fields of a writer are (docs/formats/log-segment.md, tare_log.h). */
    static final int LIMIT = 0;

    static final int HEAD = 8;
    static final int WORDS = 16;
    static final int MASK = 24;
    static final int PUBLISHED = 32;

    /** The place of the payload in a record's tag. */
    static final int PAYLOAD_SHIFT = 18;

    /** Weak: a thread must not keep this class, and its loader with it. */
    private static final ThreadLocal<WeakReference<Writer>> MINE = new ThreadLocal<>();

    /** Keeps those that threads have, by their addresses; those of ended threads are reused. */
    private static final Map<Long, Writer> ALL = new ConcurrentHashMap<>();

    /**
     * What is looked at before the ThreadLocal, which takes 5 ns: the writer of whoever last came
     * for room, mostly the only thread that logs much; then one of those whose threads' numbers
     * end alike. All may be seen late, or be another's: each knows its owner.
     */
    private static Writer latest;

    private static final Writer[] KNOWN = new Writer[256];

    /** Weak, so that no thread, and no class loader of one, stays for its sake. */
    private final WeakReference<Thread> owner;

    private final long address;
    private final long words;
    private final long mask;
    private final long published;

    private Writer(long address) throws Throwable {
        this.address = address;
        owner = new WeakReference<>(Thread.currentThread());
        words = Memory.getLong(address + WORDS);
        mask = Memory.getLong(address + MASK);
        published = Memory.getLong(address + PUBLISHED);
    }

    /** That of the calling thread, if it is found at once; a virtual one has none. */
    static Writer of(Thread thread) {
        Writer writer = latest;
        if (writer != null && writer.owner.refersTo(thread)) {
            return writer;
        }
        writer = KNOWN[place(thread)];
        return writer != null && writer.owner.refersTo(thread) ? writer : null;
    }

    /** That of the calling platform thread; null before its first event. */
    static Writer mine() {
        WeakReference<Writer> mine = MINE.get();
        return mine == null ? null : mine.get();
    }

    /** Leaves the event to the library. */
    static void logSlowly(int channel, long payload) throws Throwable {
        keep(Native.log(before(), channel, payload));
    }

    static void logSlowly(int channel, byte[] bytes, int from, int length) throws Throwable {
        keep(Native.logBytes(before(), channel, bytes, from, length));
    }

    private static long before() {
        Writer mine = mine();
        return mine == null ? 0 : mine.address;
    }

    private static void keep(long address) throws Throwable {
        Writer mine = mine();
        if (address == 0) {
            MINE.remove();
            return;
        }
        if (mine == null || mine.address != address) {
            mine = new Writer(address);
            ALL.put(address, mine);
            MINE.set(new WeakReference<>(mine));
        }
        KNOWN[place(Thread.currentThread())] = mine;
        latest = mine;
    }

    /** Whatever a thread says of its number, this is a place. */
    @SuppressWarnings("deprecation") // threadId() is not there in Java 17
    private static int place(Thread thread) {
        return (int) thread.getId() & KNOWN.length - 1;
    }

    /** Writes an event with this tag now; false leaves it to the library. */
    boolean write(long tag) throws Throwable {
        // Behind a release, the compiler would read the fields again.
        long address = Memory.positive(this.address);
        long words = this.words;
        long mask = this.mask;
        long published = Memory.positive(this.published);
        long limit = Memory.getLong(address + LIMIT);
        if (limit == 0) {
            return false; // the end of the stack has broken an event off
        }
        // As in C, from here on a signal handler leaves its events to the library.
        Memory.putLongRelease(address + LIMIT, 0);
        long head = Memory.getLong(address + HEAD);
        boolean hasRoom = head + 2 <= limit;
        if (hasRoom) {
            long place = Memory.positive(words + ((head & mask) << 3));
            Memory.putLong(place, Clock.ticks());
            Memory.putLong(place + 8, tag);
            Memory.putLongRelease(published, head + 2);
            Memory.putLong(address + HEAD, head + 2);
        }
        Memory.putLongRelease(address + LIMIT, limit);
        return hasRoom;
    }
}
