/** The files that a call gave to the person, as links that download them. */
import { useLanguage } from "../i18n";
import { visible } from "../ui/visible";
import type { GivenFile } from "./turn";

/** The conversation that a file was given in: a fork shows the files of the conversation that it began from. */
const OWNER = /\/(conv_[a-z0-9]+)\.files\//;

const UNITS = ["byte", "kilobyte", "megabyte"] as const;
const STEP = 1000;

export function GivenFiles({ conversation, files }: { conversation: string; files: GivenFile[] }) {
  const { t, locale } = useLanguage();
  if (files.length === 0) return null;
  return (
    <ul className="attachments" aria-label={t("attach.given")}>
      {files.map((file) => (
        <li key={file.path}>
          <a className="badge" download href={addressOf(file, conversation)}>
            {t("attach.download", { name: visible(file.name), size: sizeOf(file.size, locale) })}
          </a>
        </li>
      ))}
    </ul>
  );
}

function addressOf(file: GivenFile, conversation: string): string {
  const owner = OWNER.exec(file.path)?.[1] ?? conversation;
  return `/api/conversations/${owner}/file?path=${encodeURIComponent(file.path)}`;
}

function sizeOf(bytes: number, locale: string): string {
  const power = bytes < STEP ? 0 : bytes < STEP * STEP ? 1 : 2;
  return (bytes / STEP ** power).toLocaleString(locale, { style: "unit", unit: UNITS[power], maximumFractionDigits: 1 });
}
