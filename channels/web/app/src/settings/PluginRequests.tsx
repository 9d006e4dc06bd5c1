/** What a plugin asks for, as it declares it in its manifest. */
import type { Schemas } from "../api/client";
import { useTexts } from "../i18n";

const KINDS = ["effects", "network", "files", "secrets", "programs"] as const;

export function PluginRequests({ asks }: { asks: Schemas["PluginRequests"] | null }) {
  const t = useTexts();
  if (asks === null) return <p className="dim">{t("settings.asks.undeclared")}</p>;
  const kinds = KINDS.filter((one) => (asks[one] ?? []).length > 0);
  if (kinds.length === 0) return <p className="dim">{t("settings.asks.nothing")}</p>;
  return (
    <dl className="asks">
      {kinds.map((one) => (
        <div key={one}>
          <dt>{t(`settings.asks.${one}`)}</dt>
          <dd>{(asks[one] ?? []).join(", ")}</dd>
        </div>
      ))}
    </dl>
  );
}
