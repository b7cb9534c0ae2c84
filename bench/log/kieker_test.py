# SPDX-License-Identifier: Apache-2.0
import struct

import pytest
from bench.log.kieker import Records

OPERATION = "kieker.common.record.controlflow.OperationExecutionRecord"
METADATA = "kieker.common.record.misc.KiekerMetadataRecord"


def text(number: int, words: str) -> bytes:
    letters = words.encode()
    return struct.pack(">iii", -1, number, len(letters)) + letters


def execution(signature: int) -> bytes:
    # type, logged, signature, session, trace, in, out, host, order, depth
    return struct.pack(">iqiiqqqiii", 5, 1, signature, 7, 3, 1, 2, 3, 0, 0)


STREAM = b"".join(
    [
        text(0, METADATA),
        struct.pack(">iqiiii?qiq", 0, 1, 1, 2, 3, 1, False, 0, 4, 0),
        text(5, OPERATION),
        text(6, "static acme.Shop()"),
        execution(6),
        text(9, "public long acme.Shop.sell(long,int)"),
        *[execution(9)] * 3,
        text(10, "public long acme.Shop.sellAll()"),
        execution(10),
        execution(9),
    ]
)


@pytest.mark.parametrize("piece", [1, 7, 56, len(STREAM)])
def test_executions_of_a_method_are_counted_in_any_pieces(piece: int) -> None:
    records = Records("sell")
    for at in range(0, len(STREAM), piece):
        records.feed(STREAM[at : at + piece])
    assert records.found == 4


def test_what_breaks_off_is_not_counted_and_what_is_unknown_is_refused() -> None:
    records = Records("sell")
    records.feed(STREAM[:-1])
    assert records.found == 3
    with pytest.raises(ValueError, match="a record of type 8"):
        Records("sell").feed(struct.pack(">iii", 8, 0, 0))
