// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Which methods are logged.
 *
 * @param include those of these patterns
 * @param exclude but not those
 */
record Filter(List<Pattern> include, List<Pattern> exclude) {
    /**
     * The names of methods of class {@code name} that are logged; null for none.
     *
     * @param above names of the classes and interfaces that it has above it, asked only where a
     *     pattern needs them
     */
    Predicate<String> methods(String name, Supplier<Set<String>> above) {
        List<Pattern> wanted = of(include, name, above);
        if (wanted.isEmpty()) {
            return null;
        }
        List<Pattern> unwanted = of(exclude, name, above);
        return method ->
                wanted.stream().anyMatch(pattern -> pattern.hasMethod(method))
                        && unwanted.stream().noneMatch(pattern -> pattern.hasMethod(method));
    }

    private static List<Pattern> of(
            List<Pattern> patterns, String name, Supplier<Set<String>> above) {
        return patterns.stream()
                .filter(
                        pattern ->
                                pattern.hasType(name)
                                        || pattern.isInherited()
                                                && above.get().stream().anyMatch(pattern::hasType))
                .toList();
    }
}
