use super::*;

fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// SL-E-13: the variables that lead to the instance are there whatever was exported, and the secret is not.
#[test]
fn what_leads_to_the_instance_stays() {
    let led = |own: &str, exported: &str| {
        let caller = Caller { environment: pairs(own).collect(), ..Caller::default() };
        let mut environment = pairs(exported).collect();
        lead_back(&mut environment, &caller);
        environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(led("A=1 MUSTER_DATA=/d MUSTER_TOKEN=s", ""), "MUSTER_DATA=/d");
    assert_eq!(led("MUSTER_SERVER=http://h:1 MUSTER_TOKEN=s", "A=1"), "A=1 MUSTER_SERVER=http://h:1");
    let both = "MUSTER_DATA=/d MUSTER_SERVER=http://h:1";
    assert_eq!(led(both, "MUSTER_DATA=/d"), both, "one of them was exported by its name");
    assert_eq!(led("MUSTER_DATA=/d MUSTER_SERVER=", ""), "MUSTER_DATA=/d", "an empty one leads nowhere");
    assert_eq!(led("MUSTER_DATA=/d", "MUSTER_SERVER="), "MUSTER_DATA=/d MUSTER_SERVER=");
    assert_eq!(led(both, "MUSTER_DATA=/e"), "MUSTER_DATA=/e", "another instance was asked for");
}
