/** The MCP servers, for the owner: their state and tools, added, changed, tested, switched off and removed. */
import { useState } from "react";

import { usePolled } from "../api/usePolled";
import { useTexts, type TextKey } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/pages.css";
import "../styles/settings.css";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { visible } from "../ui/visible";
import { ServerForm } from "./ServerForm";
import { changeServer, loadServers, removeServer, testServer, type Server } from "./servers";

const EVERY_MS = 3000;

export default function McpPage() {
  const t = useTexts();
  const isOwner = useMay("owner", { everywhere: true });
  return (
    <div className="page">
      <h1>{t("mcp.title")}</h1>
      <p className="dim">{t("mcp.how")}</p>
      {isOwner ? <ServerList /> : <Permitted scope="owner" everywhere>{null}</Permitted>}
    </div>
  );
}

/** The servers; `null` within if the plugin is off. */
const ask = async () => ({ servers: await loadServers() });

function ServerList() {
  const t = useTexts();
  const { data: asked, failure, refresh } = usePolled(ask, EVERY_MS);
  const [isAdding, setAdding] = useState(false);
  if (asked === null) {
    return failure === null ? <p className="waiting">{t("app.loading")}</p> : <Notice kind="error">{sentence(t, failure)}</Notice>;
  }
  const data = asked.servers;
  if (data === null) return <p>{t("mcp.none.plugin")}</p>;
  return (
    <>
      {!data.is_running && <Notice kind="info">{t("mcp.off")}</Notice>}
      {data.problems.map((one) => (
        <Notice key={`${one.where} ${one.what}`} kind="error">{visible(`${one.where}: ${one.what}.`)}</Notice>
      ))}
      {isAdding ? (
        <ServerForm onSaved={refresh} onClose={() => setAdding(false)} />
      ) : (
        <Button kind="primary" onClick={() => setAdding(true)}>{t("mcp.add")}</Button>
      )}
      {data.servers.length === 0 && <p>{t("mcp.none")}</p>}
      <ul className="cards">
        {data.servers.map((server) => <ServerCard key={server.server} server={server} onChanged={refresh} />)}
      </ul>
    </>
  );
}

function ServerCard({ server, onChanged }: { server: Server; onChanged: () => void }) {
  const t = useTexts();
  const [open, setOpen] = useState<"" | "change" | "remove">("");
  const [tested, setTested] = useState<Server | "waits" | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const run = (request: Promise<unknown>) => {
    setFailure(null);
    request.then(onChanged, setFailure);
  };
  const test = () => {
    setTested("waits");
    setFailure(null);
    testServer(server.server).then(
      (found) => {
        setTested(found);
        onChanged();
      },
      (wrong: unknown) => {
        setTested(null);
        setFailure(wrong);
      },
    );
  };
  return (
    <li className="card">
      <h2>
        {server.server} <span className={`badge ${server.state === "failed" ? "badge-ERROR" : ""}`}>{t(`mcp.state.${server.state}` as TextKey)}</span>{" "}
        <span className="badge">{t(`mcp.trust.${server.trust}`)}</span>
      </h2>
      <p className="written"><code>{visible(server.url || server.command.join(" "))}</code></p>
      {server.title && <p className="dim">{visible(`${server.title} · ${server.protocol}`)}</p>}
      {server.why && <Notice kind="error">{visible(server.why)}</Notice>}
      <Tools server={server} />
      <div className="choices">
        <Button disabled={server.disabled || tested === "waits"} onClick={test}>{t("mcp.test")}</Button>
        <Button aria-expanded={open === "change"} onClick={() => setOpen(open === "change" ? "" : "change")}>{t("mcp.change")}</Button>
        <Button onClick={() => run(changeServer(server.server, { disabled: server.disabled ? null : true }))}>
          {t(server.disabled ? "mcp.on" : "mcp.switchOff")}
        </Button>
        <Button kind="danger" onClick={() => setOpen("remove")}>{t("mcp.remove")}</Button>
      </div>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {tested === "waits" && <Notice kind="info">{t("mcp.test.waits")}</Notice>}
      {tested !== null && tested !== "waits" && <TestResult tested={tested} />}
      {open === "change" && <ServerForm server={server} onSaved={onChanged} onClose={() => setOpen("")} />}
      {open === "remove" && (
        <Dialog title={t("mcp.remove.title", { server: server.server })} submit={t("mcp.remove")} isDangerous onClose={() => setOpen("")} onSubmit={() => run(removeServer(server.server))}>
          <p>{t("mcp.remove.means")}</p>
        </Dialog>
      )}
    </li>
  );
}

function Tools({ server }: { server: Server }) {
  const t = useTexts();
  if (server.tools.length + server.left_out.length === 0) return null;
  return (
    <details>
      <summary>{t("mcp.tools", { count: server.tools.length })}</summary>
      <ul>
        {server.tools.map((tool) => <li key={tool}><code>{visible(tool)}</code></li>)}
        {server.left_out.map((reason) => <li key={reason} className="dim">{visible(reason)}</li>)}
      </ul>
    </details>
  );
}

function TestResult({ tested }: { tested: Server }) {
  const t = useTexts();
  if (tested.state === "ready") return <Notice kind="info">{t("mcp.test.ready", { count: tested.tools.length })}</Notice>;
  return <Notice kind="error">{t("mcp.test.failed", { why: visible(tested.why || tested.state) })}</Notice>;
}
