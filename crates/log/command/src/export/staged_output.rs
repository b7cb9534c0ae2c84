// SPDX-License-Identifier: Apache-2.0
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Where an export goes: it has another name until it is whole, and is taken away if it never is.
pub struct StagedOutput {
    out: PathBuf,
    /// `None` once it is whole, and for a pipe or a device, which is written to itself.
    unfinished: Option<PathBuf>,
}

impl StagedOutput {
    /// Of a file. One that is there stays until the new one is whole.
    pub fn of_file(out: &Path) -> Self {
        // Who has named a link means what it leads to.
        let out = fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
        let unfinished = (!is_special(&out)).then(|| beside(&out));
        Self { out, unfinished }
    }

    /// Of a folder that was not there or is empty.
    pub fn of_folder(out: &Path) -> io::Result<Self> {
        if let Some(parent) = out.parent() {
            fs::create_dir_all(parent)?;
        }
        if out.exists() {
            if fs::read_dir(out)?.next().is_some() {
                return Err(io::Error::other("the folder is not empty; give another"));
            }
            // It may be what somebody stands in.
            return Ok(Self { out: out.to_owned(), unfinished: Some(out.to_owned()) });
        }
        let unfinished = beside(out);
        fs::create_dir(&unfinished)?;
        Ok(Self { out: out.to_owned(), unfinished: Some(unfinished) })
    }

    pub fn path(&self) -> &Path {
        self.unfinished.as_ref().unwrap_or(&self.out)
    }

    pub fn create(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(1 << 18, File::create(self.path())?))
    }

    /// It is whole.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(unfinished) = &self.unfinished
            && *unfinished != self.out
        {
            fs::rename(unfinished, &self.out)?;
        }
        self.unfinished = None;
        Ok(())
    }
}

impl Drop for StagedOutput {
    fn drop(&mut self) {
        let Some(unfinished) = self.unfinished.take() else { return };
        let _ = fs::remove_file(&unfinished);
        let files = fs::read_dir(&unfinished).into_iter().flatten().flatten();
        files.for_each(|file| drop(fs::remove_file(file.path())));
        if unfinished != self.out {
            let _ = fs::remove_dir(&unfinished);
        }
    }
}

/// A pipe, a device.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|status| !status.is_file() && !status.is_dir())
}

/// In the same folder, so that it can be renamed.
fn beside(out: &Path) -> PathBuf {
    out.with_file_name(format!(".tare-export-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("tare-staged-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_was_there_stays_until_the_new_one_is_whole() {
        let folder = folder("file");
        let (out, link) = (folder.join("out"), folder.join("link"));
        fs::write(&out, "old").unwrap();
        std::os::unix::fs::symlink(&out, &link).unwrap();
        for (is_whole, expected) in [(false, "old"), (true, "new")] {
            let staged = StagedOutput::of_file(&link);
            staged.create().unwrap();
            fs::write(staged.path(), "new").unwrap();
            assert_eq!(fs::read_to_string(&out).unwrap(), "old");
            if is_whole {
                staged.finish().unwrap();
            } else {
                drop(staged);
            }
            assert_eq!(fs::read_to_string(&out).unwrap(), expected);
            assert_eq!(names(&folder), ["link", "out"]);
        }
        assert!(link.is_symlink());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_has_all_files_or_none() {
        let folder = folder("folder");
        let (new, empty) = (folder.join("new"), folder.join("empty"));
        fs::create_dir(&empty).unwrap();
        for is_whole in [false, true] {
            for out in [&new, &empty] {
                let staged = StagedOutput::of_folder(out).unwrap();
                fs::write(staged.path().join("part"), "").unwrap();
                if is_whole {
                    staged.finish().unwrap();
                }
            }
            let expected: &[&str] = if is_whole { &["empty", "new"] } else { &["empty"] };
            assert_eq!(names(&folder), expected);
            assert_eq!(names(&empty).len(), usize::from(is_whole));
        }
        assert!(StagedOutput::of_folder(&new).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
