// SPDX-License-Identifier: Apache-2.0
// What tests/log/test_java_agent.py weaves: it prints the same with the agent and without.
package com.acme;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;

interface Service {
    int serve(int value);

    default int twice(int value) {
        return serve(serve(value));
    }
}

class Base {
    static int made;
    final int value;

    static {
        made = 100;
    }

    Base(int value) {
        this.value = value;
        made++;
    }

    static int checked(int value) {
        if (value < 0) {
            throw new IllegalArgumentException("negative");
        }
        return value;
    }
}

/** Of it only what stands above it says that it is logged. */
class Worker extends Base implements Service, Comparable<Worker> {
    private final List<Integer> all = new ArrayList<>();

    Worker(int value) {
        super(checked(value > 50 ? value : new Base(value).value));
        if (value == 7) {
            throw new IllegalStateException("seven");
        }
    }

    Worker() {
        this(3);
    }

    @Override
    public synchronized int serve(int value) {
        all.add(value);
        return value + this.value;
    }

    /** Its bridge takes an Object. */
    @Override
    public int compareTo(Worker other) {
        return Integer.compare(value, other.value);
    }

    @Override
    public String toString() {
        return "worker " + value + all;
    }
}

public class Acme {
    private enum Mood {
        GOOD,
        BAD;

        Mood other() {
            return switch (this) {
                case GOOD -> BAD;
                case BAD -> GOOD;
            };
        }
    }

    private record Point(long x, double y) {
        Point {
            if (x < 0) {
                throw new IllegalArgumentException("x");
            }
        }

        double sum() {
            return x + y;
        }
    }

    private static int deepest;

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static int thrown(int value) {
        try {
            if (value > 1) {
                throw new IllegalStateException("caught here");
            }
            return fails(value);
        } catch (IllegalStateException e) {
            return -1;
        } finally {
            deepest += 1;
        }
    }

    static int fails(int value) {
        if (value > 0) {
            throw new UnsupportedOperationException("not caught where it is thrown");
        }
        return value;
    }

    static long overloaded(long value) {
        return value + 1;
    }

    static String overloaded(String value, int[] more) {
        return value + more.length;
    }

    static void endless(int depth) {
        deepest = Math.max(deepest, depth);
        endless(depth + 1);
    }

    static void nothing() {}

    static int loops(int times) {
        int sum = 0;
        for (int time = 0; time < times; time++) {
            Object reused = time % 2 == 0 ? "even" : Integer.valueOf(time);
            sum += reused.hashCode() & 1;
            if (sum > 100) {
                return sum;
            }
        }
        return -sum;
    }

    static void called() {
        deepest++;
    }

    static int attempt(Callable<?> call) {
        try {
            call.call();
            return 0;
        } catch (Exception e) {
            System.out.println(e.getMessage());
            return 1;
        }
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000;
            while (System.nanoTime() < until) {
                called();
                LockSupport.parkNanos(20_000);
            }
            nothing();
            return;
        }
        System.out.println(fibonacci(15));
        System.out.println(attempt(() -> thrown(0)) + attempt(() -> thrown(1)));
        System.out.println(attempt(() -> thrown(2)));
        System.out.println(attempt(() -> new Worker(-1)) + attempt(() -> new Worker(7)));
        Worker worker = new Worker();
        System.out.println(worker.twice(4) + " " + worker + " " + Base.made);
        List<Worker> workers = new ArrayList<>(List.of(new Worker(60), worker));
        workers.sort(Comparator.naturalOrder());
        System.out.println(workers);
        IntUnaryOperator lambda = value -> value * 2 + loops(value);
        System.out.println(lambda.applyAsInt(21) + Mood.GOOD.other().ordinal());
        System.out.println(overloaded(4) + overloaded("x", new int[3]));
        System.out.println(attempt(() -> new Point(-1, 0)) + new Point(1, 2.5).sum());
        try {
            endless(1);
        } catch (StackOverflowError e) {
            System.out.println(deepest > 100);
        }
        nothing();
        System.out.println(new Object() {
            int five() {
                return 5;
            }
        }.five());
    }
}
