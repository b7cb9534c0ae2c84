# SPDX-License-Identifier: Apache-2.0
"""LZO1X, read as Documentation/staging/lzo.rst of Linux describes it, step by step."""


def unpack(data: bytes) -> bytes:
    """The content of one block."""
    out = bytearray()
    place = 0

    def byte() -> int:
        nonlocal place
        place += 1
        return data[place - 1]

    def literals(count: int) -> None:
        nonlocal place
        out.extend(data[place : place + count])
        place += count

    def longer(base: int) -> int:
        """A length that did not fit: each 0 is 255 more."""
        while (more := byte()) == 0:
            base += 255
        return base + more

    def copy(distance: int, length: int) -> None:
        assert 0 < distance <= len(out)
        for _ in range(length):
            out.append(out[-distance])

    state = 0
    if data[0] > 17:
        count = byte() - 17
        literals(count)
        state = min(count, 4)
    while True:
        code = byte()
        if code >= 64:
            is_long = code >= 128
            length = 5 + (code >> 5 & 3) if is_long else 3 + (code >> 5 & 1)
            distance = (byte() << 3) + (code >> 2 & 7) + 1
            state = code & 3
        elif code >= 16:
            mask = 31 if code >= 32 else 7
            length = 2 + (code & mask or longer(mask))
            after = byte() | byte() << 8
            distance = (after >> 2) + 1
            if code < 32:
                distance += 16383 + ((code & 8) << 11)
                if distance == 16384:
                    assert place == len(data)
                    return bytes(out)
            state = after & 3
        elif state == 0:
            literals(3 + (code or longer(15)))
            state = 4
            continue
        else:
            length = 3 if state == 4 else 2
            distance = (byte() << 2) + (code >> 2) + (2049 if state == 4 else 1)
            state = code & 3
        copy(distance, length)
        literals(state)
