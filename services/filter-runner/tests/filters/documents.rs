//! The effect of filters on their files.

use crate::site::{DOCUMENT, Site, account, submission};
use bytes::Bytes;
use muster_filter_runner::{Call, FileAfter, MAX_DOCUMENT_BYTES, MAX_RESULT_FILE_BYTES};

/// HPC-F-64
#[tokio::test]
async fn the_document_is_a_file_of_the_account_with_mode_0600() {
    let site = Site::new();
    let answer = site.run_script("stat -c '%a %u' \"$1\"; cat \"$1\"; dirname \"$1\"; pwd").await;
    let text = answer.stdout.text();
    let rest = text.strip_prefix(&format!("600 {}\n{DOCUMENT}", account())).unwrap();
    let folders: Vec<&str> = rest.lines().collect();
    assert_eq!(folders[0], folders[1]);
    assert_eq!(answer.document, FileAfter::Unchanged);
}

/// HPC-F-64
#[tokio::test]
async fn it_is_changed_in_place_or_by_rename() {
    let site = Site::new();
    let changed = || FileAfter::Changed(Bytes::from_static(b"new\n"));
    assert_eq!(site.run_script("echo new > \"$1\"").await.document, changed());
    assert_eq!(site.run_script("echo new > other; mv other \"$1\"; exit 1").await.document, changed());
    assert_eq!(site.run_script("cat \"$1\" > other; mv other \"$1\"").await.document, FileAfter::Unchanged);
    assert_eq!(site.run_script(": > \"$1\"").await.document, FileAfter::Changed(Bytes::new()));
}

/// HPC-J-47
#[tokio::test]
async fn the_largest_documents_go_there_and_back() {
    let site = Site::new();
    let document = Bytes::from(vec![b'x'; MAX_DOCUMENT_BYTES]);
    let call = Call { document, ..submission(site.script("tr x y < \"$1\" > new; mv new \"$1\"; exit 1")) };
    let FileAfter::Changed(after) = site.run(&call).await.document else { panic!() };
    assert!(after.len() == MAX_DOCUMENT_BYTES && after.iter().all(|byte| *byte == b'y'));
}

/// HPC-F-17
#[tokio::test]
async fn a_document_that_is_gone_or_no_regular_file_is_told_as_such() {
    let site = Site::new();
    assert_eq!(site.run_script("rm \"$1\"").await.document, FileAfter::Missing);
    for replacement in ["ln -s /etc/passwd", "mkdir", "mkfifo"] {
        let answer = site.run_script(&format!("rm \"$1\"; {replacement} \"$1\"")).await;
        assert_eq!(answer.result, FilterExit::Code(0), "{replacement}");
        assert!(matches!(answer.document, FileAfter::NotRegular(_)), "{replacement}: {:?}", answer.document);
    }
    let large = site.run_script("truncate -s 17M \"$1\"").await;
    assert_eq!(large.document, FileAfter::TooLarge(17 << 20));
}

/// HPC-F-64, M-FIL-3.
#[tokio::test]
async fn files_that_the_account_does_not_own_are_not_read_for_it() {
    let site = Site::new();
    if !nix::unistd::Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can switch to another account");
    }
    // A link is as good as the file: where links to other users' files are allowed, anybody could make this one.
    let secret = site.program("secret", "secret", 0o600);
    let path = site.script("touch ready; until [ -e linked ]; do sleep 0.01; done");
    let call = submission(path);
    let link = async {
        let folder = crate::site::until("the filter", || {
            site.leftovers().into_iter().find(|folder| folder.join("ready").exists())
        })
        .await;
        std::fs::remove_file(folder.join("job.xml")).unwrap();
        std::fs::hard_link(secret, folder.join("job.xml")).unwrap();
        std::fs::write(folder.join("linked"), "").unwrap();
    };
    let (answer, ()) = tokio::join!(site.run(&call), link);
    assert_eq!(answer.document, FileAfter::NotRegular("it belongs to another user".into()));
}

#[tokio::test]
async fn those_who_prefer_json_find_and_change_it_beside_the_xml() {
    let site = Site::new();
    let path = site.script("cat job.json; echo '{}' > job.json; exit 1");
    let call = Call { document_json: Some(Bytes::from_static(b"{\"Name\":\"a\"}")), ..submission(path) };
    let answer = site.run(&call).await;
    assert_eq!(answer.stdout.text(), "{\"Name\":\"a\"}");
    assert_eq!(answer.document, FileAfter::Unchanged);
    assert_eq!(answer.document_json, Some(FileAfter::Changed(Bytes::from_static(b"{}\n"))));
}

/// HPC-F-66
#[tokio::test]
async fn lines_of_the_result_file_are_handed_on_up_to_a_bound() {
    let site = Site::new();
    let answer =
        site.run_script("echo hold-until=+60 >> \"$MUSTER_RESULT_FILE\"; echo message=wait >> result; exit 3").await;
    assert_eq!(answer.result, FilterExit::Code(3));
    assert_eq!(answer.result_lines.text(), "hold-until=+60\nmessage=wait\n");
    let none = site.run_script("exit 0").await.result_lines;
    assert!(none.bytes.is_empty() && !none.truncated);
    let much = site.run_script("head -c 100000 /dev/zero > result").await.result_lines;
    assert_eq!((much.bytes.len(), much.truncated), (MAX_RESULT_FILE_BYTES, true));
}
use muster_schemas::filter::FilterExit;
