/** The links to the pages, and the menu with appearance, language and sign-out. */
import * as Menu from "@radix-ui/react-dropdown-menu";

import type { Schemas } from "./api/client";
import { useLanguage } from "./i18n";
import { addressOf, goTo, PAGES, type Page } from "./router";
import { THEMES, useTheme, type Theme } from "./theme";

interface NavigationProps {
  page: Page;
  me: Schemas["Me"];
  onSignOut: () => Promise<void>;
}

export function Navigation({ page, me, onSignOut }: NavigationProps) {
  const { t } = useLanguage();
  return (
    <header className="navigation">
      <a className="brand" href={addressOf("chat")} aria-label={t("app.name")}>
        <img src="/icon.svg" alt="" width="24" height="24" />
        <span>{t("app.name")}</span>
      </a>
      <nav aria-label={t("nav.label")}>
        {PAGES.map((one) => (
          <a key={one} href={addressOf(one)} aria-current={one === page ? "page" : undefined}>
            {t(`nav.${one}`)}
          </a>
        ))}
      </nav>
      <a className="button button-danger stop" href={addressOf("activity", "stop")}>
        {t("nav.stop")}
      </a>
      <Preferences me={me} onSignOut={onSignOut} />
    </header>
  );
}

function Preferences({ me, onSignOut }: Omit<NavigationProps, "page">) {
  const { t, language, languages, choose } = useLanguage();
  const [theme, setTheme] = useTheme();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger className="button button-icon" aria-label={t("nav.menu")}>
        ☰
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={6}>
          <Menu.Label>{t("nav.theme")}</Menu.Label>
          <Menu.RadioGroup value={theme} onValueChange={(value) => setTheme(value as Theme)}>
            {THEMES.map((one) => (
              <Choice key={one} value={one} text={t(`nav.theme.${one}`)} />
            ))}
          </Menu.RadioGroup>
          <Menu.Label>{t("nav.language")}</Menu.Label>
          <Menu.RadioGroup value={language} onValueChange={choose}>
            {languages.map(({ tag, name }) => (
              <Choice key={tag} value={tag} text={name} />
            ))}
          </Menu.RadioGroup>
          <Menu.Separator />
          <Menu.Label>{t("nav.me", { name: me.display_name || me.id, scope: me.scope })}</Menu.Label>
          <Menu.Item onSelect={() => goTo("setup")}>{t("setup.title")}</Menu.Item>
          <Menu.Item onSelect={() => goTo("settings")}>{t("settings.title")}</Menu.Item>
          <Menu.Item onSelect={() => goTo("mcp")}>{t("mcp.title")}</Menu.Item>
          <Menu.Item onSelect={() => goTo("account")}>{t("nav.account")}</Menu.Item>
          <Menu.Item onSelect={() => void onSignOut()}>{t("nav.signOut")}</Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Choice({ value, text }: { value: string; text: string }) {
  return (
    <Menu.RadioItem value={value}>
      <span className="mark">
        <Menu.ItemIndicator>✓</Menu.ItemIndicator>
      </span>
      {text}
    </Menu.RadioItem>
  );
}
