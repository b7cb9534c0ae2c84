// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Solves a dense system of linear equations by LU factorisation with partial pivoting, as dgefa and
 * dgesl of LINPACK do (Dongarra, Bunch, Moler, Stewart: LINPACK Users' Guide, 1979, chapter 1).
 * Columns are rows of the arrays, so that the inner loop runs along memory.
 */
final class Linpack {
    /** The limit that the benchmark HPL has, too: beyond it the solution is wrong. */
    private static final double MOST_RESIDUAL = 16;

    private final double[][] factors;
    private final double[] solution;
    private final int size;
    private long operations;

    private Linpack(double[][] matrix, double[] right) {
        size = right.length;
        factors = Arrays.stream(matrix).map(double[]::clone).toArray(double[][]::new);
        solution = right.clone();
    }

    /** A solution, and the floating-point operations of factorisation and substitution. */
    record Result(double[] solution, long operations) {}

    /** Solves the same system `times` times. */
    static void run(int size, int times) {
        for (int time = 0; time < times; time++) {
            double[][] matrix = matrix(size);
            double[] right = rowSums(matrix);
            double residual = residual(matrix, right, solve(matrix, right).solution());
            // The compiler cannot remove work that decides this. A comparison with NaN is false.
            if (!(residual < MOST_RESIDUAL)) {
                throw new IllegalStateException(
                        "Linpack: residual " + residual + " (expected less than " + MOST_RESIDUAL + ")");
            }
        }
    }

    static Result solve(double[][] matrix, double[] right) {
        Linpack linpack = new Linpack(matrix, right);
        linpack.substitute(linpack.factorise());
        return new Result(linpack.solution, linpack.operations);
    }

    /** dgefa: replaces the matrix by its factors; the row of each pivot. */
    private int[] factorise() {
        int[] pivots = new int[size];
        for (int step = 0; step < size; step++) {
            double[] column = factors[step];
            int pivot = step;
            for (int row = step + 1; row < size; row++) {
                if (Math.abs(column[row]) > Math.abs(column[pivot])) {
                    pivot = row;
                }
            }
            pivots[step] = pivot;
            swap(column, step, pivot);
            double scale = -1 / column[step];
            for (int row = step + 1; row < size; row++) {
                column[row] *= scale;
            }
            operations += size - step - 1;
            for (int other = step + 1; other < size; other++) {
                swap(factors[other], step, pivot);
                addMultiple(factors[other][step], column, factors[other], step + 1, size);
            }
        }
        return pivots;
    }

    /** dgesl: replaces the right side by the solution. */
    private void substitute(int[] pivots) {
        for (int step = 0; step < size; step++) {
            swap(solution, step, pivots[step]);
            addMultiple(solution[step], factors[step], solution, step + 1, size);
        }
        for (int step = size - 1; step >= 0; step--) {
            solution[step] /= factors[step][step];
            addMultiple(-solution[step], factors[step], solution, 0, step);
        }
        operations += size;
    }

    /** daxpy. */
    private void addMultiple(double factor, double[] from, double[] to, int begin, int end) {
        for (int row = begin; row < end; row++) {
            to[row] += factor * from[row];
        }
        operations += 2L * (end - begin);
    }

    private static void swap(double[] values, int first, int second) {
        double value = values[first];
        values[first] = values[second];
        values[second] = value;
    }

    private static double[][] matrix(int size) {
        SplittableRandom random = new SplittableRandom(size);
        double[][] matrix = new double[size][size];
        for (double[] column : matrix) {
            for (int row = 0; row < size; row++) {
                column[row] = random.nextDouble() - 0.5;
            }
        }
        return matrix;
    }

    /** The right side that has the solution 1, 1, ... */
    private static double[] rowSums(double[][] matrix) {
        double[] sums = new double[matrix.length];
        for (double[] column : matrix) {
            for (int row = 0; row < sums.length; row++) {
                sums[row] += column[row];
            }
        }
        return sums;
    }

    /** |Ax - b| / (n |A| |x| eps), in the maximum norm. */
    static double residual(double[][] matrix, double[] right, double[] solution) {
        int size = right.length;
        double[] difference = right.clone();
        double largest = 0;
        double largestSolution = 0;
        for (int column = 0; column < size; column++) {
            largestSolution = Math.max(largestSolution, Math.abs(solution[column]));
            for (int row = 0; row < size; row++) {
                difference[row] -= matrix[column][row] * solution[column];
                largest = Math.max(largest, Math.abs(matrix[column][row]));
            }
        }
        double worst = 0;
        for (double value : difference) {
            worst = Math.max(worst, Math.abs(value));
        }
        return worst / (size * largest * largestSolution * Math.ulp(1.0));
    }
}
