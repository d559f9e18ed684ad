//! Tests in a network namespace of their own: each runs itself again inside one, and is skipped where none may be made.

use std::process::Command;

/// Set where a test runs inside its namespace.
const INSIDE: &str = "NAMECAST_TEST_NAMESPACE";
/// Makes a user namespace, in which this user is root, and a network namespace in it.
const UNSHARE: [&str; 4] = ["--user", "--map-root-user", "--net", "--mount"];
/// This namespace's view of its interfaces, of which there is none but `lo` at first.
const VIEW: &str = "mount -t sysfs none /sys && ip link show lo >/dev/null";

/// True inside a namespace, after the shell commands `set_up`. Outside, runs `test` there, or says why not.
pub(crate) fn is_inside(test: &str, set_up: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let set_up = format!("{VIEW} && {set_up}");
    let possible = Command::new("unshare")
        .args(UNSHARE)
        .args(["sh", "-c", &set_up])
        .output();
    match possible {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped, as no namespace can be made: {reason}");
            return false;
        }
        Err(error) => {
            eprintln!("skipped, as there is no `unshare`: {error}");
            return false;
        }
    }
    let run = format!("{set_up} && exec \"$0\" \"$@\"");
    let this = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(UNSHARE)
        .args(["sh", "-c", &run])
        .arg(this)
        .args([test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains(" 1 passed"), "{printed}");
    false
}
