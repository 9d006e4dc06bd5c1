/** The installed channels that have settings, each with what it needs. They can be set up now or later. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { SectionAbout } from "../settings/SectionAbout";
import { SettingsForm } from "../settings/SettingsForm";
import "../styles/settings.css";
import { Notice } from "../ui/Notice";

const TABLE = "channels.";

export function ChannelsStep() {
  const t = useTexts();
  const ask = useCallback(async () => (await dataOf(api.GET("/api/settings"))).sections.filter((one) => one.id.startsWith(TABLE)), []);
  const { data, failure } = useLoaded(ask);
  const [saved, setSaved] = useState<Record<string, Schemas["SettingsSection"]>>({});
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data === null || data.length === 0) return null;
  return (
    <section aria-labelledby="setup-channels">
      <h2 id="setup-channels">{t("setup.channels")}</h2>
      <p>{t("setup.channels.how")}</p>
      {data.map((one) => (
        <details key={one.id}>
          <summary>{one.id.slice(TABLE.length)}</summary>
          <SectionAbout section={one} />
          <SettingsForm section={saved[one.id] ?? one} onSaved={(after) => setSaved({ ...saved, [after.id]: after })} />
        </details>
      ))}
    </section>
  );
}
