// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.objectweb.asm.ClassReader;

/**
 * What classes have above them, read from class files: to load a class while another is being
 * loaded could end in a circle.
 */
final class Ancestors {
    private final Map<ClassLoader, Map<String, List<String>>> parents =
            Collections.synchronizedMap(new WeakHashMap<>());

    /** Names, with points, of all classes and interfaces above this one. */
    Set<String> of(ClassReader reader, ClassLoader loader) {
        Map<String, List<String>> known =
                parents.computeIfAbsent(loader, any -> new ConcurrentHashMap<>());
        Set<String> found = new HashSet<>();
        Deque<String> open = new ArrayDeque<>(parents(reader));
        while (!open.isEmpty()) {
            String name = open.pop();
            if (found.add(name.replace('/', '.'))) {
                List<String> above = known.get(name);
                if (above == null) {
                    // Without a lock: a loader may have locks of its own, and load classes.
                    above = read(name, loader);
                    known.put(name, above);
                }
                open.addAll(above);
            }
        }
        return found;
    }

    private static List<String> parents(ClassReader reader) {
        String parent = reader.getSuperName();
        List<String> interfaces = List.of(reader.getInterfaces());
        if (parent == null) {
            return interfaces;
        }
        List<String> all = new ArrayList<>(interfaces);
        all.add(parent);
        return all;
    }

    /** Nothing of a class without a file, as others make them while the program runs. */
    private static List<String> read(String name, ClassLoader loader) {
        try (InputStream file = loader.getResourceAsStream(name + ".class")) {
            return file == null ? List.of() : parents(new ClassReader(file));
        } catch (IOException | RuntimeException e) {
            return List.of();
        }
    }
}
