// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import java.util.WeakHashMap;
import java.util.function.Predicate;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import tare.log.Probe;

/** Puts the logging into classes as they are loaded; those of Java itself stay as they are. */
final class Weaver implements ClassFileTransformer {
    static final int API = Opcodes.ASM9;

    private final Filter filter;
    private final Methods methods;
    private final boolean isCounted;
    private final Ancestors ancestors = new Ancestors();
    private final Map<ClassLoader, Boolean> hasProbe =
            Collections.synchronizedMap(new WeakHashMap<>());

    Weaver(Filter filter, Methods methods, boolean isCounted) {
        this.filter = filter;
        this.methods = methods;
        this.isCounted = isCounted;
    }

    @Override
    public byte[] transform(
            ClassLoader loader,
            String path,
            Class<?> before,
            ProtectionDomain domain,
            byte[] bytes) {
        if (path == null
                || loader == null
                || loader == ClassLoader.getPlatformClassLoader()
                || path.startsWith("tare/log/")) {
            return null;
        }
        String name = path.replace('/', '.');
        try {
            ClassReader reader = new ClassReader(bytes);
            Predicate<String> wanted =
                    filter.methods(name, () -> ancestors.of(reader, loader));
            boolean isWanted = wanted != null && hasProbe(loader);
            return isWanted ? weave(reader, loader, name, wanted) : null;
        } catch (RuntimeException | LinkageError e) {
            Start.say(name + " is not logged: " + e);
            return null;
        }
    }

    /**
     * Whether code of this loader finds the Probe that is woven in: some ask the bootstrap class
     * loader for nothing but Java's own packages, and some look at home first.
     */
    private boolean hasProbe(ClassLoader loader) {
        Boolean known = hasProbe.get(loader);
        if (known != null) {
            return known;
        }
        boolean has;
        try {
            has = Class.forName(Probe.class.getName(), false, loader) == Probe.class;
        } catch (ClassNotFoundException | LinkageError e) {
            has = false;
        }
        if (hasProbe.put(loader, has) == null && !has) {
            Start.say("classes of a " + loader.getClass().getName() + " are not logged, because it"
                    + " does not find the agent's package tare.log, or has another copy. Add the"
                    + " package to org.osgi.framework.bootdelegation (OSGi) or"
                    + " jboss.modules.system.pkgs (JBoss)");
        }
        return has;
    }

    /** Null where nothing is woven in. */
    private byte[] weave(
            ClassReader reader, ClassLoader loader, String name, Predicate<String> wanted) {
        Map<String, Integer> namesakes = namesakes(reader);
        boolean[] isChanged = new boolean[1];
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        ClassVisitor visitor =
                new ClassVisitor(API, writer) {
                    private boolean hasFrames;

                    @Override
                    public void visit(
                            int version,
                            int access,
                            String type,
                            String signature,
                            String parent,
                            String[] interfaces) {
                        hasFrames = (version & 0xffff) >= Opcodes.V1_6;
                        super.visit(version, access, type, signature, parent, interfaces);
                    }

                    @Override
                    public MethodVisitor visitMethod(
                            int access,
                            String method,
                            String descriptor,
                            String signature,
                            String[] exceptions) {
                        MethodVisitor to =
                                super.visitMethod(access, method, descriptor, signature, exceptions);
                        int without = Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE | Opcodes.ACC_BRIDGE;
                        if ((access & without) != 0 || !wanted.test(method)) {
                            return to;
                        }
                        String label = name + "." + method;
                        if (namesakes.get(method) > 1) {
                            label += parameters(descriptor);
                        }
                        Methods.Method known =
                                methods.get(loader, name, method, descriptor, label);
                        if (known.isOff || !known.hasChannels()) {
                            return to;
                        }
                        isChanged[0] = true;
                        return new WovenMethod(to, access, method, descriptor, known, isCounted, hasFrames);
                    }
                };
        reader.accept(visitor, ClassReader.EXPAND_FRAMES);
        return isChanged[0] ? writer.toByteArray() : null;
    }

    private static Map<String, Integer> namesakes(ClassReader reader) {
        Map<String, Integer> found = new HashMap<>();
        ClassVisitor counter =
                new ClassVisitor(API) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access, String name, String descriptor, String s, String[] e) {
                        if ((access & Opcodes.ACC_BRIDGE) == 0) {
                            found.merge(name, 1, Integer::sum);
                        }
                        return null;
                    }
                };
        reader.accept(counter, ClassReader.SKIP_CODE);
        return found;
    }

    /** As in {@code (int, String)}. */
    private static String parameters(String descriptor) {
        StringJoiner all = new StringJoiner(", ", "(", ")");
        for (Type type : Type.getArgumentTypes(descriptor)) {
            String name = type.getClassName();
            all.add(name.substring(name.lastIndexOf('.') + 1));
        }
        return all.toString();
    }
}
