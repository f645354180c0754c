// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server: its tools, and the process that answers.

use crate::calls::{Call, RunCall, SlowCall, StatsCall, WhatIfCall, WhyCall};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, Implementation, ServerCapabilities, ServerConfig,
};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use serde_json::{Value, json};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;

/// The command that answers, and the arguments with which it does.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The arguments of a call, with which it prints JSON.
    pub arguments: fn(&Call) -> Vec<String>,
}

/// What an assistant is told at first.
const INSTRUCTIONS: &str = "Explains Linux block-I/O latency. Begin with why: its findings say who \
    suffered, who caused it, how sure that is, the events that show it (evidence) and what to \
    change; verdict says what is ruled out and what the trace does not show. Say no more than a \
    finding's confidence allows, and quote its evidence. what_if tries remedies in a model; its \
    check says whether the model fits the recording.";

struct Server {
    program: Program,
    tool_router: ToolRouter<Server>,
}

/// Serves until standard input ends. An experiment is run only where that may write.
///
/// # Errors
/// If whoever asks speaks no such protocol, or a pipe breaks.
pub fn serve(program: Program, may_write: bool) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut tool_router = Server::tool_router();
    if !may_write {
        tool_router.remove_route("run");
    }
    let server = Server {
        program,
        tool_router,
    };
    runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await;
        let running = running.map_err(io::Error::other)?;
        running.waiting().await.map_err(io::Error::other)?;
        Ok(())
    })
}

#[tool_router]
impl Server {
    #[tool(
        description = "Why I/O in a trace, a run or a job was slow: findings with who suffered, \
                       who caused it, evidence, confidence and remedies; what is ruled out; what \
                       the trace does not show.",
        annotations(read_only_hint = true)
    )]
    async fn why(
        &self,
        Parameters(call): Parameters<WhyCall>,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(&Call::Why(call)).await
    }

    #[tool(
        description = "Statistics of a trace: latency by phase, merges, depth, seeks, by process.",
        annotations(read_only_hint = true)
    )]
    async fn stats(
        &self,
        Parameters(call): Parameters<StatsCall>,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(&Call::Stats(call)).await
    }

    #[tool(
        description = "The slowest I/Os of a trace that a process waited for, with their lives, \
                       phase by phase, and their events.",
        annotations(read_only_hint = true)
    )]
    async fn slow(
        &self,
        Parameters(call): Parameters<SlowCall>,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(&Call::Slow(call)).await
    }

    #[tool(
        description = "Runs the recorded I/O again in the model with changes, or with each \
                       finding's remedy: whom it helps and harms, and whether the model fits.",
        annotations(read_only_hint = true)
    )]
    async fn what_if(
        &self,
        Parameters(call): Parameters<WhatIfCall>,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(&Call::WhatIf(call)).await
    }

    #[tool(
        description = "Runs a job on a modelled kernel, scheduler and device in virtual time, and \
                       writes a run directory, which the other tools read.",
        annotations(read_only_hint = false, destructive_hint = false)
    )]
    async fn run(
        &self,
        Parameters(call): Parameters<RunCall>,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(&Call::Run(call)).await
    }
}

impl Server {
    /// Runs the command. What it cannot do is said in its own words.
    async fn answer(&self, call: &Call) -> Result<CallToolResult, ErrorData> {
        let mut command = Command::new(&self.program.path);
        command
            .args((self.program.arguments)(call))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let done = command.output().await;
        let done = done.map_err(|e| {
            let name = self.program.path.display();
            ErrorData::internal_error(format!("cannot run {name}: {e}"), None)
        })?;
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        let value: Option<Value> = serde_json::from_slice(&done.stdout).ok();
        let Some(value) = value.filter(|_| done.status.success()) else {
            let words = if said.is_empty() {
                format!("the command ended with {}", done.status)
            } else {
                said
            };
            return Ok(CallToolResult::error(vec![ContentBlock::text(words)]));
        };
        // Structured content is an object.
        let value = if value.is_object() {
            value
        } else {
            json!({ "result": value })
        };
        let mut result = CallToolResult::structured(value);
        if !said.is_empty() {
            result.content.push(ContentBlock::text(said));
        }
        Ok(result)
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("blklab", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}
