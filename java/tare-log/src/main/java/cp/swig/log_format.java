// SPDX-License-Identifier: Apache-2.0
package cp.swig;

/** How a channel's file is written. */
public enum log_format {
    ASCII,
    ASCII_TSC,
    BINARY,
    BINARY_TSC,
    ZSTD,
    ZSTD_TSC,
    LZO1X,
    LZO1X_TSC;

    public int swigValue() {
        return ordinal();
    }
}
