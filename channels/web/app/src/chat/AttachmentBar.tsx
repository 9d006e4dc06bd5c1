/** The files that will be sent with the message, where each goes, and the way to choose more. */
import { useRef } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { documentSentence } from "../memory/documents";
import { useMay } from "../session/Permitted";
import { Button } from "../ui/Button";
import { isBusy, isDocument, type Attachment, type Attachments } from "./attachments";

/** What messages take: images, PDF and text. Memory takes more. */
const TYPES = "image/png,image/jpeg,image/gif,image/webp,application/pdf,text/*";

export function AttachmentBar({ attachments }: { attachments: Attachments }) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  const mayStore = useMay("owner", { everywhere: true });
  return (
    <>
      <input
        ref={field} type="file" accept={mayStore ? undefined : TYPES} multiple hidden aria-label={t("attach.choose")}
        onChange={(event) => { attachments.add(event.target.files ?? []); event.target.value = ""; }}
      />
      <Button kind="icon" aria-label={t("attach.choose")} title={t("attach.choose")} onClick={() => field.current?.click()}>
        +
      </Button>
      {attachments.files.length > 0 && (
        <ul className="attachments" aria-label={t("attach.files")}>
          {attachments.files.map((file) => (
            <li key={file.key} className="badge" aria-busy={isBusy(file)}>
              {file.name} <State file={file} />
              {mayStore && isDocument(file) && <Destination file={file} attachments={attachments} />}
              <button type="button" className="attachment-remove" aria-label={t("attach.remove", { name: file.name })} onClick={() => attachments.remove(file.key)}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function State({ file }: { file: Attachment }) {
  const t = useTexts();
  if (file.failure !== null) {
    const text = file.toMemory ? documentSentence(t, file.name, file.failure) : sentence(t, file.failure);
    return <span role="alert" className="notice-error">{text}</span>;
  }
  return isBusy(file) && <span className="dim">{t(file.storing ? "attach.storing" : "attach.uploading")}</span>;
}

/** Nothing is stored by the choice; sending the message stores it. */
function Destination({ file, attachments }: { file: Attachment; attachments: Attachments }) {
  const t = useTexts();
  return (
    <select
      className="attachment-destination" aria-label={t("attach.where", { name: file.name })}
      value={file.toMemory ? "memory" : "message"} disabled={file.storing !== null}
      onChange={(event) => attachments.chooseMemory(file.key, event.target.value === "memory")}
    >
      <option value="message">{t("attach.message")}</option>
      <option value="memory">{t("attach.memory")}</option>
    </select>
  );
}
