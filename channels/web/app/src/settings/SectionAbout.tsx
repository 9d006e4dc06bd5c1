/** What a section of the settings is for, as its plugin describes it. */
import type { Schemas } from "../api/client";

export function SectionAbout({ section }: { section: Schemas["SettingsSection"] }) {
  const about = (section.schema as { description?: string }).description ?? "";
  return <p className="about">{about.split("``").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</p>;
}
