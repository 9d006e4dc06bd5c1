/** The page for a browser that is not signed in. */
import { useState, type SyntheticEvent } from "react";

import { PasskeySignIn } from "../account/PasskeySignIn";
import { ApiError } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { pair } from "./session";

export default function SignInPage({ onSignedIn }: { onSignedIn: () => void }) {
  const t = useTexts();
  const [code, setCode] = useState("");
  const [problem, setProblem] = useState("");
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    pair(code.trim()).then(onSignedIn, (error: unknown) => {
      const refused = error instanceof ApiError && [400, 401, 403, 410, 422].includes(error.status);
      setProblem(refused ? t("session.wrong") : sentence(t, error));
    });
  };
  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <h1>{t("session.title")}</h1>
        <p>{t("session.how")}</p>
        <label htmlFor="code">{t("session.code")}</label>
        <input
          id="code"
          value={code}
          autoComplete="one-time-code"
          autoCapitalize="characters"
          spellCheck={false}
          required
          onChange={(event) => setCode(event.target.value)}
        />
        <Button kind="primary" type="submit">
          {t("session.submit")}
        </Button>
        {problem && <Notice kind="error">{problem}</Notice>}
        <PasskeySignIn onSignedIn={onSignedIn} />
      </form>
    </main>
  );
}
