//! How public events are declared.

use utoipa::openapi::{RefOr, Schema};

/// A kind of event in the catalogue.
pub struct EventType {
    /// The kind of its subject, such as `job`.
    pub kind: &'static str,
    /// The event, such as `started`.
    pub verb: &'static str,
    /// When it is sent, for people.
    pub summary: &'static str,
    /// The name of the schema of its data.
    pub data_name: &'static str,
    pub(super) schema: fn() -> RefOr<Schema>,
    pub(super) schemas: fn(&mut Vec<(String, RefOr<Schema>)>),
}

/// Declares the data of the public events of a subject, and an enum of all of them:
///
/// ```text
/// public_events! { JobData
///     /// When it is sent, for people.
///     "kind" "verb" JobHeld about job {        the field that tells what it is about; `cluster` for the cluster
///         /// A field.
///         job: JobId,
///     }
///     says |data, f| write!(f, "..");          one sentence for people
/// }
/// ```
macro_rules! public_events {
    ($all:ident $(
        #[doc = $doc:literal]
        $kind:literal $verb:literal $name:ident about $($about:ident).+ {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty, )*
        }
        says |$data:pat_param, $f:ident| $says:expr;
    )*) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::utoipa::ToSchema)]
            pub struct $name {
                $( $(#[$field_meta])* pub $field: $type, )*
            }

            impl ::std::fmt::Display for $name {
                fn fmt(&self, $f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                    let $data = self;
                    $says
                }
            }

            impl From<$name> for $all {
                fn from(data: $name) -> Self {
                    Self::$name(Box::new(data))
                }
            }
        )*

        /// The data of a public event of this subject.
        #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize)]
        #[serde(untagged)]
        pub enum $all {
            $( #[doc = $doc] $name(Box<$name>), )*
        }

        impl $all {
            pub(super) fn catalogue() -> Vec<$crate::public::EventType> {
                vec![$( $crate::public::EventType {
                    kind: $kind,
                    verb: $verb,
                    summary: $doc.trim_ascii(),
                    data_name: stringify!($name),
                    schema: <$name as ::utoipa::PartialSchema>::schema,
                    schemas: <$name as ::utoipa::ToSchema>::schemas,
                } ),*]
            }

            /// The id or name of its subject.
            #[allow(unused_variables, reason = "few subjects have events about the whole cluster")]
            pub(super) fn subject(&self, cluster: &str) -> String {
                match self { $( Self::$name(data) => $crate::public::declare::subject!(data cluster $($about).+), )* }
            }
        }

        impl ::std::fmt::Display for $all {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self { $( Self::$name(data) => data.fmt(f), )* }
            }
        }
    };
}
pub(super) use public_events;

/// The subject of an event, from its declaration.
macro_rules! subject {
    ($data:ident $cluster:ident cluster) => { $cluster.to_owned() };
    ($data:ident $cluster:ident $($field:ident).+) => { $data.$($field).+.to_string() };
}
pub(super) use subject;
