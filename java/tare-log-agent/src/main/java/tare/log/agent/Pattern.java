// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

/**
 * Names of classes and, behind #, of methods, in which * stands for any text.
 *
 * @param type of classes, with points
 * @param isInherited whether classes are meant that have such a one above them, too
 * @param method of methods
 */
record Pattern(String type, boolean isInherited, String method) {
    static Pattern of(String text) {
        int number = text.indexOf('#');
        String method = number < 0 ? "*" : text.substring(number + 1);
        String type = number < 0 ? text : text.substring(0, number);
        boolean isInherited = type.endsWith("+");
        return new Pattern(
                isInherited ? type.substring(0, type.length() - 1) : type, isInherited, method);
    }

    boolean hasType(String name) {
        return matches(type, name);
    }

    boolean hasMethod(String name) {
        return matches(method, name);
    }

    /** In time proportional to both lengths: the last * is the only one ever gone back to. */
    private static boolean matches(String pattern, String name) {
        int at = 0;
        int star = -1;
        int resume = 0;
        int place = 0;
        while (place < name.length()) {
            if (at < pattern.length() && pattern.charAt(at) == '*') {
                star = at++;
                resume = place;
            } else if (at < pattern.length() && pattern.charAt(at) == name.charAt(place)) {
                at++;
                place++;
            } else if (star >= 0) {
                at = star + 1;
                place = ++resume;
            } else {
                return false;
            }
        }
        while (at < pattern.length() && pattern.charAt(at) == '*') {
            at++;
        }
        return at == pattern.length();
    }
}
