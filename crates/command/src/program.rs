// SPDX-License-Identifier: Apache-2.0
//! What can be run with a preload library: programs into which the dynamic loader of glibc loads
//! it. Anything else would run without it, silently, so it is refused up front.

use crate::Failure;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What to do about a command that cannot be run.
pub const CURE: &str = "name a program that can be executed";
/// The kernel follows scripts whose interpreter is a script this often.
const INTERPRETERS: usize = 5;
/// Bytes of a script's first line that the kernel looks at (BINPRM_BUF_SIZE).
const FIRST_LINE: usize = 256;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;

/// A program that was looked at before it runs.
#[derive(Debug)]
pub struct Program {
    /// Where it was found.
    pub path: PathBuf,
    /// The file that decides: the program itself, or the interpreter of a script.
    pub file: PathBuf,
    pub fitness: Fitness,
}

/// Whether a preload library works in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fitness {
    Fit,
    /// The loader loads the library, but Go makes system calls without libc.
    Go,
    /// It may be executed, but this user may not read it.
    Unreadable,
    /// The library is not loaded, for this reason.
    Unfit(&'static str),
}

/// Finds `name` as a shell does and says why `layer` cannot be loaded into it, if it cannot.
pub fn check(name: &OsStr, layer: &str) -> Result<PathBuf, Failure> {
    let program = examine(name, "COMMAND")?;
    let Fitness::Unfit(reason) = program.fitness else { return Ok(program.path) };
    let role = if program.file == program.path { "COMMAND" } else { "COMMAND's interpreter" };
    let shown = program.file.display();
    Err(Failure::input(format_args!(
        "{role} {shown}: {reason}, so {layer} cannot be loaded into it; nothing was run"
    )))
}

/// Finds `name` as a shell does and says whether a preload library works in it. Messages name it by
/// its `role` among the arguments.
pub fn examine(name: &OsStr, role: &str) -> Result<Program, Failure> {
    let path = find(name, role)?;
    let (mut shown_as, mut file) = (role.to_owned(), path.clone());
    for _ in 0..INTERPRETERS {
        match look_at(&shown_as, &file)? {
            Look::Is(fitness) => return Ok(Program { path, file, fitness }),
            Look::Script(interpreter) => {
                (shown_as, file) = (format!("{role}'s interpreter"), interpreter);
            }
        }
    }
    Err(Failure::input(format_args!(
        "{role} {}: more than 5 nested script interpreters; run the last interpreter itself",
        path.display()
    )))
}

enum Look {
    Is(Fitness),
    Script(PathBuf),
}

fn find(name: &OsStr, role: &str) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|status| status.is_file() && status.mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(is_program).ok_or_else(
        || {
            Failure::input(format_args!(
                "{role} {}: no such command in PATH; give a path, or the name of an installed \
                 program",
                name.to_string_lossy()
            ))
        },
    )
}

fn look_at(role: &str, path: &Path) -> Result<Look, Failure> {
    let shown = format!("{role} {}", path.display());
    let fails = |error| Failure::input(format_args!("{shown}: {error}; {CURE}"));
    let status = path.metadata().map_err(fails)?;
    if !status.is_file() || status.mode() & 0o111 == 0 {
        return Err(Failure::input(format_args!("{shown}: not an executable file; {CURE}")));
    }
    let found = match File::open(path) {
        Ok(mut file) => {
            let mut head = Vec::new();
            file.by_ref().take(FIRST_LINE as u64).read_to_end(&mut head).map_err(fails)?;
            if let Some(line) = head.strip_prefix(b"#!") {
                return Ok(match interpreter(line) {
                    Some(interpreter) => Look::Script(interpreter),
                    None => Look::Is(Fitness::Fit),
                });
            }
            if !head.starts_with(b"\x7fELF") {
                // Without a magic it is a script for sh, as execvp(3) has it, or nothing: exec
                // says.
                return Ok(Look::Is(Fitness::Fit));
            }
            fitness(&mut file, &head).map_err(fails)?
        }
        // It may be executed all the same. If the library is not loaded, the end will tell.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Fitness::Unreadable,
        Err(error) => return Err(fails(error)),
    };
    Ok(Look::Is(match (found, privilege(&status, path)) {
        (Fitness::Unfit(reason), _) | (_, Some(reason)) => Fitness::Unfit(reason),
        _ => found,
    }))
}

fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(|byte| matches!(byte, b' ' | b'\t' | 0)).next()?;
    (!word.is_empty()).then(|| OsString::from_vec(word.to_vec()).into())
}

fn fitness(file: &mut File, head: &[u8]) -> std::io::Result<Fitness> {
    if head.len() < 64 || head[4] != 2 || u16_at(head, 18) != Some(MACHINE) {
        return Ok(Fitness::Unfit("it is a program for another architecture"));
    }
    let contents = Contents::read(file, head)?;
    Ok(match contents.loader {
        None if contents.is_go => Fitness::Unfit("it is a statically linked Go program"),
        None => Fitness::Unfit("it is statically linked"),
        Some(loader) if loader.windows(7).any(|part| part == b"ld-musl") => {
            Fitness::Unfit("it is linked with musl, not with glibc")
        }
        Some(_) if contents.is_go => Fitness::Go,
        Some(_) => Fitness::Fit,
    })
}

/// What makes the loader ignore LD_PRELOAD (AT_SECURE in ld.so(8)).
fn privilege(status: &Metadata, path: &Path) -> Option<&'static str> {
    // SAFETY: these calls touch no memory and cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    if status.mode() & libc::S_ISUID != 0 && status.uid() != user {
        Some("it is setuid")
    } else if status.mode() & libc::S_ISGID != 0 && status.gid() != group {
        Some("it is setgid")
    } else if user != 0 && has_capabilities(path) {
        Some("it has file capabilities")
    } else {
        None
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both names are terminated; with size 0 only the length is returned.
    unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0
    }
}

/// What the program headers of a file name (elf(5)).
#[derive(Default)]
struct Contents {
    /// The loader of PT_INTERP; `None` for a static program.
    loader: Option<Vec<u8>>,
    /// Whether Go's linker left its note.
    is_go: bool,
}

impl Contents {
    fn read(file: &mut File, head: &[u8]) -> std::io::Result<Self> {
        let mut contents = Self::default();
        let (Some(start), Some(size), Some(count)) =
            (u64_at(head, 32), u16_at(head, 54), u16_at(head, 56))
        else {
            return Ok(contents);
        };
        for number in 0..u64::from(count) {
            let position = start.saturating_add(number * u64::from(size));
            let header = read_at(file, position, 56)?;
            let (position, length) = (u64_at(&header, 8), u64_at(&header, 32));
            let (position, length) = (position.unwrap_or(0), length.unwrap_or(0).min(4096));
            match u32_at(&header, 0) {
                Some(PT_INTERP) => contents.loader = Some(read_at(file, position, length)?),
                Some(PT_NOTE) => contents.is_go |= has_go_note(&read_at(file, position, length)?),
                _ => {}
            }
        }
        Ok(contents)
    }
}

/// Whether one of the notes is Go's build ID: type 4 and the name `Go`.
fn has_go_note(mut notes: &[u8]) -> bool {
    while let (Some(name), Some(content), Some(kind)) =
        (u32_at(notes, 0), u32_at(notes, 4), u32_at(notes, 8))
    {
        if name == 4 && kind == 4 && notes.get(12..16) == Some(b"Go\0\0") {
            return true;
        }
        let length = [name, content].map(|part| (part as usize).next_multiple_of(4));
        notes = notes.get(12 + length[0] + length[1]..).unwrap_or(&[]);
    }
    false
}

fn read_at(file: &mut File, position: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(position))?;
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn program(&self, name: &str, content: &[u8]) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path) -> String {
        check(path.as_os_str(), "the hook").unwrap_err().to_string()
    }

    /// An ELF file with one program header and, behind it, the loader's name.
    fn elf(machine: u16, header_type: u32, loader: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&header_type.to_le_bytes());
        bytes[72] = 120;
        bytes[96] = loader.len() as u8;
        bytes.extend(loader);
        bytes
    }

    #[test]
    fn a_shell_is_found_in_path() {
        assert!(check(OsStr::new("sh"), "the hook").unwrap().ends_with("sh"));
        let error = check(OsStr::new("no-such-command"), "the hook").unwrap_err().to_string();
        assert_eq!(
            error,
            "COMMAND no-such-command: no such command in PATH; give a path, or the name of an \
             installed program"
        );
    }

    #[test]
    fn what_the_loader_does_not_load_is_refused() {
        let folder = Folder::new("program");
        let loaded = folder.program("loaded", &elf(MACHINE, PT_INTERP, b"/lib/ld-linux.so.2"));
        assert_eq!(check(loaded.as_os_str(), "the hook").unwrap(), loaded);
        let fixed = folder.program("fixed", &elf(MACHINE, 1, b""));
        assert!(refusal(&fixed).contains("statically linked"));
        let musl = folder.program("musl", &elf(MACHINE, PT_INTERP, b"/lib/ld-musl-x86_64.so.1"));
        assert!(refusal(&musl).contains("musl"));
        let foreign = folder.program("foreign", &elf(8, PT_INTERP, b"/lib/ld.so.1"));
        assert!(refusal(&foreign).contains("another architecture"));
        let cut = folder.program("cut", b"\x7fELF\x02\x01");
        assert!(refusal(&cut).contains("another architecture"));
        assert!(refusal(&folder.0).contains("not an executable file"));
    }

    #[test]
    fn go_programs_are_recognized_by_their_note() {
        let folder = Folder::new("go");
        let note =
            b"\x03\0\0\0\x01\0\0\0\x05\0\0\0GNU\0\x01\0\0\0\x04\0\0\0\0\0\0\0\x04\0\0\0Go\0\0";
        let go = folder.program("go", &elf(MACHINE, PT_NOTE, note));
        assert!(refusal(&go).contains("go: it is a statically linked Go program"));
        assert!(has_go_note(note));
        assert!(!has_go_note(&note[..20]));
    }

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let folder = Folder::new("script");
        let fixed = folder.program("fixed", &elf(MACHINE, 1, b""));
        let script = format!("#! {} -x\n", fixed.display());
        let script = folder.program("script", script.as_bytes());
        let error = refusal(&script);
        assert!(error.contains("fixed: it is statically linked"), "{error}");
        let circle = folder.0.join("circle");
        folder.program("circle", format!("#!{}\n", circle.display()).as_bytes());
        assert!(refusal(&circle).contains("more than 5 nested"));
        let bare = folder.program("bare", b"exit 0\n");
        assert_eq!(check(bare.as_os_str(), "the hook").unwrap(), bare);
    }
}
