# SPDX-License-Identifier: Apache-2.0
"""Random calls on a linked connection return what they return on a plain one."""

from tests.link import differential

SEEDS = (3, 6, 11, 14, 22, 23, 33, 67, 127, 357, 406, 643, 672, 676)
OPERATIONS = 1500


def test_random_calls_return_the_same_with_and_without_a_link() -> None:
    compared = [differential.compare(seed, OPERATIONS) for seed in SEEDS]
    print("\n" + differential.table(differential.coverage(compared)))
    assert [done.difference for done in compared if done.difference] == []
    for done in compared:
        assert done.run.counts["reset"] == 0
        assert done.run.counts["ring_bytes_sent"] > 0
    assert len(differential.coverage(compared)) > 35


def test_streams_that_change_behind_every_byte_return_the_same() -> None:
    done = differential.compare_boundaries(7, 9, 200)
    assert (done.run.code, done.run.errors, done.difference) == (0, "", None)
    assert (done.run.counts["links"], done.run.counts["reset"]) == (6, 0)
    # Each change is a downgrade with an upgrade before it.
    changes = differential.coverage([done])["change"]
    assert changes > 2000
    assert done.run.reasons["downgraded"]["call"] >= changes
    assert done.run.counts["upgrades"] >= changes
