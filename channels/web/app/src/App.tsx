/** The frame of all pages: navigation, and the page that the address names, once this browser is signed in. */
import { lazy, Suspense } from "react";

import { ChatProvider } from "./chat/ChatContext";
import ChatPage from "./chat/ChatPage";
import { useTexts } from "./i18n";
import { sentence } from "./i18n/errors";
import { Navigation } from "./Navigation";
import { useLocation } from "./router";
import { MeProvider } from "./session/Permitted";
import { useSession } from "./session/session";
import { FailureBoundary } from "./ui/FailureBoundary";
import { Notice } from "./ui/Notice";

const AccountPage = lazy(() => import("./account/AccountPage"));
const ActivityPage = lazy(() => import("./activity/ActivityPage"));
const ApprovalsPage = lazy(() => import("./approvals/ApprovalsPage"));
const McpPage = lazy(() => import("./mcp/McpPage"));
const MemoryPage = lazy(() => import("./memory/MemoryPage"));
const SchedulesPage = lazy(() => import("./schedules/SchedulesPage"));
const SettingsPage = lazy(() => import("./settings/SettingsPage"));
const SignInPage = lazy(() => import("./session/SignInPage"));
const SetupPage = lazy(() => import("./setup/SetupPage"));
const WorkflowsPage = lazy(() => import("./workflows/WorkflowsPage"));
const BlocksPage = lazy(() => import("./blocks/BlocksPage"));

export function App() {
  const t = useTexts();
  const session = useSession();
  const { page, name, part } = useLocation();
  if (session.state === "out") {
    return (
      <Suspense fallback={<p className="waiting">{t("app.loading")}</p>}>
        <SignInPage onSignedIn={session.refresh} />
      </Suspense>
    );
  }
  if (session.state !== "in") {
    return <p className="waiting">{t(session.state === "unknown" ? "app.loading" : "error.unreachable")}</p>;
  }
  return (
    <MeProvider me={session.me}>
    <ChatProvider>
    <div className="frame">
      <a className="skip" href="#content" onClick={(event) => skipTo(event)}>
        {t("app.skip")}
      </a>
      <Navigation page={page} me={session.me} onSignOut={session.signOut} />
      <main id="content" tabIndex={-1}>
        <FailureBoundary key={page} fallback={(error) => <Notice kind="error">{t("app.failed", { reason: sentence(t, error) })}</Notice>}>
          <Suspense fallback={<p className="waiting">{t("app.loading")}</p>}>
            {page === "chat" && <ChatPage name={name} part={part} />}
            {page === "approvals" && <ApprovalsPage />}
            {page === "blocks" && <BlocksPage />}
            {page === "schedules" && <SchedulesPage />}
            {page === "workflows" && <WorkflowsPage name={name} part={part} />}
            {page === "account" && <AccountPage />}
            {page === "settings" && <SettingsPage name={name} />}
            {page === "mcp" && <McpPage />}
            {page === "setup" && <SetupPage />}
            {page === "memory" && <MemoryPage name={name} part={part} />}
            {page === "activity" && <ActivityPage name={name} part={part} />}
          </Suspense>
        </FailureBoundary>
      </main>
    </div>
    </ChatProvider>
    </MeProvider>
  );
}

/** Move the focus without changing the address, which names the page. */
function skipTo(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("content")?.focus();
}
