// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels whose models leave out what a release changed: what a change does to a result is the
//! difference that it makes to leave it out.

use crate::{Catalogue, Experiment};
use blklab_kernel::{Change, KernelVersion};
use blklab_types::{Error, ErrorKind, no_such, shown};

/// What stands for leaving nothing out.
const NOTHING: &str = "none";

/// Whether a change can be left out: those of the single-queue path come with tunables and
/// whole schedulers, which would be missed.
pub fn can_be_without(change: &Change) -> bool {
    !change.release.has_single_queue()
}

/// The name of a change: the model and the release, as `block-layer:6.14`.
pub fn change_name(owner: &str, change: &Change) -> String {
    format!("{}:{}", owner.replace(' ', "-"), change.release)
}

impl Experiment {
    /// Leaves out of the models what these changes brought: names joined by `+`, or `none`.
    ///
    /// # Errors
    /// If the kernel has no change of such a name.
    pub fn choose_without(&mut self, text: &str, catalogue: &Catalogue) -> Result<(), Error> {
        let named = text.split('+').map(str::trim);
        let named = named.filter(|name| !name.is_empty() && *name != NOTHING);
        self.without = named.map(str::to_owned).collect();
        self.leave_out(catalogue)
    }

    /// Another kernel was chosen: what is left out of it, too. A remark says which of these
    /// changes it does not have.
    pub(crate) fn keep_leaving_out(&mut self, catalogue: &Catalogue) {
        if self.without.is_empty() {
            return;
        }
        let kernel = self.kernel.without(&[]);
        let has = |name: &String| !changes_called(name, kernel, catalogue).is_empty();
        let (kept, absent) = std::mem::take(&mut self.without)
            .into_iter()
            .partition::<Vec<_>, _>(has);
        for name in absent {
            let what = format!("kernel {kernel} does not have {name}, which was to be left out");
            self.remarks.push(what);
        }
        self.without = kept;
        let left_out = self.leave_out(catalogue);
        left_out.expect("the kernel has the changes that were kept");
    }

    /// The kernel without what is to be left out of it.
    fn leave_out(&mut self, catalogue: &Catalogue) -> Result<(), Error> {
        let mut left_out: Vec<&'static Change> = Vec::new();
        let kernel = self.kernel.without(&[]);
        for name in &self.without {
            let found = changes_called(name, kernel, catalogue);
            if found.is_empty() {
                return Err(unknown(name, kernel, catalogue));
            }
            left_out.extend(found);
        }
        self.kernel = kernel;
        if !left_out.is_empty() {
            // A handful of words for each experiment that asks for it.
            self.kernel = kernel.without(left_out.leak());
        }
        self.default_scheduler(catalogue);
        Ok(())
    }

    /// Names and words of what is left out.
    pub fn left_out(&self) -> Vec<String> {
        let words = self.kernel.lacks().iter().map(|c| c.what);
        let words: Vec<&str> = words.collect();
        if words.is_empty() {
            return Vec::new();
        }
        vec![format!(
            "the models leave {} out: {}",
            self.without.join(" and "),
            words.join("; ")
        )]
    }
}

fn changes_called(
    name: &str,
    kernel: KernelVersion,
    catalogue: &Catalogue,
) -> Vec<&'static Change> {
    let named = changes_in(kernel, catalogue).filter(|(owner, c)| change_name(owner, c) == name);
    named.map(|(_, change)| change).collect()
}

/// What a kernel can be without.
fn changes_in(
    kernel: KernelVersion,
    catalogue: &Catalogue,
) -> impl Iterator<Item = (&'static str, &'static Change)> {
    let all = catalogue.changes().into_iter();
    all.filter(move |(_, c)| c.is_in(kernel) && can_be_without(c))
}

fn unknown(name: &str, kernel: KernelVersion, catalogue: &Catalogue) -> Error {
    let there: Vec<String> = changes_in(kernel, catalogue)
        .map(|(owner, c)| change_name(owner, c))
        .collect();
    let names: Vec<&str> = there.iter().map(String::as_str).collect();
    let what = format!(
        "{}; of kernel {kernel} (blklab list changes has all)",
        no_such("change", &shown(name), &names)
    );
    Error::new(what)
        .of_kind(ErrorKind::UnknownName)
        .about("without")
}
