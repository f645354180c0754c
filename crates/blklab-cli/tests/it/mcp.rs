// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab mcp` as an assistant speaks with it: lines of JSON over pipes.

use crate::support::Folder;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A server, and the pipes to it.
struct Client {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    fn start(f: &Folder, args: &[&str]) -> Client {
        let mut command = f.command(&[&["mcp"], args].concat());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let to = child.stdin.take().expect("a pipe");
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Client {
            child,
            to,
            from,
            id: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let said = client.ask("initialize", &hello);
        assert_eq!(said["result"]["serverInfo"]["name"], "blklab", "{said}");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.send(&ready);
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").expect("it listens");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            let nr = self.from.read_line(&mut line).expect("it answers");
            assert!(nr > 0, "it ended without an answer to {method}");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["result"].clone()
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"]
            .as_array()
            .expect("a list")
            .clone();
        let mut names: Vec<String> = tools
            .iter()
            .map(|t| t["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    }

    /// It ends when nobody asks any more.
    fn end(self) {
        let Client {
            mut child,
            to,
            from,
            ..
        } = self;
        drop((to, from));
        assert!(child.wait().expect("it ends").success());
    }
}

const JOB: &str = "[reader]\nrw=randread\nsize=8m\ndirect=1\nruntime=1\ntime_based\n\
                   [writer]\nrw=write\nsize=64m\n";

#[test]
fn tools_answer_with_the_json_of_the_command() {
    let f = Folder::new();
    f.write("job.fio", JOB);
    f.ok(&["run", "job.fio", "--out", "done"]);
    let mut client = Client::start(&f, &[]);
    assert_eq!(client.tools(), ["slow", "stats", "what_if", "why"]);
    let said = client.call("why", &json!({"file": "done"}));
    let alone = f.ok(&["why", "done", "--output-format", "json"]);
    let alone: Value = serde_json::from_str(&alone).expect("JSON");
    assert_eq!(said["structuredContent"], alone);
    assert_eq!(said["isError"], false);
    let stats = client.call("stats", &json!({"file": "done"}));
    assert!(stats["structuredContent"].is_object(), "{stats}");
    let slow = client.call("slow", &json!({"file": "done", "count": 2}));
    assert_eq!(slow["isError"], false, "{slow}");
    // It may write nothing.
    let run = client.ask(
        "tools/call",
        &json!({"name": "run", "arguments": {"job": "job.fio", "out": "more"}}),
    );
    assert!(
        run["error"].is_object() || run["result"]["isError"] == true,
        "{run}"
    );
    assert!(!f.path("more").exists());
    client.end();
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_command() {
    let f = Folder::new();
    let mut client = Client::start(&f, &[]);
    let said = client.call("why", &json!({"file": "nowhere.blk"}));
    assert_eq!(said["isError"], true, "{said}");
    let words = said["content"][0]["text"].as_str().expect("a text");
    assert_eq!(words, f.run(&["why", "nowhere.blk"]).stderr.trim());
    let said = client.call("why", &json!({"file": "a", "colour": "red"}));
    assert_eq!(said["isError"], true, "{said}");
    client.end();
}

#[test]
fn a_run_is_written_where_that_is_allowed() {
    let f = Folder::new();
    f.write("job.fio", JOB);
    let mut client = Client::start(&f, &["--allow-write"]);
    assert!(client.tools().contains(&"run".to_owned()));
    let said = client.call(
        "run",
        &json!({"job": "job.fio", "out": "made", "sched": "bfq"}),
    );
    assert_eq!(said["isError"], false, "{said}");
    assert!(f.path("made/events.blk").exists());
    let why = client.call("what_if", &json!({"file": "made", "changes": "sched=none"}));
    assert_eq!(why["isError"], false, "{why}");
    client.end();
}
