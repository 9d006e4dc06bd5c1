/** The account: who is signed in, and how they sign in again. */
import { useTexts } from "../i18n";
import { useMe } from "../session/Permitted";
import { Passkeys } from "./Passkeys";
import "../styles/pages.css";

export default function AccountPage() {
  const t = useTexts();
  const me = useMe();
  return (
    <div className="page">
      <h1>{t("nav.account")}</h1>
      <p>{t("nav.me", { name: me.display_name || me.id, scope: me.scope })}</p>
      <Passkeys />
    </div>
  );
}
