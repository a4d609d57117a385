//! Addresses that mail may be sent to.
//!
//! Users choose addresses, and addresses end up in the argument list of a mail program, which may read some as
//! something else: `-x` as an option, `|command` as a pipe, `/path` or `+folder` as a file, `a,b` as two. So only few
//! characters are allowed.

/// The longest address that a mail server must accept, in bytes (RFC 5321, 4.5.3.1.3, without the brackets).
pub const MAX_ADDRESS_BYTES: usize = 254;

/// Whether mail may be sent to this: `NAME@HOST`, or the login name of a user of this site.
///
/// A name has letters and digits of any script and `.`, `_`, `-`, `+` and `=`, and begins with a letter, a digit or
/// `_`; a login name has no `+` and `=`. A host has letters, digits, `-` and single dots.
///
/// # Errors
/// The fault, to be put after "the address": `begins with \`-\``, for example.
pub fn check(address: &str) -> Result<(), String> {
    if address.is_empty() {
        return Err("is empty".into());
    }
    if address.len() > MAX_ADDRESS_BYTES {
        return Err(format!("has {} bytes, at most {MAX_ADDRESS_BYTES} are allowed", address.len()));
    }
    let Some((name, host)) = address.split_once('@') else { return check_name(address, "._-") };
    check_name(name, "._-+=")?;
    check_host(host)
}

fn check_name(name: &str, signs: &str) -> Result<(), String> {
    match name.chars().next() {
        None => return Err("has no name before its `@`".into()),
        Some(first) if !first.is_alphanumeric() && first != '_' => return Err(format!("begins with {}", shown(first))),
        Some(_) => {}
    }
    only(name, signs)
}

fn check_host(host: &str) -> Result<(), String> {
    only(host, ".-")?;
    let is_label = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
    if host.split('.').all(is_label) { Ok(()) } else { Err("has no name of a host behind its `@`".into()) }
}

fn only(text: &str, signs: &str) -> Result<(), String> {
    match text.chars().find(|character| !character.is_alphanumeric() && !signs.contains(*character)) {
        Some(character) => Err(format!("has {}", shown(character))),
        None => Ok(()),
    }
}

/// A character in a form that is safe in a message.
fn shown(character: char) -> String {
    if character.is_ascii_graphic() {
        format!("the character `{character}`")
    } else {
        format!("the character U+{:04X}", u32::from(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_login_names_are_right() {
        for address in [
            "ada@example.org",
            "ada.b-c_d+tag=x@mail-1.example.org",
            "ada@localhost",
            "7of9@example.org",
            "_apt@example.org",
            "jörg@müller.example",
            "ada",
            "svc_backup",
            "ada.lovelace-2",
            "1001",
        ] {
            assert_eq!(check(address), Ok(()), "{address}");
        }
    }

    /// F0: some mail program reads each of these as something other than an address.
    #[test]
    fn what_a_mail_program_could_take_for_something_else_is_wrong() {
        for (address, why) in [
            ("--exec=!id>/tmp/ran@x", "begins with the character `-`"),
            ("-oQ/tmp@x", "begins with the character `-`"),
            ("-f", "begins with the character `-`"),
            ("|id@x", "begins with the character `|`"),
            ("/etc/cron.d/x@y", "begins with the character `/`"),
            ("+folder", "begins with the character `+`"),
            ("~ada@x", "begins with the character `~`"),
            (".ada@x", "begins with the character `.`"),
            ("a/b@x", "has the character `/`"),
            ("a|id@x", "has the character `|`"),
            ("a b@x", "has the character U+0020"),
            ("a\n@x", "has the character U+000A"),
            ("a@x\r\nBcc: b", "has the character U+000D"),
            ("a,b@x", "has the character `,`"),
            ("a;b@x", "has the character `;`"),
            ("\"a b\"@x", "begins with the character `\"`"),
            ("a'b@x", "has the character `'`"),
            ("a`id`@x", "has the character ```"),
            ("a$(id)@x", "has the character `$`"),
            ("a%b@x", "has the character `%`"),
            ("a!b@x", "has the character `!`"),
            ("a\u{2028}b@x", "has the character U+2028"),
            ("a\u{202e}b@x", "has the character U+202E"),
            ("a@b@c", "has the character `@`"),
            ("a@", "has no name of a host behind its `@`"),
            ("a@-b", "has no name of a host behind its `@`"),
            ("a@b..c", "has no name of a host behind its `@`"),
            ("a@[127.0.0.1]", "has the character `[`"),
            ("@x", "has no name before its `@`"),
            ("a+b", "has the character `+`"),
            ("", "is empty"),
        ] {
            assert_eq!(check(address), Err(why.to_owned()), "{address}");
        }
        assert_eq!(check(&"a".repeat(255)), Err("has 255 bytes, at most 254 are allowed".into()));
    }
}
