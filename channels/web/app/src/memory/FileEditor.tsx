/** The text of a file, and its editor. A change is shown as a diff before it is written, and it is refused if the file
 * has changed since; what was typed stays. */
import { useCallback, useState } from "react";

import { api, dataOf, type Schemas } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { Effect } from "../approvals/Effect";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";

export function FileEditor({ path, onChanged }: { path: string; onChanged: () => void }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/file", { params: { query: { path } } })), [path]);
  const { data, failure, reload } = useLoaded(ask);
  const [text, setText] = useState<string | null>(null);
  const [isSaved, setSaved] = useState(false);
  const written = () => {
    setText(null);
    setSaved(true);
    reload();
    onChanged();
  };
  if (failure !== null) return <Notice kind="error">{sentence(t, failure)}</Notice>;
  if (data === null) return <p className="waiting">{t("app.loading")}</p>;
  if (text !== null) return <Draft path={path} text={text} onChange={setText} onWritten={written} onCancel={() => setText(null)} />;
  return (
    <>
      {isSaved && <Notice kind="info">{t("memory.saved")}</Notice>}
      <Button onClick={() => { setSaved(false); setText(data.content); }}>{t("chat.edit")}</Button>
      {/* A region that scrolls must be reachable by keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre className="file-text" tabIndex={0} aria-label={path} role="region">{data.content}</pre>
    </>
  );
}

interface DraftProps {
  path: string;
  text: string;
  onChange: (text: string) => void;
  onWritten: () => void;
  onCancel: () => void;
}

function Draft({ path, text, onChange, onWritten, onCancel }: DraftProps) {
  const t = useTexts();
  const [preview, setPreview] = useState<Schemas["MemoryPreview"] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const failed = (error: unknown) => {
    setPreview(null);
    setFailure(error);
  };
  const show = () => {
    setFailure(null);
    dataOf(api.POST("/api/memory/preview", { body: { path, content: text } })).then(setPreview, failed);
  };
  const write = (expected: string) => {
    dataOf(api.PUT("/api/memory/file", { body: { path, content: text, expected } })).then(onWritten, failed);
  };
  return (
    <>
      <textarea className="file-text" aria-label={t("memory.editor", { path })} value={text} spellCheck={false} onChange={(event) => { setPreview(null); onChange(event.target.value); }} />
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {preview !== null && <Effect detail={preview.detail} />}
      <div className="choices">
        <Button onClick={onCancel}>{t("ui.cancel")}</Button>
        {preview === null ? (
          <Button kind="primary" onClick={show}>{t("memory.preview")}</Button>
        ) : (
          <Button kind="primary" onClick={() => write(preview.hash)}>{t("ui.save")}</Button>
        )}
      </div>
    </>
  );
}
