// SPDX-License-Identifier: Apache-2.0
package cp.swig;

/** What happens to an event. */
public enum handler_type {
    IDENTITY,
    BUFFER_IDENTITY,
    BUFFER_IDENTITY_COMP,
    MEDIAN,
    DOWNSAMPLE,
    XOY,
    FIRSTLAST,
    PERIODICCOUNTER,
    FASTPERIODICCOUNTER,
    NULLH,
    NET_CONF,
    FOX_START,
    FOX_END;

    public int swigValue() {
        return ordinal();
    }
}
