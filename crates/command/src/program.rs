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

/// Finds `name` as a shell does and says why `layer` cannot be loaded into it, if it cannot.
pub fn check(name: &OsStr, layer: &str) -> Result<PathBuf, Failure> {
    let found = find(name)?;
    let (mut role, mut path) = ("COMMAND", found.clone());
    for _ in 0..INTERPRETERS {
        match look_at(role, &path, layer)? {
            None => return Ok(found),
            Some(interpreter) => (role, path) = ("COMMAND's interpreter", interpreter),
        }
    }
    Err(Failure::input(format_args!(
        "COMMAND {}: more than 5 nested script interpreters; run the last interpreter itself",
        found.display()
    )))
}

fn find(name: &OsStr) -> Result<PathBuf, Failure> {
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
                "COMMAND {}: no such command in PATH; give a path, or the name of an installed \
                 program",
                name.to_string_lossy()
            ))
        },
    )
}

/// Refuses `path`, which is run as `role`, or names its interpreter if it is a script.
fn look_at(role: &str, path: &Path, layer: &str) -> Result<Option<PathBuf>, Failure> {
    let shown = format!("{role} {}", path.display());
    let fails = |error| Failure::input(format_args!("{shown}: {error}; {CURE}"));
    let status = path.metadata().map_err(fails)?;
    if !status.is_file() || status.mode() & 0o111 == 0 {
        return Err(Failure::input(format_args!("{shown}: not an executable file; {CURE}")));
    }
    let obstacle = match File::open(path) {
        Ok(mut file) => {
            let mut head = Vec::new();
            file.by_ref().take(FIRST_LINE as u64).read_to_end(&mut head).map_err(fails)?;
            if let Some(line) = head.strip_prefix(b"#!") {
                return Ok(interpreter(line));
            }
            if !head.starts_with(b"\x7fELF") {
                // Without a magic it is a script for sh, as execvp(3) has it, or nothing: exec
                // says.
                return Ok(None);
            }
            obstacle(&mut file, &head).map_err(fails)?
        }
        // It may be executed all the same. If the library is not loaded, the end will tell.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => return Err(fails(error)),
    };
    obstacle.or_else(|| privilege(&status, path)).map_or(Ok(None), |reason| {
        Err(Failure::input(format_args!(
            "{shown}: {reason}, so {layer} cannot be loaded into it; nothing was run"
        )))
    })
}

fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(|byte| matches!(byte, b' ' | b'\t' | 0)).next()?;
    (!word.is_empty()).then(|| OsString::from_vec(word.to_vec()).into())
}

fn obstacle(file: &mut File, head: &[u8]) -> std::io::Result<Option<&'static str>> {
    if head.len() < 64 || head[4] != 2 || u16_at(head, 18) != Some(MACHINE) {
        return Ok(Some("it is a program for another architecture"));
    }
    let Some(loader) = loader(file, head)? else {
        return Ok(Some("it is statically linked"));
    };
    let musl = loader.windows(7).any(|part| part == b"ld-musl");
    Ok(musl.then_some("it is linked with musl, not with glibc"))
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

/// The loader named by the program header PT_INTERP (elf(5)), `None` of a static program.
fn loader(file: &mut File, head: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    let (Some(start), Some(size), Some(count)) =
        (u64_at(head, 32), u16_at(head, 54), u16_at(head, 56))
    else {
        return Ok(None);
    };
    for number in 0..u64::from(count) {
        let position = start.saturating_add(number * u64::from(size));
        let header = read_at(file, position, 56)?;
        if u32_at(&header, 0) == Some(PT_INTERP) {
            let (position, length) = (u64_at(&header, 8), u64_at(&header, 32));
            let (position, length) = (position.unwrap_or(0), length.unwrap_or(0).min(4096));
            return read_at(file, position, length).map(Some);
        }
    }
    Ok(None)
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
