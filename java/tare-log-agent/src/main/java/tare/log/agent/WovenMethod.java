// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.commons.AdviceAdapter;

/**
 * A method that logs when it begins and ends, by return or exception. Constructors begin when
 * that of the class above has come back: before that, no handler of exceptions may be there.
 */
final class WovenMethod extends AdviceAdapter {
    private static final String PROBE = "tare/log/Probe";

    private record Range(Label from, Label to) {}

    private final Methods.Method method;
    private final boolean isCounted;
    private final boolean hasFrames;

    /** The code between what was woven in. */
    private final List<Range> ranges = new ArrayList<>();

    /** Null until the method has begun. */
    private Label from;

    WovenMethod(
            MethodVisitor to,
            int access,
            String name,
            String descriptor,
            Methods.Method method,
            boolean isCounted,
            boolean hasFrames) {
        super(Weaver.API, to, access, name, descriptor);
        this.method = method;
        this.isCounted = isCounted;
        this.hasFrames = hasFrames;
    }

    @Override
    protected void onMethodEnter() {
        if (isCounted) {
            mv.visitLdcInsn(method.begin);
            mv.visitMethodInsn(Opcodes.INVOKESTATIC, PROBE, "count", "(I)V", false);
        }
        log(method.begin);
        begin();
    }

    @Override
    protected void onMethodExit(int opcode) {
        if (opcode != Opcodes.ATHROW && from != null) {
            Label to = new Label();
            mv.visitLabel(to);
            ranges.add(new Range(from, to));
            log(method.end);
        }
    }

    @Override
    public void visitInsn(int opcode) {
        super.visitInsn(opcode);
        if (from != null && opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
            begin();
        }
    }

    private void begin() {
        from = new Label();
        mv.visitLabel(from);
    }

    @Override
    public void visitMaxs(int stack, int locals) {
        Label handler = new Label();
        mv.visitLabel(handler);
        if (from != null) {
            ranges.add(new Range(from, handler));
        }
        ranges.removeIf(range -> range.from.getOffset() == range.to.getOffset());
        if (!ranges.isEmpty()) {
            if (hasFrames) {
                // Nothing is known of variables, whatever the method does with them.
                Object[] thrown = {"java/lang/Throwable"};
                mv.visitFrame(Opcodes.F_NEW, 0, new Object[0], 1, thrown);
            }
            log(method.end);
            mv.visitInsn(Opcodes.ATHROW);
            // The last in the table: handlers of the method's own come first.
            ranges.forEach(range -> mv.visitTryCatchBlock(range.from, range.to, handler, null));
        }
        super.visitMaxs(stack, locals);
    }

    private void log(int channel) {
        mv.visitLdcInsn(channel);
        mv.visitMethodInsn(Opcodes.INVOKESTATIC, PROBE, "log", "(I)V", false);
    }
}
