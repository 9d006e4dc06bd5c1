/** The form of one section, made from its JSON Schema. An error stands at its field. */
import { useState, type SyntheticEvent } from "react";

import { api, ApiError, dataOf, type Schemas } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Permitted } from "../session/Permitted";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { fieldsOf, textOf, valueOf, type Field } from "./fields";
import { SettingField } from "./SettingField";

interface Props {
  section: Schemas["SettingsSection"];
  onSaved: (section: Schemas["SettingsSection"]) => void;
}

export function SettingsForm({ section, onSaved }: Props) {
  const t = useTexts();
  const fields = fieldsOf(section);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [failure, setFailure] = useState<unknown>(null);
  const [isSaved, setSaved] = useState(false);
  const present = (field: Field) => textOf(field.kind, section.values[field.name]);
  const changed = fields.filter((field) => texts[field.name] !== undefined && texts[field.name] !== present(field));
  const save = (event: SyntheticEvent) => {
    event.preventDefault();
    const values = Object.fromEntries(changed.map((field) => [field.name, valueOf(field, texts[field.name] ?? "")]));
    setSaved(false);
    dataOf(api.PATCH("/api/settings/{section}", { params: { path: { section: section.id } }, body: { values } })).then(
      (after) => {
        setTexts({});
        setFailure(null);
        setSaved(true);
        onSaved(after);
      },
      setFailure,
    );
  };
  const wrong = failure instanceof ApiError ? failure.field.replace(/^\/values\//, "") : "";
  return (
    <form className="settings" onSubmit={save} aria-label={section.id}>
      {fields.map((field) => (
        <SettingField
          key={field.name}
          field={field}
          text={texts[field.name] ?? present(field)}
          locked={section.locked?.[field.name] ?? ""}
          isSet={section.secrets?.[texts[field.name] ?? present(field)]}
          problem={failure !== null && wrong === field.name ? (failure as ApiError).reason : ""}
          onChange={(text) => setTexts({ ...texts, [field.name]: text })}
        />
      ))}
      <Permitted scope="owner" everywhere>
        <div className="choices">
          <Button kind="primary" type="submit" disabled={changed.length === 0}>
            {t("ui.save")}
          </Button>
        </div>
      </Permitted>
      {isSaved && <Notice kind="info">{t(section.restart_needed ? "settings.saved.restart" : "settings.saved")}</Notice>}
      {failure !== null && !fields.some((field) => field.name === wrong) && <Notice kind="error">{sentence(t, failure)}</Notice>}
    </form>
  );
}
