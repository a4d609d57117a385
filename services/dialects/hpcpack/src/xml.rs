//! Parses the bytes of a file as XML, safely (HPC-J-47).

use crate::{
    codes::Code,
    description::{DescriptionError, MOST_BYTES, Place},
};
use roxmltree::{Document, Node, ParsingOptions};

/// The most elements and texts.
const MOST_NODES: u32 = 4 << 20;
/// The most attributes of one element: the search for duplicates takes quadratic time.
const MOST_ATTRIBUTES: usize = 1000;
/// The most declarations of namespaces: each element with one takes the square of those around it.
const MOST_NAMESPACES: usize = 500;

/// The text of a file in UTF-8 or UTF-16, with or without a byte-order mark (HPC-J-47).
///
/// # Errors
/// The file is larger than [`MOST_BYTES`], or is in neither of these encodings.
pub(crate) fn decode(bytes: &[u8]) -> Result<String, DescriptionError> {
    if bytes.len() > MOST_BYTES {
        return Err(not_valid(format!("larger than {} MiB", MOST_BYTES >> 20), None));
    }
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [first, 0, ..] if *first != 0 => utf16(bytes, u16::from_le_bytes),
        [0, second, ..] if *second != 0 => utf16(bytes, u16::from_be_bytes),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, DescriptionError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        not_valid("neither UTF-8 nor UTF-16".into(), Some(place(&before, before.len())))
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, DescriptionError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match character {
            Ok(character) => text.push(character),
            Err(_) => return Err(not_valid("not valid UTF-16".into(), Some(place(&text, text.len())))),
        }
    }
    if !rest.is_empty() {
        return Err(not_valid("UTF-16 that ends within a character".into(), Some(place(&text, text.len()))));
    }
    Ok(text)
}

/// The document of a text. A DOCTYPE is refused, so there are no entities and nothing is ever fetched.
///
/// # Errors
/// `JobXmlNotValid` with the place, if the text is not well-formed.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, DescriptionError> {
    if let Some((offset, message)) = too_much(text) {
        return Err(not_valid(message, Some(place(text, offset))));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::DtdDetected => {
            let offset = text.find("<!DOCTYPE").unwrap_or_default();
            not_valid("a DOCTYPE is not accepted".into(), Some(place(text, offset)))
        }
        roxmltree::Error::NodesLimitReached => not_valid(format!("more than {MOST_NODES} elements and texts"), None),
        error => {
            let at = error.pos();
            let place = Place { line: at.row as usize, column: at.col as usize };
            not_valid(format!("not well-formed XML: {error}"), Some(place))
        }
    })
}

/// The first element that would take too long to read, and why. In a malformed text it may be wrong, but that text is
/// refused anyway.
fn too_much(text: &str) -> Option<(usize, String)> {
    let (mut rest, mut namespaces) = (0, 0);
    while let Some(found) = text[rest..].find('<') {
        let start = rest + found;
        let tag = &text[start..];
        let closing = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((open, close)) = closing.iter().find(|(open, _)| tag.starts_with(open)) {
            rest = start + open.len() + tag[open.len()..].find(close)? + close.len();
            continue;
        }
        let tag = measure_tag(tag);
        namespaces += tag.namespaces;
        if tag.attributes > MOST_ATTRIBUTES {
            return Some((start, format!("an element has more than {MOST_ATTRIBUTES} attributes")));
        }
        if namespaces > MOST_NAMESPACES {
            return Some((start, format!("more than {MOST_NAMESPACES} declarations of namespaces")));
        }
        rest = start + tag.length;
    }
    None
}

/// What a tag contains, counted without parsing it.
#[derive(Default)]
struct Measure {
    /// In bytes.
    length: usize,
    attributes: usize,
    /// Declarations of namespaces among the attributes.
    namespaces: usize,
}

fn measure_tag(tag: &str) -> Measure {
    let (mut quote, mut name_start, mut measure) = (None, 0, Measure::default());
    for (offset, byte) in tag.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(open), _) if byte == open => {
                quote = None;
                name_start = offset + 1;
            }
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'=') => {
                measure.attributes += 1;
                let name = tag.as_bytes().get(name_start..).unwrap_or_default().trim_ascii_start();
                measure.namespaces += usize::from(name.starts_with(b"xmlns"));
            }
            (None, b'>') => return Measure { length: offset + 1, ..measure },
            // The name of the element ends here.
            (None, byte) if byte.is_ascii_whitespace() && name_start == 0 => name_start = offset,
            (None, _) => {}
        }
    }
    Measure { length: tag.len(), ..measure }
}

/// The line and column of a byte of a text.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
}

/// An error about a text, with its place if it has one.
pub(crate) fn not_valid(text: String, place: Option<Place>) -> DescriptionError {
    DescriptionError::new(Code::JobXmlNotValid, text).at(place)
}

/// The texts directly within an element, without comments.
pub(crate) fn text_of(node: Node<'_, '_>) -> String {
    node.children().filter(Node::is_text).filter_map(|text| text.text()).collect()
}

/// The elements directly within an element.
pub(crate) fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// The local name of an element; its namespace is ignored (HPC-J-40).
pub(crate) fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}
