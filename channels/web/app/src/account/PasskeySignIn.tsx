/** Signs in with a passkey, where this page can have one. */
import { useState } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { hasPasskeys, passkeyProblem, signInWithPasskey } from "./passkeys";

export function PasskeySignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const t = useTexts();
  const [failure, setFailure] = useState<unknown>(null);
  if (!hasPasskeys()) return null;
  const key = passkeyProblem(failure);
  return (
    <>
      <Button onClick={() => void signInWithPasskey().then(onSignedIn, setFailure)}>{t("passkeys.use")}</Button>
      {failure !== null && <Notice kind="error">{key === null ? sentence(t, failure) : t(key)}</Notice>}
    </>
  );
}
