/** The model that answers, and the choice of another one for this conversation. */
import * as Menu from "@radix-ui/react-dropdown-menu";
import { useEffect, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { useMay } from "../session/Permitted";

export function ModelMenu({ conversation }: { conversation: string }) {
  const t = useTexts();
  const mayChoose = useMay("operate");
  const [current, setCurrent] = useState<Schemas["AnsweringModel"] | null>(null);
  const [names, setNames] = useState<string[] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const params = { path: { id: conversation } };
  useEffect(() => {
    const asked = api.GET("/api/conversations/{id}/model", { params: { path: { id: conversation } } });
    dataOf(asked).then(setCurrent, () => setCurrent(null)); // a conversation that is not stored yet has none
  }, [conversation]);
  const list = () => {
    dataOf(api.GET("/api/models")).then(
      ({ adapters }) => setNames(adapters.flatMap((one) => (one.models ?? []).map((model) => model.name))),
      setFailure,
    );
  };
  const choose = (model: string | null) => {
    dataOf(api.PUT("/api/conversations/{id}/model", { params, body: { model } })).then(setCurrent, setFailure);
  };
  if (current === null) return null;
  if (!mayChoose) return <span className="dim model">{current.model || t("chat.noModel")}</span>;
  return (
    <Menu.Root modal={false} onOpenChange={(open) => { if (open) list(); }}>
      <Menu.Trigger className="button button-icon model" title={current.problem}>
        <span className="hidden">{t("chat.model")}</span> {current.model || t("chat.noModel")} ▾
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu menu-long" align="end" sideOffset={6}>
          <Menu.Item onSelect={() => choose(null)}>{t("chat.model.default")}</Menu.Item>
          <Menu.Separator />
          {failure !== null && <Menu.Label>{sentence(t, failure)}</Menu.Label>}
          {names === null && failure === null && <Menu.Label>{t("app.loading")}</Menu.Label>}
          {names?.map((name) => (
            <Menu.Item key={name} onSelect={() => choose(name)}>
              {name}
            </Menu.Item>
          ))}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
