"""The German sentences. Each has the placeholders of the English one with its key."""

from collections.abc import Mapping

GERMAN: Mapping[str, str] = {
    # Approvals and questions
    "approval.where": "Block {block}, über {channel}",
    "approval.where.here": "Block {block}, von hier",
    "approval.needed": "Eine Entscheidung ist nötig ({where}), bis {time}. Sonst wird der Aufruf abgelehnt.",
    "approval.waiting": "Noch immer ist eine Entscheidung nötig ({where}), bis {time}. Sonst wird der Aufruf "
    "abgelehnt.",
    "approval.left_out": "(… {count} weitere Zeichen)",
    "approval.wider": "{conversation} oder {always} erlaubt auch spätere Aufrufe wie diesen: {calls}",
    "approval.words": "approve: erlauben ja genehmigen; deny: ablehnen nein verbieten verweigern; answer: antworten; "
    "once: einmal; conversation: gespräch gespraech unterhaltung; always: immer",
    "approval.how": "Zum Antworten: {approve}, oder {deny}",
    "approval.settled": "{outcome} ({id}, {where}): {question}",
    "question.needed": "Eine Antwort ist nötig ({where}), bis {time}.",
    "question.waiting": "Noch immer ist eine Antwort nötig ({where}), bis {time}.",
    "question.how": "Zum Antworten: {answer} (Ihre Worte), oder {deny}, um nicht zu antworten. Eine Antwort erlaubt "
    "nichts.",
    "question.how.options": "Zum Antworten: {answer} (Ihre Worte oder eine Nummer), oder {deny}, um nicht zu "
    "antworten. "
    "Eine Antwort erlaubt nichts.",
    "outcome.allowed": "Erlaubt von {by}",
    "outcome.denied": "Abgelehnt von {by}",
    "outcome.late": "Niemand hat rechtzeitig entschieden, deshalb wurde der Aufruf abgelehnt",
    "outcome.answered": "Beantwortet von {by}",
    "outcome.unanswered": "Ohne Antwort gelassen von {by}",
    "outcome.unanswered.late": "Niemand hat rechtzeitig geantwortet",
    "scope.once": "einmal",
    "scope.conversation": "in diesem Gespräch",
    "scope.always": "immer",
    "outcome.withdrawn.panic": "Zurückgezogen, weil alles durch panic angehalten wurde",
    "outcome.withdrawn.block": "Zurückgezogen, weil der Block von {by} angehalten wurde",
    "outcome.withdrawn.cancelled": "Zurückgezogen, weil die Antwort des Agenten von {by} abgebrochen wurde",
    "outcome.withdrawn.stopped": "Zurückgezogen, weil die Antwort des Agenten von {by} angehalten wurde",
    "outcome.withdrawn.ended": "Zurückgezogen, weil die Antwort des Agenten zu Ende ist",
    "by.owner": "dem Eigentümer",
    "by.owner.place": "dem Eigentümer {place}",
    "place.cli": "auf der Kommandozeile",
    "place.terminal": "im Terminal",
    "place.http": "über HTTP",
    "place.other": "in {channel}",
    "speaker.you": "Sie, {place}",
    "speaker.other": "{name}, {place}",
    "speaker.added": "Ergänzt",
    "button.once": "Einmal erlauben",
    "button.deny": "Ablehnen",
    "button.conversation": "In diesem Gespräch erlauben",
    "button.always": "Immer erlauben",
    "button.skip": "Nicht beantworten",
    "button.unknown": "Dieser Knopf bedeutet nichts mehr.",
    "decision.unknown": "Keine offene Entscheidung hat die Nummer {id}.",
    "decision.allowed": "Erlaubt: {question}",
    "decision.denied": "Abgelehnt: {question}",
    "decision.answered": "Beantwortet.",
    "decision.answered.question": "Beantwortet: {question}",
    "decision.unanswered": "Ohne Antwort gelassen.",
    "decision.unanswered.question": "Ohne Antwort gelassen: {question}",
    "decision.gone": "Dieser Aufruf wartet nicht mehr auf eine Entscheidung.",
    "decision.how": "Schreiben Sie die Nummer des Aufrufs: /{command} NUMMER",
    "decision.owner": "Nur der Eigentümer entscheidet.",
    "decision.not_here": "Über Aufrufe entscheidet nur der Eigentümer, und in diesem Kanal geht das nicht.",
    # What an agent wants, as the tools worker asks
    "ask.plan": "Der Agent von Block {block} möchte die Planung beenden und arbeiten: {tool}. Erlauben?",
    "ask.administer": "Der Agent von Block {block} möchte ändern, wer Zugang hat, wer was darf oder was in Ihrem Namen "
    "läuft: {tool}. Erlauben?",
    "ask.delegate": "Der Agent von Block {block} möchte einem eigenen Agenten eine Aufgabe geben oder eine solche "
    "Aufgabe beenden: {tool}. Erlauben?",
    "ask.mcp": "Der Agent von Block {block} möchte ein Werkzeug benutzen, das etwas nach außen senden kann: {tool}. "
    "Erlauben?",
    "ask.fetch": "Der Agent von Block {block} möchte von einem anderen Rechner lesen: {tool}. Erlauben?",
    "ask.read": "Der Agent von Block {block} möchte etwas lesen: {tool}. Erlauben?",
    "ask.write": "Der Agent von Block {block} möchte etwas ändern: {tool}. Erlauben?",
    "ask.send": "Der Agent von Block {block} möchte etwas nach außen senden: {tool}. Erlauben?",
    "ask.exec": "Der Agent von Block {block} möchte ein Programm ausführen: {tool}. Erlauben?",
    "ask.question": "Der Agent von Block {block} fragt Sie, mit {tool}:",
    # Commands of a chat
    "menu.new": "Ein neues Gespräch beginnen",
    "menu.block": "Die Agenten zeigen, oder mit einem anderen sprechen: /block NAME",
    "menu.model": "Das Modell zeigen oder wählen: /model NAME",
    "menu.status": "Wer hier antwortet, und was läuft",
    "menu.stop": "Die laufende Antwort anhalten",
    "menu.approve": "Einen Aufruf erlauben: /approve NUMMER",
    "menu.deny": "Einen Aufruf ablehnen: /deny NUMMER",
    "menu.cost": "Was dieses Gespräch und dieser Tag kosten",
    "menu.attach": "Ein ganzes Gespräch hier zeigen: /attach NUMMER",
    "menu.detach": "Nur zeigen, was hier gefragt wird",
    "menu.help": "Die Befehle zeigen",
    "command.unknown": "Den Befehl /{command} gibt es nicht. /help zeigt die Befehle.",
    "command.help": "Schreiben Sie eine Nachricht, und der Agent antwortet.",
    "command.new": "Die nächste Nachricht beginnt ein neues Gespräch.",
    "command.none": "Hier gibt es noch kein Gespräch: Schreiben Sie zuerst eine Nachricht.",
    "block.here": "Hier sprechen Sie mit {block}. Die Blöcke: {blocks}. /block NAME wählt einen anderen.",
    "block.default": "dem Standardblock",
    "block.missing": "Den Block {block} gibt es nicht. Die Blöcke: {blocks}.",
    "block.chosen": "Hier sprechen Sie mit {block}. Die nächste Nachricht beginnt ein neues Gespräch.",
    "model.none": "Hier antwortet kein Modell: {problem}",
    "model.chosen": "Hier antwortet {model} (für dieses Gespräch gewählt).",
    "model.default": "Hier antwortet {model} (nach den Einstellungen des Blocks und des Eigentümers).",
    "model.how": "/model NAME wählt ein anderes, /model default nimmt die Wahl zurück:",
    "model.more": "und {count} weitere: `trunkline models` zeigt sie.",
    "model.silent": "Keine Liste von {adapters}.",
    "model.not_owner": "Modelle wählt nur der Eigentümer, und nicht über diesen Kanal.",
    "status.turn.queued": "Block {block}; die letzte Antwort: wartet.",
    "status.turn.running": "Block {block}; die letzte Antwort: läuft.",
    "status.turn.parked": "Block {block}; die letzte Antwort: wartet auf Sie.",
    "status.turn.finished": "Block {block}; die letzte Antwort: fertig.",
    "status.waiting": "Aufrufe, die auf eine Entscheidung warten: {count}.",
    "stop.nothing": "Hier läuft nichts.",
    "stop.done": "Wird angehalten.",
    "cost.conversation": "Dieses Gespräch: {sum}.",
    "cost.today": "Heute, alles: {sum}.",
    "cost.unpriced": "Ohne Preis, also nicht in den Summen: {models}.",
    "cost.sum": "{amount} für {count} Anfragen ({input} Token hinein, {output} heraus)",
    "cost.sum.one": "{amount} für {count} Anfrage ({input} Token hinein, {output} heraus)",
    "attach.done": "Dieser Chat zeigt jetzt das ganze Gespräch {conversation} (Block {block}), und was Sie hier "
    "schreiben, geht dorthin. /detach beendet das.",
    "attach.shown": "Dieser Chat zeigt das Gespräch {conversation}.",
    "attach.untitled": "ohne Titel",
    "detach.done": "Dieser Chat zeigt nur, was hier gefragt wird. Was Sie schreiben, geht wie bisher in das Gespräch.",
    "detach.nothing": "Dieser Chat zeigt schon nur, was hier gefragt wird.",
    # People, and what they send
    "person.private": "Dieser Bot ist privat. Wenn es Ihrer ist, führen Sie dort, wo Trunkline läuft, dies aus und "
    "senden "
    "Sie mir den Code: trunkline channels pair {channel}",
    "person.private.id": "Dieser Bot ist privat. Wenn es Ihrer ist, fügen Sie Ihre Nummer {id} in trunkline.toml zu "
    "channels.{channel}.owners hinzu und starten Sie Trunkline neu.",
    "person.private.account": "Dieses Konto ist privat. Wenn es Ihres ist, führen Sie dort, wo Trunkline läuft, dies "
    "aus "
    "und senden Sie mir den Code: trunkline channels pair {channel}",
    "person.private.mailbox": "Dieses Postfach ist privat. Niemand hat Ihre Mail gelesen, und weitere Mails von Ihnen "
    "werden nicht beantwortet.",
    "person.linked": "Sie sind als Eigentümer verbunden. Schreiben Sie eine Nachricht, und der Agent antwortet. "
    "/help zeigt "
    "die Befehle.",
    "person.no_code": "Dieser Code gilt nicht: Er ist falsch, benutzt oder abgelaufen. Einen neuen gibt: trunkline "
    "channels pair {channel}",
    "person.code_here": "Senden Sie mir einen Code in einem privaten Chat, nie in einer Gruppe. Einen neuen gibt: "
    "trunkline "
    "channels pair {channel}",
    "message.unsupported": "Das kann ich hier nicht lesen ({kind}). Schreiben Sie es als Text.",
    "message.edited": "Änderungen an einer gesendeten Nachricht sehe ich nicht. Senden Sie sie als neue Nachricht.",
    "message.encrypted": "Dieser Raum ist verschlüsselt, und verschlüsselte Nachrichten kann ich nicht lesen. "
    "Sprechen Sie "
    "mit mir in einem Raum ohne Verschlüsselung.",
    "message.alone": "Entscheiden Sie in dem Raum, in dem wir allein sind. Diesen lesen auch andere.",
    "message.not_heard.voice": "Diese Sprachnachricht konnte ich nicht anhören: {problem} Schreiben Sie es als Text, "
    "oder nennen Sie "
    "ein Modell, das hört: `transcribe` in [models].",
    "message.not_heard.recording": "Diese Aufnahme konnte ich nicht anhören: {problem} Schreiben Sie es als Text, "
    "oder nennen Sie "
    "ein Modell, das hört: `transcribe` in [models].",
    "message.no_words.voice": "In dieser Sprachnachricht sind keine Worte. Schreiben Sie es als Text.",
    "message.no_words.recording": "In dieser Aufnahme sind keine Worte. Schreiben Sie es als Text.",
    # Answers
    "answer.stopped": "Angehalten.",
    "answer.empty": "Die Antwort ist leer.",
    "answer.max_tokens": "Die Antwort wurde an der Grenze der Token abgeschnitten.",
    "answer.content_filter": "Der Inhaltsfilter des Anbieters hat die Antwort beendet.",
    "answer.file": "Dieser Kanal kann Ihnen die Datei {file} nicht senden.",
    # The terminal
    "terminal.words": "once: j ja erlauben einmal; conversation: g gespräch gespraech unterhaltung; always: i immer; "
    "no: n nein ablehnen verbieten verweigern abbrechen nicht nie niemals",
    "terminal.allow": "Erlauben? {once}/{no}",
    "terminal.allow.keys": "Erlauben? {once}/{no}",
    "terminal.allow.again": "Antworten Sie mit {once} oder {no}",
    "terminal.scope": "Erlauben? {once}: nur diesen Aufruf, {conversation}: in diesem Gespräch, {always}: immer, "
    "{no}: nein, ablehnen",
    "terminal.scope.keys": "Erlauben? {once}/{conversation}/{always}/{no}",
    "terminal.scope.again": "Antworten Sie mit {once}, {conversation}, {always} oder {no}",
    "terminal.answer": "Ihre Antwort",
    "terminal.answer.options": "Ihre Antwort, oder 1 bis {count}",
    "terminal.answer.keys": "Antwort",
    "terminal.answer.again": "Antworten Sie in einer Zeile",
    "terminal.late": "Wenn Sie bis {time} nicht antworten, wird der Aufruf abgelehnt.",
    "terminal.late.question": "Wenn Sie bis {time} nicht antworten, macht der Agent ohne Antwort weiter.",
    # Notices
    "notice.test": "Dies ist ein Test von Trunkline: Dieser Kanal erreicht Sie.",
    "notice.message": "Vom Agenten des Blocks {block}:",
    "notice.online": "Trunkline ist online seit {time}.",
    "notice.back": "Trunkline ist online seit {time}. Seit {since} war es offline, ohne ordentlich beendet zu werden.",
    "notice.offline": "Trunkline ist offline seit {time}.",
    "notice.task.done": "Der Agent {agent} von Block {block} hat seine Aufgabe erledigt:",
    "notice.task.done.cost": "Der Agent {agent} von Block {block} hat seine Aufgabe erledigt, für {cost} US-Dollar:",
    "notice.task.failed": "Der Agent {agent} von Block {block} hat seine Aufgabe nicht erledigt.",
    "notice.task.failed.cost": "Der Agent {agent} von Block {block} hat seine Aufgabe nicht erledigt; sie kostete "
    "{cost} "
    "US-Dollar.",
    "budget.used": "Das Budget für {owner} ist aufgebraucht: {used} von {limit}. {opening}",
    "budget.used.spend": "Das heutige Budget für {owner} ist aufgebraucht: {used} von {limit}. {opening}",
    "budget.used.loops": "Das Budget dieser Stunde für {owner} ist aufgebraucht: {used} von {limit}. {opening}",
    "budget.owner.turn": "diese Antwort",
    "budget.owner.block": "Block {block}",
    "budget.owner.all": "alle Blöcke",
    "budget.calls": "{count} Aufrufe von Modellen",
    "budget.calls.one": "{count} Aufruf von Modellen",
    "budget.opens.turn": "Die nächste Nachricht beginnt mit einem eigenen Budget.",
    "budget.opens": "Es öffnet sich um {time}, mit einer höheren Grenze („trunkline budget set“) oder durch „trunkline "
    "budget reset{option}“.",
    "budget.reset": "Das Budget für {owner}, von dem {used} verbraucht waren, wurde von {by} wieder geöffnet.",
    # E-mail
    "email.private": "Dieses Postfach ist privat",
    "email.decision": "Entscheidung nötig: {question}",
    "email.how": "Antworten Sie auf diese Mail mit der Zeile allein. `ja` und `nein` bedeuten dasselbe wie `erlauben` "
    "und `ablehnen`. Wer diese Mail liest und in Ihrem Namen Mails senden kann, kann entscheiden: Leiten Sie sie nicht "
    "weiter.",
    "email.words": "Nichts wurde entschieden: Das sind nicht die Worte der Mail, die Sie gefragt hat. Kopieren Sie die "
    "ganze Zeile daraus.",
    "email.alone": "Nichts wurde entschieden: Schreiben Sie die Zeile allein, ohne anderen Text.",
    "email.gone": "Der Aufruf {id} wartet nicht mehr auf eine Entscheidung.",
    "email.empty": "Ihre Mail hat keinen Text und keine Datei.",
    "email.too_large": "Ihre Mail wurde nicht gelesen, weil sie größer als {limit} kB ist.",
    "email.help": "Schreiben Sie eine Mail, und der Agent antwortet. Eine neue Mail beginnt ein Gespräch, eine "
    "Antwort setzt "
    "es fort.",
    "email.commands": "Eine Mail aus einer Zeile, die mit einem Schrägstrich beginnt, ist ein Befehl:",
    "email.menu.model": "das Modell dieses Gesprächs zeigen oder wählen: /model NAME",
    "email.menu.status": "wer in diesem Gespräch antwortet, und was wartet",
    "email.menu.stop": "die laufende Antwort dieses Gesprächs anhalten",
    "email.menu.cost": "was die letzte Antwort dieses Gesprächs verbraucht hat",
    "email.menu.help": "die Befehle zeigen",
    "email.none": "In diesem Mailwechsel gibt es noch kein Gespräch. Senden Sie zuerst eine Nachricht, und antworten "
    "Sie auf "
    "die Antwort.",
    "email.nothing": "In diesem Mailwechsel läuft nichts.",
    "email.cost": "Die letzte Antwort hat {input} Token Eingabe und {output} Ausgabe verbraucht. `trunkline costs` "
    "zeigt "
    "Preise.",
    "error.file.large": "Diese Datei ist größer als 20 MB. Senden Sie eine kleinere, oder legen Sie sie in den "
    "Arbeitsordner.",
    "error.file.gone": "{service} gibt diese Datei nicht heraus. Senden Sie sie noch einmal.",
    # Errors, by their codes
    "error.invalid_request": "Die Anfrage ist nicht gültig.",
    "error.unauthorized": "Gültige Zugangsdaten sind nötig.",
    "error.forbidden": "Das ist nicht erlaubt.",
    "error.not_found": "Unter diesem Namen gibt es nichts.",
    "error.conflict": "Die Anfrage widerspricht dem, was da ist.",
    "error.too_large": "Die Nachricht ist zu groß.",
    "error.rate_limited": "Zu viele Anfragen. Versuchen Sie es später noch einmal.",
    "error.engine_unavailable": "Der Agent ist gerade nicht erreichbar. Ihre Nachricht wurde nicht angenommen; "
    "versuchen "
    "Sie es noch einmal.",
    "error.storage_failure": "Das Speichern ist fehlgeschlagen. Die Nachricht ist vielleicht nicht erhalten.",
    "error.provider_error": "Der Anbieter des Modells konnte nicht antworten.",
    "error.over_budget": "Ein Budget ist aufgebraucht, deshalb wurde kein Modell gefragt. Warten Sie, bis es sich "
    "wieder "
    "öffnet, oder fragen Sie den Eigentümer, der es öffnet mit: trunkline budget reset",
    "error.not_sent": "Kein Modell wurde gefragt, weil eine Einstellung oder Vorkehrung des Eigentümers es nicht "
    "erlaubt. "
    "Lassen Sie Bilder und Dateien weg, oder fragen Sie den Eigentümer, dem der Grund gezeigt wird.",
    "error.tool_error": "Ein Werkzeug ist so fehlgeschlagen, dass die Antwort nicht weitergehen konnte.",
    "error.context_overflow": "Das Gespräch passt nicht mehr in das Kontextfenster des Modells.",
    "error.panic": "Alles wurde angehalten. Der Eigentümer gibt es frei mit: trunkline panic --release",
    "error.internal": "Etwas ist schiefgegangen. Einzelheiten stehen im Protokoll.",
}
