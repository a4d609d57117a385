//! The configuration file.

use muster_basl::{
    Fault,
    config::{Config, Host, Mapping},
};

fn mistakes(text: &str) -> Vec<String> {
    Config::parse("c", text).expect_err("mistakes").iter().map(ToString::to_string).collect()
}

/// PBS-X-12
#[test]
fn a_configuration_file_is_read() {
    let text = "# clients\n$clienthost db\n\n  $serverhost ruby 15001\n$momhost n1 0\n$momhost n2 15002\n\
                $node * CNodeMemTotalGet[real]   physmem\n$node n1 CNodeLoadAveGet load [type=x, y]\n\
                $node n1 CNodeSrfsSpaceAvailGet[$FASTDIR] quota[type=ares_avail,dir=$FASTDIR]\n\
                $node * CNodeLoadAveGet other\n$node n2 CNodeMemTotalGet[real] physmem2\n";
    let config = Config::parse("c", text).expect("a configuration");
    assert_eq!(config.clients, ["db"]);
    assert_eq!(config.servers, [Host { name: "ruby".into(), port: 15001 }]);
    assert_eq!(config.monitors.len(), 2);
    let of = |node: &str| -> Vec<(String, String)> {
        config.mappings_of(node).map(|mapping| (mapping.key(), mapping.query.clone())).collect()
    };
    let pair = |key: &str, query: &str| (key.to_owned(), query.to_owned());
    let preset = [pair("CNodeOsGet", "arch"), pair("CNodeIdletimeGet", "idletime")];
    assert_eq!(
        of("n1"),
        [
            &preset[..],
            &[
                pair("CNodeMemTotalGet[real]", "physmem"),
                pair("CNodeSrfsSpaceAvailGet[$FASTDIR]", "quota[type=ares_avail,dir=$FASTDIR]"),
                pair("CNodeLoadAveGet", "other"),
            ]
        ]
        .concat()
    );
    assert_eq!(
        of("n2"),
        [&preset[..], &[pair("CNodeLoadAveGet", "other"), pair("CNodeMemTotalGet[real]", "physmem2")]].concat()
    );
}

/// PBS-X-12: preset mappings; static and dynamic functions.
#[test]
fn three_mappings_are_preset() {
    let config = Config::parse("c", "").expect("nothing is a configuration");
    let keys: Vec<(String, &str, bool)> =
        config.mappings_of("n").map(|mapping| (mapping.key(), mapping.query.as_str(), mapping.is_static())).collect();
    assert_eq!(
        keys,
        [
            ("CNodeOsGet".to_owned(), "arch", true),
            ("CNodeLoadAveGet".to_owned(), "loadave", false),
            ("CNodeIdletimeGet".to_owned(), "idletime", false),
        ]
    );
    let is_static = |function: &str| {
        Mapping { node: None, function: function.into(), argument: None, query: String::new() }.is_static()
    };
    assert!(is_static("CNodeMemTotalGet") && is_static("CNodeDiskInBwGet") && is_static("CNodeVendorGet"));
    assert!(!is_static("CNodeMemAvailGet") && !is_static("CNodeSwapInBwGet") && !is_static("CNodeCpuPercentIdleGet"));
}

/// PBS-X-12: every mistake is told with its line.
#[test]
fn mistakes_of_a_configuration_file_are_told() {
    let text = "$clienthost\n$clienthost a b\n$serverhost x\n$momhost x 70000\n$client x\nhello\n$node *\n\
                $node * CNodeLodAveGet x\n$node * CNodeLoadAveGet[x] y\n$node * CNodeMemTotalGet y\n\
                $node * CNodeMemTotalGet[ y\n$node * CNodeStateGet y\n";
    assert_eq!(
        mistakes(text),
        [
            "c:1: expected a host (token '')",
            "c:2: expected the end of the line after a host (token 'b')",
            "c:3: expected a port (token 'x')",
            "c:4: expected a port from 0 to 65535 (token '70000')",
            "c:5: unknown directive; known are $clienthost, $serverhost, $momhost, $node (token '$client')",
            "c:6: unknown directive; known are $clienthost, $serverhost, $momhost, $node (token 'hello')",
            "c:7: expected a node or *, a function and a query (token '')",
            "c:8: no function whose value a monitor gives; did you mean 'CNodeLoadAveGet'? (token 'CNodeLodAveGet')",
            "c:9: this function takes no name in brackets (token 'CNodeLoadAveGet')",
            "c:10: this function takes a name in brackets, as CNodeMemTotalGet[real] (token 'CNodeMemTotalGet')",
            "c:11: expected a name and ']' after '[' (token 'CNodeMemTotalGet[')",
            "c:12: no function whose value a monitor gives (token 'CNodeStateGet')",
        ]
    );
    let located: Vec<String> = match Config::parse("c", "  $momhost x 70000\n$node * no y\n$clienthost\n") {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(Fault::located).collect(),
    };
    let beginnings = ["c:1: column 14: expected a port", "c:2: column 9: no function", "c:3: expected a host"];
    assert_eq!(located.len(), beginnings.len(), "{located:?}");
    for (told, beginning) in located.iter().zip(beginnings) {
        assert!(told.starts_with(beginning), "{told}");
    }
}
