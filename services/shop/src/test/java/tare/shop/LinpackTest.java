// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LinpackTest {
    /** 2y = 4, 3x + y = 5: the first pivot is in the second row. */
    private static final double[][] COLUMNS = {{0, 3}, {2, 1}};
    private static final double[] RIGHT = {4, 5};

    @Test
    void solvesASystemThatNeedsPivots() {
        assertThat(Linpack.solve(COLUMNS, RIGHT).solution()).containsExactly(new double[] {1, 2}, within(1e-15));
    }

    @Test
    void leavesTheSystemAsItWas() {
        Linpack.solve(COLUMNS, RIGHT);
        assertThat(COLUMNS).isDeepEqualTo(new double[][] {{0, 3}, {2, 1}});
        assertThat(RIGHT).containsExactly(4, 5);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 10, 64, 255})
    void findsASolutionThatIsKnown(int size) {
        Random random = new Random(size);
        double[] solution = random.doubles(size, -1, 1).toArray();
        double[][] columns = new double[size][];
        double[] right = new double[size];
        for (int column = 0; column < size; column++) {
            columns[column] = random.doubles(size, -1, 1).toArray();
            for (int row = 0; row < size; row++) {
                right[row] += columns[column][row] * solution[column];
            }
        }
        double[] found = Linpack.solve(columns, right).solution();
        assertThat(found).containsExactly(solution, within(1e-9));
        assertThat(Linpack.residual(columns, right, found)).isLessThan(16);
        found[size / 2] += 1e-9;
        assertThat(Linpack.residual(columns, right, found)).isGreaterThan(16);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 10, 100})
    void countsTheOperationsOfTheTextbook(int size) {
        long expected = size;
        for (long rest = 0; rest < size; rest++) {
            // A column is scaled, and added to each other; substitution goes forward and back.
            expected += rest + 2 * rest * rest + 2 * rest + 2 * rest;
        }
        double[][] columns = new double[size][size];
        for (int step = 0; step < size; step++) {
            columns[step][step] = 1;
        }
        assertThat(Linpack.solve(columns, new double[size]).operations()).isEqualTo(expected);
    }

    @Test
    void theResidualOfASingularSystemIsNoNumber() {
        double[][] columns = {{0, 0}, {1, 1}};
        double[] found = Linpack.solve(columns, RIGHT).solution();
        assertThat(Linpack.residual(columns, RIGHT, found)).isNaN();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 100, 200, 300, 512})
    void acceptsItsOwnSystems(int size) {
        assertThatCode(() -> Linpack.run(size, 2)).doesNotThrowAnyException();
    }

    @Test
    void noTimeIsNoWork() {
        assertThatCode(() -> Linpack.run(-1, 0)).doesNotThrowAnyException();
        assertThatThrownBy(() -> Linpack.run(-1, 1)).isInstanceOf(NegativeArraySizeException.class);
    }
}
