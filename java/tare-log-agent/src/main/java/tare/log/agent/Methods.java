// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import tare.log.Options;
import tare.log.Probe;

/** The methods that are logged, and those that are no longer. */
final class Methods {
    /** One of a class. */
    static final class Method {
        final String name;

        /** Channels of its beginning and its end. */
        final int begin;

        final int end;

        final WeakReference<ClassLoader> loader;
        final String type;
        volatile boolean isOff;

        Method(String name, ClassLoader loader, String type, Options options) {
            this.name = name;
            this.loader = new WeakReference<>(loader);
            this.type = type;
            begin = Probe.open(name + ">", options);
            end = Probe.open(name + "<", options);
        }

        /** Whether there are channels left for it. */
        boolean hasChannels() {
            return begin >>> 2 != 0 && end >>> 2 != 0;
        }
    }

    private record Key(String type, String method, String descriptor) {}

    private final Map<ClassLoader, Map<Key, Method>> known =
            Collections.synchronizedMap(new WeakHashMap<>());
    private final List<Method> all = new ArrayList<>();
    private final Options options;
    private boolean hasAll = true;
    private boolean hadAny;

    /** With options for the channels of all. */
    Methods(Options options) {
        this.options = options;
    }

    /**
     * The method, the same whenever it is asked for.
     *
     * @param loader of its class
     * @param type its class, with points
     * @param label what its channels are called by
     */
    Method get(ClassLoader loader, String type, String method, String descriptor, String label) {
        Objects.requireNonNull(loader);
        return known.computeIfAbsent(loader, any -> new ConcurrentHashMap<>())
                .computeIfAbsent(
                        new Key(type, method, descriptor), any -> add(label, loader, type));
    }

    private synchronized Method add(String label, ClassLoader loader, String type) {
        Method method = new Method(label, loader, type, options);
        if (!method.hasChannels() && hasAll) {
            hasAll = false;
            Start.say("all channels are used: not logged are " + label
                    + " and later methods; include fewer methods");
        }
        all.add(method);
        hadAny = true;
        return method;
    }

    synchronized boolean hadAny() {
        return hadAny;
    }

    /** Those whose classes may still be there. */
    synchronized List<Method> all() {
        all.removeIf(method -> method.loader.refersTo(null));
        return List.copyOf(all);
    }
}
