/** The settings of the platform and of each plugin, with what the plugin asks for. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import { Permitted, useMay } from "../session/Permitted";
import "../styles/pages.css";
import "../styles/settings.css";
import { Notice } from "../ui/Notice";
import { PluginRequests } from "./PluginRequests";
import { SectionAbout } from "./SectionAbout";
import { SettingsForm } from "./SettingsForm";

type Section = Schemas["SettingsSection"];

export default function SettingsPage({ name }: { name: string }) {
  const t = useTexts();
  const mayOperate = useMay("operate", { everywhere: true });
  return (
    <div className="page">
      <h1>{t("settings.title")}</h1>
      {mayOperate ? <Sections name={name} /> : <Permitted scope="operate" everywhere>{null}</Permitted>}
    </div>
  );
}

function Sections({ name }: { name: string }) {
  const t = useTexts();
  const ask = useCallback(async () => {
    const [settings, plugins] = await Promise.all([dataOf(api.GET("/api/settings")), dataOf(api.GET("/api/plugins"))]);
    return { sections: settings.sections, plugins: plugins.plugins };
  }, []);
  const { data, failure } = useLoaded(ask);
  const [saved, setSaved] = useState<Record<string, Section>>({});
  const sections = (data?.sections ?? []).map((one) => saved[one.id] ?? one);
  const shown = sections.find((one) => one.id === name);
  const owner = (plugin: Schemas["PluginItem"]) => sections.filter((one) => one.owner === plugin.owner);
  return (
    <>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {sections.some((one) => one.restart_needed) && <Notice kind="info">{t("settings.restart")}</Notice>}
      {shown ? (
        <OneSection
          section={shown}
          plugin={data?.plugins.find((one) => one.owner === shown.owner)}
          onSaved={(after) => setSaved({ ...saved, [after.id]: after })}
        />
      ) : (
        <>
          <h2>{t("settings.general")}</h2>
          <SectionLinks sections={sections.filter((one) => !one.owner)} />
          <h2>{t("settings.plugins")}</h2>
          <ul className="cards">
            {data?.plugins.map((plugin) => (
              <li className="card" key={`${plugin.owner} ${plugin.name}`}>
                <h3>
                  {plugin.name} <span className="badge">{t(`settings.status.${plugin.status}`)}</span>
                </h3>
                {plugin.reason && <p>{plugin.reason} {plugin.hint}</p>}
                <PluginRequests asks={plugin.asks ?? null} />
                <SectionLinks sections={owner(plugin)} />
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function SectionLinks({ sections }: { sections: Section[] }) {
  return (
    <div className="choices">
      {sections.map((one) => (
        <a key={one.id} className="button" href={addressOf("settings", one.id)}>{one.id}</a>
      ))}
    </div>
  );
}

interface OneProps {
  section: Section;
  plugin: Schemas["PluginItem"] | undefined;
  onSaved: (section: Section) => void;
}

function OneSection({ section, plugin, onSaved }: OneProps) {
  const t = useTexts();
  return (
    <>
      <p><a href={addressOf("settings")}>{t("settings.all")}</a></p>
      <h2>{section.id}</h2>
      <SectionAbout section={section} />
      {plugin && <PluginRequests asks={plugin.asks ?? null} />}
      <SettingsForm key={section.id} section={section} onSaved={onSaved} />
      <p className="dim">{t("settings.others")}</p>
    </>
  );
}
