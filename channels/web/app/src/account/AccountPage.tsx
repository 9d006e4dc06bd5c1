/** The account: who is signed in, and how they sign in again. */
import { useTexts } from "../i18n";
import { useMay, useMe } from "../session/Permitted";
import { Passkeys } from "./Passkeys";
import { PushNotices } from "./PushNotices";
import "../styles/pages.css";

export default function AccountPage() {
  const t = useTexts();
  const me = useMe();
  const mayApprove = useMay("approve");
  return (
    <div className="page">
      <h1>{t("nav.account")}</h1>
      <p>{t("nav.me", { name: me.display_name || me.id, scope: me.scope })}</p>
      <Passkeys />
      {mayApprove && <PushNotices />}
    </div>
  );
}
