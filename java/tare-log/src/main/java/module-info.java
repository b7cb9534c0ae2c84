// SPDX-License-Identifier: Apache-2.0
/** Event logging; what it needs of the JVM beside java.base is memory and the tick counter. */
module tare.log {
    requires jdk.jfr;
    requires jdk.unsupported;

    exports cp.swig;
    exports tare.log;
}
