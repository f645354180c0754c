// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a model does differently by release, as rows.

/// The features of a model: a struct, its value in every release and the list of what
/// changed, all of one table.
///
/// Above stand the features, each with its value in the oldest release. Below is a row
/// for each release that changed something: what changed and where that was read, and
/// the features that have another value from then on; of a feature that is a struct, a
/// row may change one field (`discard.plugs: true`). A row may be empty only if it is the
/// first and tells what the model begins with.
///
/// A row is of a release and all later ones. It may name a point release (`"2.6.33.1"`),
/// and behind its release the point releases of older series that have the change, too:
/// `"6.6" | "6.1.55" | "6.5.5"` holds from 6.6 on, in 6.1 from 6.1.55 and in 6.5 from
/// 6.5.5 on, but not in 6.2.
///
/// ```
/// use blklab_kernel::KernelVersion;
///
/// blklab_kernel::features! {
///     /// What a release does.
///     pub struct Features {
///         /// Most requests of a plug.
///         pub plug_max: u32 = 16,
///         /// Every bio is plugged.
///         pub implicit_plug: bool = false,
///     }
///
///     /// What changed, release by release.
///     pub const CHANGES = {
///         "5.16": "plugs hold 32 requests", "block/blk-mq.c" => { plug_max: 32 }
///         "6.12": "every bio is plugged", "block/blk-core.c" => { implicit_plug: true }
///     };
/// }
///
/// assert_eq!(Features::of(KernelVersion::new(5, 15)).plug_max, 16);
/// assert!(Features::of(KernelVersion::new(6, 18)).implicit_plug);
/// assert_eq!(CHANGES[1].release, KernelVersion::new(6, 12));
/// ```
#[macro_export]
macro_rules! features {
    (
        $(#[$doc:meta])*
        $vis:vis struct $Features:ident {
            $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty = $oldest:expr,)*
        }

        $(#[$table_doc:meta])*
        $table_vis:vis const $table:ident = {
            $($release:literal $(| $stable:literal)*: $what:expr, $source:expr => {
                $($changed:ident $(.$part:ident)?: $value:expr),* $(,)?
            })*
        };
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $Features {
            $($(#[$field_doc])* $field_vis $field: $type,)*
        }

        impl $Features {
            /// The features of a release.
            $vis const fn of(release: $crate::KernelVersion) -> $Features {
                let mut features = $Features { $($field: $oldest,)* };
                $(if release.has_row(
                    $crate::KernelVersion::row($release),
                    &[$($crate::KernelVersion::row($stable)),*],
                    $what,
                ) {
                    $(features.$changed $(.$part)? = $value;)*
                })*
                features
            }
        }

        $(#[$table_doc])*
        $table_vis const $table: &[$crate::Change] = &[
            $($crate::Change {
                release: $crate::KernelVersion::row($release),
                stable: &[$($crate::KernelVersion::row($stable)),*],
                what: $what,
                source: $source,
            },)*
        ];
    };
}
