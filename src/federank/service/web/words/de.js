/* Die Wörter der Seite auf Deutsch. Jede Sprache hat dieselben Schlüssel mit denselben {Stellen} für Werte; wo ein Satz von einer
Zahl abhängt, wählt {count} zwischen seinen Formen. Die Wörter einer Föderation können jedes Geschlecht haben: sie stehen nur dort,
wo weder Geschlecht noch Fall an ihnen zu sehen wäre. */

export default {
  // Both pages
  language: "Sprache",
  opening: "Wird geöffnet…",
  "not-open": "Nicht verfügbar",
  "try-again": "Erneut versuchen",
  "nothing-yet": "Noch nichts.",
  "run-by": "Betrieben von: {who}.",
  "worker-missing": "Der lernende Teil dieser Seite ließ sich in diesem Browser nicht starten.",

  // The catalogue's own nouns, where a federation uses one of these English words
  "noun.item/items": { one: "Eintrag", other: "Einträge" },
  "noun.place/places": { one: "Ort", other: "Orte" },
  "noun.venue/venues": { one: "Lokal", other: "Lokale" },
  "noun.film/films": { one: "Film", other: "Filme" },
  "noun.movie/movies": { one: "Film", other: "Filme" },
  "noun.book/books": { one: "Buch", other: "Bücher" },
  "noun.song/songs": { one: "Lied", other: "Lieder" },
  "seen.know-it": "Kenne ich",
  "seen.been-there": "War ich schon",
  "seen.seen-it": "Schon gesehen",
  "seen.read-it": "Schon gelesen",
  "seen.heard-it": "Schon gehört",
  messages: { one: "{count} Nachricht", other: "{count} Nachrichten" },
  "messages-counted": { one: "{count} gezählte Nachricht", other: "{count} gezählte Nachrichten" },
  "outcome.received": "angekommen; ob ihre Runde beendet ist, ist noch nicht bekannt",
  "outcome.aggregated": "aggregiert: Sie steht im Modell",
  "outcome.discarded": "mit ihrer Runde verworfen: {why}",
  "outcome.unknown": "angekommen; der Server sagt nicht mehr, ob ihre Runde aggregiert wurde",
  "discarded.released":
    "Sie steht in keiner Summe, wie der Hilfsserver mit seiner Signatur bestätigt. Sie zählt nicht.",
  "discarded.unproven":
    "Der Hilfsserver hat nicht bestätigt, dass sie in keiner Summe steht; darum zählt sie als verbraucht.",
  "discarded.read": "Sie steht nicht im Modell, aber der Server hat sie gelesen; darum zählt sie als verbraucht.",
  "discarded.uncounted": "Sie steht nicht im Modell, aber der Server hat sie gelesen.",
  "doing.round-open": "Die letzte Nachricht ist angekommen; dieses Gerät wartet, bis ihre Runde beendet ist.",
  "doing.discarded": "Runde {round} wurde verworfen und mit ihr die Nachricht: {why}",
  "doing.waits-after": {
    one: "Die letzte Runde wurde verworfen; darum wartet dieses Gerät etwa {count} Minute, bevor es wieder mitmacht. Mit jeder verworfenen Runde wird die Wartezeit länger.",
    other:
      "Die letzte Runde wurde verworfen; darum wartet dieses Gerät etwa {count} Minuten, bevor es wieder mitmacht. Mit jeder verworfenen Runde wird die Wartezeit länger.",
  },
  "hurdle.last-waits": "Alle Nachrichten sind erstellt; die Runde der letzten ist noch nicht beendet.",
  "lifetime.released": {
    one: "{count} weitere wurde mit ihrer Runde verworfen; sie steht in keiner Summe und zählt nicht.",
    other: "{count} weitere wurden mit ihren Runden verworfen; sie stehen in keiner Summe und zählen nicht.",
  },

  // The top of the page
  "page.description": "Empfehlungen, die dazulernen, ohne dass jemand deinen Verlauf sammelt.",
  "page.name": "Empfehlungen, die dazulernen, ohne dass jemand deinen Verlauf sammelt",
  "page.lead":
    "Deine Liste bleibt in diesem Browser. Gelernt wird hier; gesendet wird nur, was du erlaubst, und nur, wenn du mitmachst.",
  "page.skip": "Zum ersten Schritt",
  "nav.label": "Auf dieser Seite",
  "nav.pick": "Auswählen",
  "nav.recommendations": "Für dich",
  "nav.mine": "Deine Liste",
  "nav.sharing": "Teilen",
  "nav.left": "Was gesendet wurde",
  "nav.federation": "Föderation",
  "standing.away": "Du machst nicht mit: Es wird nichts gesendet",
  "standing.late": "Du machst nicht mit; eine Nachricht kann noch ankommen",
  "standing.on": "Du machst mit",
  "standing.spent": "Alle Nachrichten sind verbraucht",

  // Picking
  "pick.title": "Was magst du?",
  "pick.first": "Wähle zuerst mindestens drei {items}.",
  "pick.more": "Was du hinzufügst, prägt deine Empfehlungen.",
  "pick.waits":
    "Was du hinzufügst, wird frühestens nach einer halben Minute gesendet; bis dahin kannst du es zurücknehmen oder mit „Nie teilen“ markieren.",
  "pick.search": "Nach Namen suchen",
  "pick.category": "Kategorie",
  "pick.all": "Alle",
  "pick.category-count": "{name} ({count})",
  "pick.some": "Einiges aus dem Katalog ({counted}):",
  "pick.popular": "Was viele mögen, aus dem Katalog ({counted}):",
  "pick.none": "Dazu passt kein Name. Versuche es mit weniger Buchstaben.",
  "pick.fit": { one: "{counted} passt:", other: "{counted} passen:" },
  "pick.fit-first": "{counted} passen; die ersten {first}:",
  "why.away": "Du machst nicht mit.",
  "why.nothing": "Du teilst nichts.",
  "why.spent": "Dieses Gerät sendet keine Nachrichten mehr.",
  "why.hurdle": "Etwas verhindert es; der Grund steht unter „Wie viel teilst du?“.",
  "not-sent": "Nichts davon wird gesendet: {why}",

  // A history file
  "file.summary": "Oder eine Datei mit deinem Verlauf laden",
  "file.lead":
    "Eine CSV- oder JSON-Datei mit IDs oder Titeln, wie Letterboxd, IMDb, Netflix, Goodreads oder Google (gespeicherte Orte) sie exportieren. Sie wird hier, auf dieser Seite, gelesen und nie gesendet; was du daraus hinzufügst, kommt auf deine Liste.",
  "file.lead-stars":
    "Eine CSV- oder JSON-Datei mit Bewertungen, wie Letterboxd, IMDb oder Goodreads sie exportieren. Sie wird hier, auf dieser Seite, gelesen und nie gesendet; was du daraus hinzufügst, kommt auf deine Liste.",
  "file.stars": "★ {stars}",
  "file.without-rating": {
    one: "{count} ohne Bewertung wird ausgelassen.",
    other: "{count} ohne Bewertung werden ausgelassen.",
  },
  "file.unrated":
    "In dieser Datei ist nichts bewertet; hier ist eine Spalte namens rating nötig, neben einer namens item oder title.",
  "file.choose": "Datei wählen",
  "file.reading": "Wird gelesen…",
  "file.add": "{counted} hinzufügen",
  "file.added": "{counted} hinzugefügt.",
  "file.unmatched": "{count} nicht in diesem Katalog",
  "file.by-hand": "Wähle einen Namen, um ihn von Hand zu suchen.",
  "file.look": "Zuordnungen durchsehen",
  "file.from": "aus: {line}",
  "file.matched": "{count} von {lines} Zeilen zugeordnet.",
  "file.matched-had": "{count} von {lines} Zeilen zugeordnet, davon {had} schon auf deiner Liste.",
  "file.low": {
    one: "{count} mit schlechter Bewertung wird ausgelassen.",
    other: "{count} mit schlechter Bewertung werden ausgelassen.",
  },
  "file.too-large":
    "Diese Datei hat {size} MB; gelesen werden Dateien bis {most} MB. Behalte nur die Spalte mit deinen Einträgen und versuche es noch einmal.",
  "file.empty": "Diese Datei ist leer; nötig ist eine Liste von Einträgen.",
  "file.not-utf8":
    "Diese Datei ist kein Text in UTF-8; nötig ist eine CSV- oder JSON-Datei mit einer Liste von Einträgen.",
  "file.not-text": "Diese Datei ist kein Text; nötig ist eine CSV- oder JSON-Datei mit einer Liste von Einträgen.",
  "file.all-low": "In dieser Datei ist alles schlecht bewertet, also zählt nichts davon als Vorliebe.",
  "file.no-items":
    "In dieser Datei wurden keine Einträge gefunden; nötig ist eine Spalte namens item oder title oder eine JSON-Liste.",
  "file.too-many": "Diese Datei nennt {count} Einträge; gelesen werden bis zu {most}.",
  "file.not-json": "Diese Datei beginnt wie JSON, ist aber kein gültiges JSON ({reason}).",
  "file.no-list": "Diese JSON-Datei enthält keine Liste; nötig ist eine Liste von IDs oder Titeln.",
  "file.open-quote":
    "In dieser Datei wird eine Zelle in Anführungszeichen nicht geschlossen; das schließende Zeichen fehlt.",

  // Recommendations
  "for-you.title": "Für dich",
  "for-you.chance":
    "Das Modell hat noch von niemandem gelernt, daher ist die Reihenfolge zufällig. Sie wird besser, je mehr Leute mitmachen.",
  "for-you.worked-out": "Auf diesem Gerät berechnet, aus deiner ganzen Liste.",
  "for-you.may-leave":
    "Was dir gefällt, kommt auf deine Liste und darf gesendet werden wie der Rest. Die anderen Antworten bleiben hier.",
  "for-you.empty": "Wähle {items}, die du magst, und hier erscheinen sofort Empfehlungen.",
  "for-you.through": "Du hast alle {items} durchgesehen, die es hier gibt.",
  "for-you.news": { one: "Neue Empfehlung: {first}.", other: "{count} neue Empfehlungen, zuerst {first}." },
  "for-you.near": "passt zu {title}",
  "variety.label": "Vielfalt",
  "variety.none": "was am besten passt",
  "variety.some": "etwas Vielfalt",
  "variety.most": "möglichst verschieden",
  "answer.yes": "Gefällt mir",
  "answer.yes-label": "Gefällt mir: {title}",
  "answer.no": "Nein",
  "answer.no-label": "Nein, nicht mehr zeigen: {title}",
  "answer.seen-label": "{seen}, nicht mehr zeigen: {title}",
  "answered.hidden": "{title} wird nicht mehr gezeigt.",
  "answered.waits": "{title} ist auf deiner Liste und wird frühestens in einer halben Minute gesendet.",
  "answered.left": "{title} ist auf deiner Liste und hat dieses Gerät schon verlassen.",
  "answered.may-leave": "{title} ist auf deiner Liste und darf dieses Gerät verlassen, wenn du mitmachst.",
  "answered.stays": "{title} ist auf deiner Liste.",
  undo: "Zurücknehmen",
  "undo-label": "Zurücknehmen: {title}",

  // The list
  "yours.title": "Deine Liste",
  "yours.titled": "Deine Liste: {counted}",
  "yours.empty": "Noch nichts. Wähle oben einen Namen, um ihn hinzuzufügen.",
  "yours.missing": {
    one: "{counted} von deiner Liste steht nicht mehr in diesem Katalog.",
    other: "{counted} von deiner Liste stehen nicht mehr in diesem Katalog.",
  },
  "yours.more": "{count} weitere",
  "where.left": "gesendet",
  "where.waits": "wird frühestens in einer halben Minute gesendet",
  "where.may-leave": "darf gesendet werden",
  "where.left-decoy": "als Attrappe gesendet",
  "where.decoy": "kann als Attrappe gesendet werden",
  "where.stays": "bleibt hier",
  never: "Nie teilen",
  "never-label": "Nie teilen: {title}",
  "never-category": "nie geteilt: {category}",
  "never-category-label": "nie geteilt: {category}: {title}",
  "never-kept-label": "Auf der Liste behalten, nie teilen: {title}",
  remove: "Entfernen",
  "remove-label": "Entfernen: {title}",
  "take-back-label": "Zurücknehmen: {title}",

  // Sharing
  "sharing.title": "Wie viel teilst du?",
  "sharing.label": "Wie viel geteilt wird, in Prozent",
  "sharing.scale-nothing": "nichts",
  "sharing.scale-all": "alles",
  "sharing.per-cent": "{count} %",
  "sharing.spoken": "{count} Prozent. {sentence}",
  "sharing.suggested": "So schlägt es {name} vor; bewege den Regler, wie du magst.",
  "sharing.suggested-unnamed": "So schlägt es diese Föderation vor; bewege den Regler, wie du magst.",
  "sharing.careful": "Ein vorsichtiger Anfang; bewege den Regler, wie du magst.",
  "sharing.take-part": "Mitmachen",
  "sharing.pause": "Pause",
  "sharing.away": "Du machst nicht mit: Es wird nichts gesendet.",
  "sharing.late":
    "Du machst nicht mit. Eine Nachricht, die unterwegs war, kann noch ankommen; Neues wird nicht gesendet.",
  "share.yours": "deiner Liste ({counted})",
  "share.every-ten": "je 10, die du auswählst ({items}),",
  "share.nothing": "Nichts verlässt dieses Gerät. Empfehlungen bekommst du trotzdem.",
  "share.sealed": "Dieses Gerät sendet nichts mehr, egal wo der Regler steht.",
  "share.coin":
    "Von {many} kann jeder Eintrag jedes Mal, wenn er an der Reihe ist, mit {percent} % Wahrscheinlichkeit gesendet werden: mit der Zeit also fast alle.",
  "share.deniable": {
    one: "Von {many} darf insgesamt etwa {count} dieses Gerät verlassen, zusammen mit Attrappen, die du nicht gewählt hast (etwa {decoys}). Stelle deine Liste vorher fertig: Spätere Änderungen können auffallen.",
    other:
      "Von {many} dürfen insgesamt etwa {count} dieses Gerät verlassen, zusammen mit Attrappen, die du nicht gewählt hast (etwa {decoys}). Stelle deine Liste vorher fertig: Spätere Änderungen können auffallen.",
  },
  "share.used-up": {
    one: "Von {many} darf nichts mehr gesendet werden: {gone} hat das Gerät schon verlassen, und das zählt dauerhaft.",
    other:
      "Von {many} darf nichts mehr gesendet werden: {gone} haben das Gerät schon verlassen, und das zählt dauerhaft.",
  },
  "share.taken-back": {
    one: "Zurückgenommen, aber schon gesendet: {gone}; auch das zählt dauerhaft.",
    other: "Zurückgenommen, aber schon gesendet: {gone}; auch das zählt dauerhaft.",
  },
  "share.coloured": "Was gesendet wird, ist trotzdem von der ganzen Liste beeinflusst.",
  "share.all-of-ten": "Von {many} darf alles dieses Gerät verlassen.",
  "share.about": {
    one: "Von {many} darf insgesamt etwa {count} dieses Gerät verlassen.",
    other: "Von {many} dürfen insgesamt etwa {count} dieses Gerät verlassen.",
  },
  "share.one": "Deine Liste (1 {item}) darf dieses Gerät verlassen.",
  "share.one-always":
    "Deine Liste (1 {item}) darf dieses Gerät verlassen: So niedrig der Regler auch steht, ein Eintrag darf immer gesendet werden.",
  "share.all": "Von {many} darf alles dieses Gerät verlassen.",
  "share.some": {
    one: "Nach jetzigem Stand darf von {many} insgesamt {count} dieses Gerät verlassen.",
    other: "Nach jetzigem Stand dürfen von {many} insgesamt {count} dieses Gerät verlassen.",
  },
  "which.may": {
    one: "Welche? {counted} darf gesendet werden",
    other: "Welche? {counted} dürfen gesendet werden",
  },
  "which.may-decoys": {
    one: "Welche? {counted} darf gesendet werden, zwischen Attrappen",
    other: "Welche? {counted} dürfen gesendet werden, zwischen Attrappen",
  },
  "which.chance":
    "Zufällig und dauerhaft ausgewählt; hältst du etwas zurück, kann etwas anderes an seine Stelle treten.",
  "which.unmarked": "Alles, was du nicht markiert hast.",
  "which.often": "Insgesamt in höchstens {messages}.",
  "which.not": "Das nicht",
  "which.not-label": "Das nicht, nie teilen: {title}",
  "category.summary": "Eine ganze Kategorie nie teilen",
  "category.never": "{category}: nie",
  "category.none": "Dieser Katalog hat keine Kategorien.",
  "kinds.summary": "Andere Arten des Teilens",
  "kinds.legend": "Wie entschieden wird, was gesendet werden darf",
  "kind.sticky": "Ein fester Teil, dauerhaft",
  "kind.sticky-words":
    "Ein Teil deiner Liste wird einmal zufällig ausgewählt. Nur dieser Teil kann das Gerät verlassen, egal wie lange du mitmachst, solange deine Liste und der Regler bleiben, wie sie sind.",
  "kind.deniable": "Mit Attrappen",
  "kind.deniable-words":
    "Was gesendet wird, ist mit Einträgen vermischt, die du nie gewählt hast; das wird einmal und dauerhaft entschieden. Von der Liste, mit der du beitrittst, ist bei nichts, was man sieht, sicher, dass es von dir ist; was du später hinzufügst oder entfernst, oder eine andere Stellung des Reglers, kann erkennbar werden. Was du mit „Nie teilen“ markierst, kann trotzdem als Attrappe gesendet werden.",
  "kind.as-published": "Jedes Mal ein Münzwurf",
  "kind.as-published-words":
    "Wie in den Forschungsarbeiten. Früher oder später ist fast deine ganze Liste gesendet, so niedrig der Regler auch steht.",
  "pairs.summary": "Aus wie vielen Paaren eine Runde lernt",
  "pairs.of-shared":
    "Für jede Runde, bei der dieses Gerät mitmacht, zieht es zufällig Paare: einen Eintrag, der gesendet werden darf, und einen anderen zum Vergleich.",
  "pairs.of-list":
    "Für jede Runde, bei der dieses Gerät mitmacht, zieht es zufällig Paare: einen Eintrag deiner Liste und einen anderen zum Vergleich.",
  "pairs.usual": "So viele, wie die Föderation vorgibt: jetzt {usual}",
  "pairs.own": "Eine eigene Zahl",
  "pairs.number": "Paare je Runde, von 1 bis {most}",
  "pairs.now": {
    one: "Eine neue Nachricht entsteht aus {count} Paar und nennt höchstens {held}.",
    other: "Eine neue Nachricht entsteht aus {count} Paaren und nennt höchstens {held}.",
  },
  "pairs.cut": "Eingestellt sind {wish} Paare; diese Föderation erlaubt höchstens {most}.",
  "pairs.more":
    "Mit mehr Paaren arbeitet dieses Gerät mehr, eine Runde lernt mehr von dir, und in einer Nachricht stehen mehr {items}. Was insgesamt gesendet werden darf, bleibt gleich, aber eine Nachricht kann mehr davon verraten. Die Länge einer Nachricht zeigt ungefähr, aus wie vielen Paaren sie entstanden ist.",
  "pairs.refused":
    "Du hast {wish} eingegeben; diese Föderation erlaubt ganze Zahlen von 1 bis {most}. Es wurde nichts geändert: Gib eine davon ein, oder überlass es der Föderation.",
  "pairs.unread":
    "Es wurde keine Zahl eingegeben; diese Föderation erlaubt ganze Zahlen von 1 bis {most}. Es wurde nichts geändert: Gib eine davon ein, oder überlass es der Föderation.",

  // The promise
  "lifetime.none": "Insgesamt höchstens {messages}; keine gesendet.",
  "lifetime.sent": "Insgesamt höchstens {messages}; {made} gesendet.",
  "lifetime.made": "Insgesamt höchstens {messages}; {made} erstellt, {received} angekommen.",
  "promise.plain": "Wer den Server dieser Föderation betreibt, kann jede Nachricht lesen, die du sendest.",
  "promise.unchecked": "Dieser Browser kann nicht prüfen, wer hier Nachrichten lesen kann; darum wird nichts gesendet.",
  "promise.apart": "Keiner der beiden Server kann eine Nachricht lesen.",
  "promise.one-machine":
    "Kein Prozess allein kann eine Nachricht lesen, aber beide Server laufen auf diesem Rechner: Wer ihn betreibt, könnte die beiden Hälften zusammensetzen.",
  "promise.one-host":
    "Kein Prozess allein kann eine Nachricht lesen, aber beide Server laufen auf {host}: Wer diesen Rechner betreibt, könnte die beiden Hälften zusammensetzen.",
  "promise.unbounded":
    "Was deine Nachrichten zusammen verraten, ist nicht begrenzt: Diese Föderation fügt kein Rauschen hinzu.",
  "promise.bounded": "Was alle deine Nachrichten zusammen über dich verraten können, ist begrenzt: Epsilon {epsilon}.",
  "promise.meaning": "Was bedeutet das?",
  "promise.what-they-tell": "Was sie verraten",
  "full.split": "Wie eine Nachricht geteilt wird",
  "full.split-words":
    "Dieses Gerät teilt jede Nachricht in zwei Hälften. Jede Hälfte allein besteht aus Zufallszahlen. Der Hauptserver addiert die ersten Hälften, der Hilfsserver die zweiten, und nur die beiden Summen werden zusammengesetzt.",
  "full.who": "Wer die beiden Server sind",
  "full.who-words":
    "Der Hauptserver ist {leader}, von dort kommt diese Seite. Der Hilfsserver ist {helper}; wenn du mitmachst, fragt diese Seite ihn nach seinem Schlüssel. {apart} Vergleiche den Fingerabdruck des Hilfsservers mit dem, den seine Betreiber nennen: {fingerprint}",
  "full.apart": "Dass verschiedene Leute sie betreiben, sagen diese selbst; diese Seite kann es nicht prüfen.",
  "full.together": "Hier laufen beide auf demselben Rechner: gut zum Ausprobieren, aber keine Garantie.",
  "full.sums": "Welche Summen geöffnet werden",
  "full.sums-words": "Nur Summen von mindestens {messages}, jede einmal.",
  "full.epsilon": "Epsilon {epsilon}",
  "full.epsilon-words":
    "Jeder Server fügt den Summen Rauschen hinzu. Was auch immer von allen Summen und Modellen zu sehen ist, ist mit deinem Beitrag ({messages}) höchstens {likely}-mal so wahrscheinlich wie ohne ihn, bis auf eine Wahrscheinlichkeit von eins zu {chances}. Das gilt gegenüber allen außer beiden Servern zusammen; kleiner ist besser.",
  "full.no-epsilon": "Kein Epsilon",
  "full.no-epsilon-words":
    "Ohne Rauschen kann eine Summe trotzdem etwas über dich verraten, vor allem jemandem, der die anderen Nachrichten darin kennt. Darum wird keine Zahl angegeben.",
  "full.uncovered": "Was es nicht abdeckt",
  "full.uncovered-words":
    "Beide Server zusammen können jede Nachricht lesen. Wer diese Seite liefert, liefert auch ihren Code. Der Hauptserver sieht deine Netzwerkadresse und wann du mitmachst; der Hilfsserver sieht, dass jemand von deiner Adresse nach seinem Schlüssel gefragt hat. In einer anderen Föderation, oder wenn der Speicher dieses Browsers geleert wird, beginnt die Zählung von vorn.",
  "full.unreachable": "Wenn der Hilfsserver nicht antwortet",
  "full.unreachable-words":
    "Dann wird nichts gesendet, und nichts geht verloren; diese Seite versucht es von selbst weiter. Hat der Hilfsserver ein eigenes Zertifikat, öffne einmal {helper}/identity in diesem Browser und vergleiche den Fingerabdruck.",

  // What has left
  "left.title": "Was dieses Gerät verlassen hat",
  "left.told": "Was deine Nachrichten über das verraten, was du zurückhältst",
  "left.nothing": "Soweit dieser Browser es aufgezeichnet hat, hat nichts dieses Gerät verlassen.",
  "left.some": {
    one: "{count} von deiner Liste ({counted}) hat dieses Gerät verlassen, in {messages}.",
    other: "{count} von deiner Liste ({counted}) haben dieses Gerät verlassen, in {messages}.",
  },
  "left.in-sums": {
    one: "{count} von deiner Liste ({counted}) ist Teil dessen, was dieses Gerät verlassen hat: {messages}.",
    other: "{count} von deiner Liste ({counted}) sind Teil dessen, was dieses Gerät verlassen hat: {messages}.",
  },
  "left.removed": {
    one: "{gone}, nicht mehr auf deiner Liste, hat das Gerät ebenfalls verlassen.",
    other: "{gone}, nicht mehr auf deiner Liste, haben das Gerät ebenfalls verlassen.",
  },
  "left.held-back": {
    one: "{count} Nachricht wurde zurückgehalten und vielleicht nicht gesendet.",
    other: "{count} Nachrichten wurden zurückgehalten und vielleicht nicht gesendet.",
  },
  "left.picture": "{sentence} Noch gesendet werden dürfen: {may}; hier bleiben: {stays}.",
  "left.legend-left": "gesendet: {count}",
  "left.legend-may": "darf gesendet werden: {count}",
  "left.legend-decoys": "darf gesendet werden: {count}, davon {decoys} als Attrappen",
  "left.legend-stays": "bleibt: {count}",
  "left.listed-here": "Jede Nachricht wird hier stehen, bevor sie gesendet wird.",
  "left.sent": "Als deins gesendet",
  "left.in-messages": "In deinen Nachrichten",
  "left.sent-count": "Als deins gesendet: {counted}",
  "left.in-messages-count": "In deinen Nachrichten: {counted}",
  "left.compared": "Zum Vergleich gesendet",
  "left.compared-count": "Zum Vergleich gesendet: {counted}",
  "left.compared-words":
    "Zufällig gezogen aus dem, was außerhalb deines Außenprofils liegt; das verrät wenig, steht aber in den Nachrichten.",
  "left.most-frequent": "Die {count} häufigsten:",
  "left.rounds": "Runde für Runde",
  "left.rounds-count": "Runde für Runde: {messages}",
  "left.raw": "Die letzte Nachricht im Original",
  "left.save": "Als CSV-Datei speichern",
  "column.times": "wie oft",
  "column.rounds": "Runden",
  "column.yours": "wirklich deins",
  "column.round": "Runde",
  "column.sent": "als deins gesendet",
  "column.made-from": "erstellt aus",
  "column.message": "Nachricht",
  "column.compared": "verglichen",
  "column.bytes": "Bytes",
  "column.outcome": "was daraus wurde",
  "cell.yes": "ja",
  "cell.decoy": "Attrappe",
  "cell.nothing": "nichts",
  "cell.of": "{number} von {of}",
  "raw.gone": "Sie wurde erstellt, bevor diese Seite Nachrichten aufbewahrte.",
  "raw.made": "Erstellt für Runde {round}: {bytes} Bytes.",
  "raw.read": "Der Server liest sie.",
  "raw.half": "Das bekommt der Hauptserver: Ohne die Hälfte des Hilfsservers sind es Zufallszahlen.",
  "raw.first": "Die ersten {count}:",
  "raw.label": "Bytes in hexadezimalen Ziffern",
  "raw.save": "Vollständig speichern",
  "told.measured": "Was gemessen wurde",
  "told.cleverer": "Klügere Angriffe können mehr herausfinden.",
  "told.untried":
    "Diese Seite kann es nicht ausprobieren: Die Nachrichten gingen an eine Föderation, die inzwischen neu gestartet wurde.",
  "told.no-message": "Nichts: Es wurde keine Nachricht erstellt.",
  "told.empty": "Nichts weiter: Deine Liste ist leer, also hältst du nichts zurück.",
  "told.everything": "Alles: Deine ganze Liste wurde gesendet.",
  "told.more": {
    one: "Mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würde die beste Vermutung des Servers {named} nennen statt {popular}.",
    other:
      "Mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würden die besten {count} Vermutungen des Servers {named} nennen statt {popular}.",
  },
  "told.same": {
    one: "Nicht mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würde die beste Vermutung des Servers {named} nennen.",
    other:
      "Nicht mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würden die besten {count} Vermutungen des Servers {named} nennen.",
  },
  "told.less": {
    one: "Nicht mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würde die beste Vermutung des Servers {named} nennen; nach der Beliebtheit allein {popular}.",
    other:
      "Nicht mehr, als die Beliebtheit verrät: Von dem, was du zurückhältst ({counted}), würden die besten {count} Vermutungen des Servers {named} nennen; nach der Beliebtheit allein {popular}.",
  },
  "told.unbounded":
    "Einem Server allein nicht mehr, als Summen vieler Nachrichten verraten; wie viel das ist, wurde nicht begrenzt.",
  "told.bounded": "Einem Server allein, oder irgendjemandem von außen, nicht mehr, als Epsilon {epsilon} zulässt.",
  "told.both": "Wenn beide Server die Hälften zusammensetzten: {played}",
  "general.as-published": "Bei einem Münzwurf jedes Mal wird, was heute hierbleibt, an einem anderen Tag gesendet.",
  "general.deniable":
    "Mit Attrappen ist bei keinem einzelnen Eintrag sicher, dass er von dir ist, solange deine Liste und deine Einstellungen so bleiben wie beim Beitritt. Dein Geschmack zeigt sich trotzdem ungefähr.",
  "general.history":
    "Nachrichten, die aus deiner ganzen Liste berechnet sind, nehmen zum Vergleich nie etwas von deiner Liste: Was sie nie nennen, verrät den Rest.",
  "general.sums": "Was du zurückhältst, steht in keiner Nachricht.",
  "general.plain":
    "Wer den Server betreibt, weiß mit Sicherheit, was du teilst, und kann aus dem Geschmack, der sich darin zeigt, mehr erraten.",

  // The federation, leaving, the foot
  "federation.title": "Die Föderation",
  "federation.version": "Version des Modells",
  "federation.round": "Runde",
  "federation.reports": "Nachrichten in dieser Runde",
  "federation.devices": "Geräte",
  "federation.rounds": "Beendete Runden",
  "federation.catalogue": "Katalog",
  "simulated.running": {
    one: "Zurzeit nimmt {count} simulierter Client teil.",
    other: "Zurzeit nehmen {count} simulierte Clients teil.",
  },
  "simulated.starting":
    "Die simulierten Clients werden gestartet. Bis sie teilnehmen, werden Runden vielleicht nicht fertig.",
  "simulated.stopped":
    "Die simulierten Clients sind ausgefallen und werden neu gestartet. Bis sie wieder da sind, werden Runden vielleicht nicht fertig, und was gesendet wird, wird vielleicht nicht verwendet.",
  "friend.summary": "Jemandem zeigen",
  "friend.scan": "Mit einem Telefon im selben Netz zu scannen oder zu öffnen unter",
  "friend.open": "Offen für alle, die sie erreichen können, unter",
  "friend.here":
    "Diese Seite ist nur auf diesem Rechner erreichbar. Mit --host gestartet, zeigt sie hier einen Code für Telefone im selben Netz.",
  "leave.title": "Austreten",
  "leave.lead":
    "Löscht alles, was diese Seite hier speichert. Ist dieses Gerät beigetreten, wird der Server benachrichtigt.",
  "leave.button": "Austreten und alles löschen",
  "sure.title": "Alles löschen?",
  "sure.text":
    "Deine Liste ({items}), deine Einstellungen, das Verzeichnis des Gesendeten und die Schlüssel dieses Geräts verschwinden aus diesem Browser.",
  "sure.sent": "Was schon gesendet wurde, lässt sich nicht zurückrufen.",
  "sure.no": "Behalten",
  "sure.yes": "Austreten und löschen",
  "gone.known": "Du bist ausgetreten. Alles, was diese Seite in diesem Browser gespeichert hatte, ist gelöscht.",
  "gone.unknown":
    "Alles, was diese Seite in diesem Browser gespeichert hatte, ist gelöscht. Der Server konnte nicht benachrichtigt werden; er wird es daran merken, dass sich dieses Gerät nicht mehr meldet.",
  "foot.cookies": "Keine Cookies.",
  "foot.talks":
    "Die Seite spricht nur mit dem Server, von dem sie kommt; er sieht deine Netzwerkadresse, wie jede Website.",
  "foot.talks-helper":
    "Die Seite spricht nur mit dem Server, von dem sie kommt, und fragt, wenn du mitmachst, den Hilfsserver {helper} nach seinem Schlüssel; beide sehen deine Netzwerkadresse, wie jede Website.",
  "foot.privacy": "Was gesendet wird und was es verrät",

  // What the device is doing
  "doing.away": "Du machst nicht mit.",
  "doing.paused": "Pause. Es wird nichts gesendet.",
  "doing.left": "Du bist ausgetreten.",
  "doing.insecure": "Dieser Browser lässt eine Seite nur über https oder auf diesem Rechner selbst mitmachen.",
  "doing.other-tab":
    "Ein anderer Tab dieses Browsers macht schon mit. Dieser wartet und übernimmt, wenn der andere geschlossen wird.",
  "doing.stopped": "Das Mitmachen wurde beendet: {reason}",
  "doing.new-items": "Es gibt neue Einträge; dieses Gerät lernt sie gerade kennen.",
  "doing.left-out": "Runde {round}: Die Nachricht wurde nicht berücksichtigt: {why}",
  "doing.waiting": "Wartet auf die nächste Runde.",
  "doing.learning": "Runde {round}: Dieses Gerät lernt gerade.",
  "doing.asking-again": "Der Server hat eine Runde angeboten, die vorbei ist; es wird erneut gefragt.",
  "doing.too-late": "Die Runde endete, bevor dieses Gerät beginnen konnte.",
  "doing.received": "Der Server hat die Nachricht dieser Runde erhalten.",
  "doing.not-received": "Die letzte Nachricht: {outcome}.",
  "doing.joining-again": "Der Server kennt dieses Gerät nicht mehr; es tritt erneut bei.",
  "doing.retrying": "{reason} Nichts ist verloren gegangen; die Seite versucht es weiter.",
  "doing.invited-enough":
    "Diese Föderation hat dieses Gerät schon so oft eingeladen wie vorgesehen; darum wird nichts mehr gesendet. Modelle und Empfehlungen kommen weiterhin.",
  "outcome.on-its-way": "unterwegs",
  "outcome.held-back": "zurückgehalten: Du hast dich umentschieden, bevor sie gesendet wurde",
  "outcome.not-used": "nicht verwendet: {why}",
  "outcome.begun-anew": "Die Föderation wurde neu gestartet",
  "left-out.too-loud":
    "Der Beweis, dass sie nicht länger ist als erlaubt, ist ungültig. Sie steht in keiner Summe, zählt aber als verbraucht.",
  "left-out.unopened": "Der Hilfsserver konnte sie nicht öffnen. Sie steht in keiner Summe, zählt aber als verbraucht.",
  "left-out.copied":
    "Ein anderer Upload der Runde hat dieselbe Kennung. Sie steht in keiner Summe, zählt aber als verbraucht.",
  "left-out.malformed":
    "Sie hat eine andere Form als die Nachrichten ihrer Runde. Sie steht in keiner Summe, zählt aber als verbraucht.",
  "outcome.unknown-device": "Der Server kannte dieses Gerät nicht mehr",
  "hurdle.would-read":
    "Dieses Gerät ist einer Föderation beigetreten, in der kein Server allein eine Nachricht lesen kann; die Föderation, die jetzt unter dieser Adresse läuft, würde sie lesen. Es wird nichts gesendet; Empfehlungen funktionieren weiter.",
  "hurdle.unknown-kind":
    "Diese Föderation nimmt nur Nachrichten an, die kein Server allein lesen kann, und zwar von einer Art, die diese Seite nicht erstellen kann. Es wird nichts gesendet; Empfehlungen funktionieren weiter.",
  "hurdle.spent": "Dieses Gerät hat {messages} erstellt und erstellt keine mehr. Empfehlungen kommen weiterhin.",
  "hurdle.empty": "Wähle zuerst etwas, das du magst; noch gibt es nichts, woraus gelernt werden kann.",
  "hurdle.nothing": "Du teilst nichts; darum wird nichts gesendet. Empfehlungen funktionieren weiter.",
  "hurdle.whole": "Deine Liste enthält den ganzen Katalog; zum Vergleichen bleibt nichts übrig.",
  "hurdle.changed":
    "Der Katalog hat sich geändert, und Antworten mit Attrappen sind an den alten gebunden. Tritt aus und lösche alles, dann tritt wieder bei.",
  "hurdle.waits": "Was du gerade hinzugefügt hast, wird frühestens nach einer halben Minute gesendet.",
  "hurdle.draw": "Die einmalige, dauerhafte Auslosung lässt nichts zu senden übrig. Empfehlungen funktionieren weiter.",
  "hurdle.never": "Deine ganze Liste ist mit „Nie teilen“ markiert; darum wird nichts gesendet.",
  "hurdle.used-up":
    "Es wurde schon so viel gesendet, wie du erlaubst; darum wird nichts mehr gesendet. Empfehlungen funktionieren weiter.",
  "hurdle.covers": "Dein Außenprofil deckt den ganzen Katalog ab; teile weniger, um mitzumachen.",
  "notice.begun-anew":
    "Diese Föderation wurde neu gestartet, seit du hier warst. Deine Liste, deine Einstellungen und das Verzeichnis des Gesendeten gehören weiter dir; was zur alten gehörte, ist weg. Es wird nichts gesendet, solange du nicht bei der neuen mitmachst.",
  "notice.away":
    "Der Server ist nicht erreichbar. Deine Liste und deine Empfehlungen sind trotzdem da, nach dem Modell, das dieser Browser schon hat; bis der Server wieder da ist, kann nichts gesendet werden.",
  "notice.older":
    "Der Server bietet Version {offered} des Modells an, aber dieses Gerät hat schon Version {have} und behält sie. Wenn es so bleibt, frage die Betreiber, ob eine Sicherung zurückgespielt wurde.",

  // What went wrong
  "fault.unreachable": "Der Server ist gerade nicht erreichbar.",
  "fault.busy": "Der Server ist gerade überlastet.",
  "fault.broke-off": "Die Verbindung brach ab, während der Server antwortete.",
  "fault.too-much": "Der Server hat mehr als die erlaubten {most} Bytes gesendet.",
  "fault.not-json": "Die Antwort des Servers ist kein JSON.",
  "fault.refused": "Der Server hat mit Status {status} abgelehnt, ohne einen Grund zu nennen.",
  "fault.unusable": "In der Antwort des Servers fehlt ein gültiger Wert: {what}.",
  "fault.unknown-interface":
    "Der Server verwendet eine Version der Schnittstelle oder ein Verfahren, das diese Seite nicht kennt. Lade die Seite neu.",
  "fault.storage-full":
    "Der Speicher dieses Browsers ist voll. Es wurde nichts gesendet, und nichts ging verloren; schaffe etwas Platz und versuche es noch einmal.",
  "fault.catalogue-behind": "Der Server bietet eine Runde mit {items} Einträgen an, sein Katalog hat aber {have}.",
  "fault.storage-version":
    "Was dieser Browser aufbewahrt, stammt von einer anderen Version dieser Seite und kann nicht gelesen werden. Lösche im Browser die Daten dieser Website und lade die Seite neu.",
  "fault.storage-gone":
    "Was diese Seite in diesem Browser speichert, wurde von außen gelöscht oder geschlossen; darum wird nichts gesendet. Lade die Seite neu.",
  "fault.outdated": "Inzwischen wurde eine Einstellung geändert.",
  "fault.rows": "Der Server hat {sent} der {needed} Zeilen des Modells gesendet; am Anfang sind alle nötig.",
  "fault.just-begun-anew": "Die Föderation unter dieser Adresse wurde gerade neu gestartet; versuche es noch einmal.",
  "fault.most-rows": "Der Server erlaubt {most} Zeilen, aber seine eigenen Einstellungen ergeben {rows}.",
  "fault.most-numbers": "Der Server erlaubt {most} Zahlen, aber eine Nachricht hat {items}.",
  "fault.out-of-range":
    "Mit diesem Modell verlassen die Zahlen des Geräts den zulässigen Bereich; es wurde nichts gesendet.",
  "fault.unsolvable": "Mit diesem Modell haben die Gleichungen des Geräts keine Lösung; es wurde nichts gesendet.",
  "fault.unsplit":
    "Die Nachrichten dieser Föderation lassen sich auf diesem Gerät nicht teilen; es wurde nichts gesendet.",
  "refused.banned": "Die Betreiber haben dieses Gerät von der Föderation ausgeschlossen.",
  "refused.late": "Die Runde ist vorbei; gewartet wird auf die nächste.",
  "refused.not-invited": "Diese Föderation nimmt nur Geräte auf, die sie eingeladen hat.",
  "refused.malformed": "Der Server konnte die Nachricht nicht lesen ({reason}).",
  "refused.implausible":
    "Der Server hält es für ausgeschlossen, dass ein Gerät diese Nachricht berechnet hat ({reason}).",
  "refused.foreign": "Der Server hat dieses Ticket einem anderen Gerät gegeben.",
  "sums.another-federation": "Die Satzung, die der Hauptserver liefert, gehört nicht zu der Föderation, die er nennt.",
  "sums.another-helper":
    "Die Föderation wurde mit einem anderen Hilfsserver neu gestartet als dem, den dieses Gerät kennt. Es wurde nichts gesendet; frage die Betreiber, oder tritt aus und lösche alles, um neu beizutreten.",
  "sums.another-list": "Die Liste der Einträge ist nicht die, die in der Satzung steht; es wurde nichts gesendet.",
  "sums.weaker":
    "Die Föderation wurde mit {weaker} neu gestartet, als sie diesem Gerät versprochen hat. Es wurde nichts gesendet; frage die Betreiber, oder tritt aus und lösche alles, um neu beizutreten.",
  "sums.more-messages": "mehr Nachrichten",
  "sums.less-noise": "weniger Rauschen",
  "sums.smaller-cohorts": "kleineren Gruppen",
  "sums.helper-silent": "Der Hilfsserver {origin} sagt nicht, wer er ist ({reason}).",
  "sums.helper-other":
    "Der Hauptserver nennt einen Hilfsserver mit dem Schlüssel {named}, aber der unter {origin} hat {found}. Einer von beiden ist nicht der, für den er sich ausgibt; es wurde nichts gesendet.",
  "sums.helper-unreachable":
    "Im Moment kann nichts gesendet werden: Der zweite der beiden Server dieser Föderation antwortet nicht.",
  "sums.offer-untaken": "Das Angebot der Runde kann nicht angenommen werden: {reason}",
  "sums.offer-other-round": "Das Angebot ist von einer anderen Runde als das Ticket; es wird nichts gesendet.",
  "sums.unsplit": "Die Nachricht lässt sich nicht teilen: {reason} Es wurde nichts gesendet.",
  "sums.beyond-promise":
    "Die Nachricht dieser Runde würde mehr verraten, als diesem Gerät versprochen wurde; sie wurde nicht erstellt.",
  "sums.charter-unusable": "Die Satzung, die der Hauptserver liefert, ist nicht brauchbar: {reason}",

  // Messages that are not what they should be
  "wire.parts": "Die Nachricht hat die Teile {found}; nötig sind {needed}.",
  "wire.type": "Der Tensor {name} ist vom Typ {found}; nötig ist {needed}.",
  "wire.outside": "Der Tensor {name} liegt nicht innerhalb der Nachricht.",
  "wire.overlap": "Die Tensoren der Nachricht überschneiden sich oder lassen Bytes übrig, die zu keinem gehören.",
  "wire.short": "Die Nachricht ist zu kurz, um gültig zu sein.",
  "wire.header":
    "Die Nachricht kündigt einen Kopf von {length} Bytes an; er muss in die Nachricht und in {most} Bytes passen.",
  "wire.header-json": "Der Kopf der Nachricht ist kein JSON.",
  "wire.header-table": "Der Kopf der Nachricht ist keine Tabelle.",
  "wire.shape": "Der Tensor {name} hat die Form ({found}); nötig ist ({needed}).",
  "wire.whole": "In einem Broadcast muss {name} eine ganze Zahl sein; gefunden: {found}.",
  "wire.items": "Die Nummern der Einträge einer Nachricht müssen ohne Wiederholung von 0 bis {last} aufsteigen.",
  "wire.finite": "Die Nachricht enthält Werte, die keine endlichen Zahlen sind.",
  "wire.weights": "Die Gewichte eines Broadcasts dürfen nicht negativ sein.",
  "wire.regulariser": "Der Regularisierer eines Broadcasts muss eine einzige Zahl sein, endlich und nicht negativ.",
  "wire.rows":
    "Ein Broadcast nennt seine Zeilen entweder als Codes und Skalen oder als Vektoren, und nur auf eine der beiden Arten.",
  "wire.codes": "Die Codes eines Broadcasts gehen von -{levels} bis {levels}.",
  "wire.scales": "Die Skalen eines Broadcasts dürfen nicht negativ sein.",
  "offer.numbers":
    "In einem Angebot ist keine Zahl negativ, und die Länge ist größer als 0; bei diesem ist es nicht so.",
  "offer.charter": "Das Angebot gehört zu einer anderen Satzung als der festgehaltenen; es wird nichts gesendet.",
  "offer.model":
    "Das Angebot betrifft ein anderes Modell als das, das der Hauptserver geliefert hat; es wird nichts gesendet.",
  "offer.plan":
    "Nachricht, Schranke oder Rauschen des Angebots sind andere als in der Satzung; es wird nichts gesendet.",
  "offer.length": "Das Angebot nennt eine andere Nachrichtenlänge als die Satzung; es wird nichts gesendet.",
  "offer.expired": "Das Angebot ist abgelaufen; es wird nichts gesendet. Die nächste Runde hat ein neues.",
  "upload.length": "Die Nachrichten der Runde haben {needed} Zahlen; diese hat {found}.",
  "upload.norm": "Eine Nachricht hat höchstens die Norm {most}; diese ist länger und wird nicht gesendet.",
  "upload.finite": "Eine Nachricht enthält Werte, die keine endlichen Zahlen sind, und darf nicht gesendet werden.",
  "upload.no-proof":
    "Es ließ sich kein Beweis für die Norm der Nachricht erstellen, obwohl sie kurz genug ist; sie wird nicht gesendet.",
  "upload.proof-length": "Eine Nachricht mit Beweis hat höchstens {most} Zahlen; diese hat {found}.",
  "upload.projections": "Eine Prüfung der Norm hat 64 oder 128 Projektionen; gefunden: {found}.",
  "key.signature": "Die Signatur ({purpose}) ist nicht vom Schlüssel {key}; sie darf nicht verwendet werden.",
  "key.point":
    "Ein öffentlicher Schlüssel besteht aus den 65 Bytes eines unkomprimierten Punktes von P-256; dieser nicht.",
  "charter.fixed": "In der Satzung muss {name} gleich {needed} sein; in dieser nicht.",
  "charter.least": "In der Satzung muss {name} mindestens 1 sein; in dieser nicht.",
  "charter.cohort":
    "Eine Gruppe muss mindestens 2 Leute haben und darf die größte Gruppe nicht übersteigen; diese Satzung erlaubt andere.",
  "charter.recipe": "Die Satzung nennt ein Verfahren, das diese Seite nicht kennt.",
  "charter.values": "Die Satzung hat eine Schranke, eine Potenz oder ein Delta, die unmöglich sind.",
  "charter.noises": "Die Satzung muss für jede Nachricht ein Rauschen nennen; diese tut es nicht.",
  "charter.noise":
    "Das Rauschen eines Servers muss auf jeder Stufe 0 sein oder in dem Bereich, der sich genau ziehen lässt; in dieser Satzung nicht.",
  "charter.proof": "Die Satzung verlangt einen Beweis für die Norm einer Nachricht, den es nicht gibt.",
  "charter.wraps":
    "Eine Summe der Nachrichten der größten Gruppe könnte überlaufen; eine solche Satzung garantiert nichts.",
  "statement.hex": "Das Feld {name} muss aus {length} Bytes in kleinen hexadezimalen Ziffern bestehen; dieses nicht.",
  "statement.no-form": "Eine Erklärung enthält etwas, das keine kanonische Form hat.",
  "statement.too-long": "Die Erklärung {name} hat höchstens {most} Bytes; diese hat {found}.",
  "statement.not-canonical": "Die Erklärung {name} muss in kanonischem JSON sein; diese ist es nicht.",
  "statement.fields": "Die Erklärung {name} hat die Felder {fields}; diese hat andere.",
  "statement.type": "Das Feld {field} der Erklärung {name} muss vom Typ {kind} sein; dieses ist es nicht.",

  // What leaves, and what it tells (privacy.html)
  "privacy.page": "Was gesendet wird und was es verrät · FedeRank",
  "privacy.title": "Was gesendet wird und was es verrät",
  "privacy.lead":
    "Deine Liste bleibt in deinem Browser. Was gesendet wird, wenn du mitmachst, sind Nachrichten mit Zahlen über Einträge. Das ist weniger als deine Liste, aber nicht nichts. Wer sie lesen kann, hängt von der Föderation ab: Ihre Seite sagt neben „Mitmachen“, von welcher Art sie ist.",
  "privacy.read": "Wo der Server Nachrichten liest",
  "privacy.read-words":
    "Wer ihn betreibt, kann lesen, welche Einträge du als deine sendest: Eine Nachricht sagt es von jedem. Er kann den Geschmack lesen, den dein Gerät aus dem gelernt hat, was es teilt; daraus lässt sich anderes erraten, wie es jedes Geschäft tut. Er sieht, wann dein Gerät da war, und seine Netzwerkadresse, wie jede Website.",
  "privacy.unread": "Wo kein Server allein Nachrichten liest",
  "privacy.unread-words":
    "Dein Gerät teilt eine Nachricht in zwei Hälften, von denen jede für sich aus Zufallszahlen besteht. Zwei Server, der Hauptserver und der Hilfsserver, addieren je eine Hälfte der Nachrichten aller und setzen nur die beiden Summen zusammen. Wo jeder auch Rauschen hinzufügt, ist durch eine Zahl, Epsilon, begrenzt, was alle deine Nachrichten zusammen über dich verraten können; wo es kein Rauschen gibt, wird keine solche Zahl angegeben. Beide Server zusammen könnten eine Nachricht lesen: Es kommt darauf an, dass verschiedene Leute sie betreiben.",
  "privacy.popularity":
    "Aus Frugals Summen über alle, mit denselben Leuten in jeder Runde, erfährt ein neugieriger Server nicht mehr, als die Beliebtheit verrät, solange die beiden Server ihre Hälften getrennt halten und er sonst nichts über jemanden weiß: Der beste Angriff gewann 0,00 gegenüber der Beliebtheit, bei Filmen, Orten und in einem Geschäft. Wer weiß, wer kam und ging, kann Runden vergleichen; dagegen hilft Rauschen. Mit 6.000 Leuten behielt Epsilon 4 bei Filmen 97 % der Genauigkeit, 2 behielt 94 % und 1 behielt 92 %; mit weniger Leuten bleibt weniger.",
  "privacy.both": "In beiden Fällen",
  "privacy.both-words":
    "Empfehlungen, und was du aus ihnen ausblendest, stehen in keiner Nachricht, und auch nicht, was ein dauerhaft fester Teil zurückhält. Wer diese Seite liefert, liefert auch ihren Code. Wenn du den Betreibern darin nicht traust, nimm ein Gerät, das du aus einer anderen Quelle installierst (federank device).",
  "privacy.choose": "Was du wählen kannst",
  "privacy.sticky": "Ein fester Teil, dauerhaft.",
  "privacy.sticky-words":
    "Ein Teil deiner Liste wird einmal zufällig ausgewählt; nur dieser Teil kann das Gerät verlassen. Gemessen mit drei Zehnteln, die geteilt werden: Wo Nachrichten gezählt werden (Frugal), kostet es bei Filmen 1 bis 16 % der Genauigkeit, bei Orten 11 bis 30 % und in einem großen Geschäft etwa 40 %; wo sie nicht gezählt werden (FPL), bei Filmen und Orten bis zu 8 % und im Geschäft mehr als ein Drittel.",
  "privacy.deniable": "Mit Attrappen.",
  "privacy.deniable-words":
    "Was gesendet wird, ist mit Einträgen vermischt, die du nie gewählt hast, sodass bei nichts, was man sieht, sicher ist, dass es von dir ist, solange deine Liste bleibt, wie sie ist. Es kostet bei Filmen die Hälfte der Genauigkeit, und fast alles, wo die Auswahl größer ist.",
  "privacy.coin": "Jedes Mal ein Münzwurf.",
  "privacy.coin-words":
    "Wie in den Forschungsarbeiten. Was heute hierbleibt, wird an einem anderen Tag gesendet: Gemessen an Filmbewertungen mit dem Regler bei 10 % waren nach zwanzig Durchgängen 86 % der Einträge der Leute gesendet.",
  "privacy.counted":
    "Wo eine Föderation Nachrichten zählt, sendet ein Gerät eine feste Zahl davon und nicht mehr, was der Server auch sagt; was es zurückhält, steht in keiner davon. Wo kein Server allein Nachrichten liest, zählt die einer verworfenen Runde nicht, wenn der Hilfsserver mit seiner Signatur bestätigt, dass sie in keiner Summe steht.",
  "privacy.measured": "Wo es gemessen wurde",
  "privacy.measured-words":
    "Die Angriffe, die Daten und die Zahlen stehen in der (englischen) Dokumentation von FedeRank unter „What leaves a device, and what a curious server makes of it“. Der Befehl federank audit spielt sie auf deinen eigenen Daten durch.",
  "privacy.back": "Zurück zur Seite",

  // The operator's page
  "admin.page": "Betrieb · FedeRank",
  "admin.title": "Betrieb",
  "admin.signed-out": "Nicht angemeldet",
  "admin.sign-in": "Anmelden",
  "admin.sign-out": "Abmelden",
  "admin.token-lead":
    "Das Token wurde beim Anlegen der Föderation einmal angezeigt. Es wird nur für diesen Tab gespeichert.",
  "admin.token": "Token für den Betrieb",
  "admin.now": "Jetzt",
  "admin.close": "Die offene Runde schließen",
  "admin.charts": "Die letzten Runden",
  "admin.moved": "Was sich am meisten bewegt hat",
  "admin.judged": "Ist es noch gut?",
  "admin.rejected": "Abgelehnte Uploads und Gründe",
  "admin.latency": "Antwortzeiten",
  "admin.rounds": "Runde für Runde",
  "admin.unreachable": "Der Server ist gerade nicht erreichbar; die Seite versucht es weiter.",
  "admin.status": "Der Server hat mit Status {status} geantwortet.",
  "admin.paused": "Die Runden pausieren",
  "admin.round-open": "Runde {round} ist offen",
  "admin.between": "Zwischen zwei Runden",
  "admin.go-on": "Runden fortsetzen",
  "admin.pause": "Runden anhalten",
  "admin.reports": "Nachrichten darin",
  "admin.left": "Ausgetretene Geräte",
  "admin.waiting": "Wartende Geräte",
  "admin.folded": "Aggregierte Runden",
  "admin.abandoned": "Verworfene Runden",
  "health.ok": "Alles in Ordnung",
  "health.attention": "Bitte prüfen",
  "health.failing": "Funktioniert nicht",
  "health.no-round-aggregated":
    "Die letzten {count} Runden wurden alle verworfen; das Modell lernt nichts. Antworten genug Geräte rechtzeitig?",
  "health.rounds-discarded": {
    one: "{count} der letzten {of} Runden wurde verworfen.",
    other: "{count} der letzten {of} Runden wurden verworfen.",
  },
  "health.aggregates-refused": {
    one: "In den letzten {of} Runden wurde {count} Aggregat nicht angewendet: Es hätte das Modell aus seiner Skala gedrängt.",
    other:
      "In den letzten {of} Runden wurden {count} Aggregate nicht angewendet: Sie hätten das Modell aus seiner Skala gedrängt.",
  },
  "health.model-not-finite":
    "Das Modell enthält Werte, die keine endlichen Zahlen sind, und die Geräte lehnen es ab. Geh auf eine frühere Version zurück: federank admin rollback.",
  "health.model-out-of-scale":
    "Das Modell ist divergiert: Seine Werte liegen weit außerhalb der Skala. Geh auf eine frühere Version zurück: federank admin rollback.",
  "health.helper-away":
    "Der Hilfsserver antwortet nicht: Keine Runde kann beginnen oder enden, und die Geräte können nichts senden.",
  "health.store-away": "Die Datenbank antwortet nicht oder nimmt nichts an.",
  "admin.rejected-aggregates": "Abgelehnte Aggregate",
  "admin.bytes": "Bytes in den letzten Runden",
  "admin.unnamed": "Diese Föderation",
  "admin.unsaid":
    "Für Teilnehmende gibt es noch keine Beschreibung; federank serve --description und --run-by legen sie fest.",
  "admin.code": "Code für {address}",
  "admin.join": "Beitreten mit einem Telefon im selben Netz:",
  "admin.fingerprint":
    "Das Zertifikat wurde beim Start erstellt, darum warnen Browser davor. Der Fingerabdruck (SHA-256) ist {fingerprint}",
  "admin.moved-none": "Seit dem Start dieses Prozesses hat sich nichts bewegt.",
  "admin.moved-caption": "Einträge, die die neueste Version am meisten bewegt hat",
  "admin.moved-item": "Eintrag",
  "admin.moved-by": "Bewegung, in mittleren Zeilen",
  "admin.held":
    "Bei der letzten Aggregation wurden die Grenzen angewendet: zu weit bewegte Zeilen {held}, zu sehr gewachsene {capped}.",
  "admin.ranges": "Von den letzten 1.000 Nachrichten an diesen Prozess kamen {count} aus einem Adressbereich.",
  "admin.judged-none": "Noch kein Gerät bewertet das Modell.",
  "admin.judged-count": { one: "Die Version, die beurteilt wurde", other: "{count} Versionen, eine nach der anderen" },
  "admin.judged-caption": "Wiedergefundene zurückgelegte Einträge, nach Version",
  "admin.judged-ratings": "Fehler bei zurückgelegten Bewertungen, nach Version",
  "admin.judged-version": "Version",
  "admin.judged-answers": "Antworten",
  "admin.judged-share": "Anteil gefunden",
  "admin.judged-interval": "95-%-Intervall",
  "admin.from-to": "{low} bis {high}",
  "admin.rejected-none": "Bisher keine.",
  "admin.rejected-caption": "Abgelehnte Uploads",
  "admin.reason": "Grund",
  "admin.uploads": "Uploads",
  "admin.reason-words": "{slug}: {words}",
  "reason.late": "kam, nachdem die Runde zu Ende war",
  "reason.repeated": "ein zweites, anderes Update für dasselbe Ticket",
  "reason.foreign": "mit dem Ticket von jemand anderem, oder einem, das es nicht gibt",
  "reason.implausible": "kein Gerät kann es aus dem veröffentlichten Modell berechnet haben",
  "reason.too-loud": "der Beweis ist ungültig: Die Nachricht kann länger sein als erlaubt",
  "reason.unopened": "der Hilfsserver konnte sie nicht öffnen",
  "reason.copied": "ein anderer Upload der Runde hat dieselbe Kennung",
  "reason.banned": "von einem ausgeschlossenen Gerät",
  "admin.latency-words": "Von den letzten Anfragen an den Prozess, der geantwortet hat.",
  "admin.latency-none": "Noch keine Anfragen.",
  "admin.latency-count": { one: "{count} Route", other: "{count} Routen" },
  "admin.latency-caption": "Antwortzeiten nach Route",
  "admin.route": "Route",
  "admin.requests": "Anfragen",
  "admin.half": "Median, ms",
  "admin.nearly-all": "99. Perzentil, ms",
  "admin.rounds-none": "Noch keine Runde: Sie beginnt mit dem ersten Gerät.",
  "admin.rounds-count": { one: "Die letzte Runde", other: "Die letzten {count} Runden, eine nach der anderen" },
  "admin.rounds-caption": "Die letzten Runden, eine nach der anderen",
  "admin.round": "Runde",
  "admin.ended": "beendet",
  "admin.tasks": "Aufgaben vergeben",
  "admin.reports-column": "Nachrichten",
  "admin.dropouts": "Ausfälle",
  "admin.rejected-column": "abgelehnt",
  "admin.bytes-column": "Bytes",
  "admin.clipped": "gekürzte Zeilen",
  "admin.drift": "Drift",
  "admin.seconds": "Sekunden",
  "state.open": "offen",
  "state.closed": "geschlossen",
  "state.folded": "aggregiert",
  "state.abandoned": "verworfen",
  "chart.reports": "Nachrichten jeder Runde",
  "chart.reported": "angekommen",
  "chart.dropped": "Aufgabe erhalten, keine Nachricht",
  "chart.devices": "Geräte in der Föderation",
  "chart.joined-left": "Geräte, die dazukamen und gingen",
  "chart.joined": "seit der Runde davor dazugekommen",
  "chart.left": "gegangen oder ausgeschlossen",
  "chart.accuracy": "Wiedergefundene zurückgelegte Einträge",
  "chart.error": "Fehler der Vorhersagen (mittel, absolut)",
  "chart.interval": "95-%-Intervall; jeder Punkt aus mindestens 50 Antworten",
  "chart.rejected": "Abgelehnte Uploads",
  "chart.bytes": "Empfangen, in aggregierten Runden",
  "chart.drift": "Wie weit eine Runde das Modell bewegt hat",
  "chart.seconds": "Dauer der aggregierten Runden",
  "chart.round": "Runde {number}",
  "chart.version": "Version {number}",
  "chart.measured": "{value} {unit}",
  "chart.words": {
    one: "{title}: {count} Punkt, zuletzt {latest}, höchstens {highest}.",
    other: "{title}: {count} Punkte, zuletzt {latest}, höchstens {highest}.",
  },
  "chart.words-bad": "{words} {meaning}: {bad} insgesamt.",
  "unit.devices": "Geräte",
  "unit.uploads": "Uploads",
  "unit.share": "Anteil",
  "unit.stars": "Sterne",
  "unit.per-cent": "% seiner Länge",
  "unit.kilobytes": "kB",
  "unit.seconds": "Sekunden",
  "limit.enough": "{count} beenden eine Runde",
  "limit.minimum": "unter {count} wird sie verworfen",
  "limit.deadline": "Höchstdauer: {count} s",
  "limit.drift": "genauer ansehen über {far} %: viermal der Mittelwert, mindestens 2 %",

  // Where items are rated
  "pick.title-stars": "Was kennst du, und wie hat es dir gefallen?",
  "pick.first-stars": "Vergib Sterne für mindestens drei {items}.",
  "pick.more-stars": "Alles, was du bewertest, macht die Vorhersagen besser.",
  "pick.rated": "Worüber schon viel bekannt ist, aus dem Katalog ({counted}):",
  "stars.label": "Sterne für {title}",
  "stars.give": "{stars} Sterne für {title}",
  "stars.would-give": "Erwartete Bewertung: {stars}.",
  "stars.mean": "Noch keine Bewertungen von anderen; {stars} ist dein Durchschnitt.",
  "yours.empty-stars": "Noch nichts. Vergib oben Sterne.",
  "for-you.unlearnt":
    "Das Modell hat noch von niemandem gelernt, also lässt sich nichts vorhersagen. Es wird besser, je mehr Leute mitmachen.",
  "for-you.may-leave-stars":
    "Was du bewertest, kommt auf deine Liste und darf gesendet werden wie der Rest. „Nein“ bleibt hier.",
  "for-you.empty-stars": "Vergib Sterne für einige {items}, und hier steht sofort, was du anderen geben würdest.",
  "filling.legend": "Wie verborgen wird, was du bewertet hast",
  "filling.hybrid": "Mit vorhergesagten Bewertungen",
  "filling.hybrid-words":
    "Auch Einträge, die du nicht bewertet hast, werden gesendet: zuerst mit deinem Durchschnitt, später mit der Bewertung, die du geben würdest. Sie werden einmal und dauerhaft gezogen.",
  "filling.average": "Mit Durchschnittswerten",
  "filling.average-words":
    "Auch Einträge, die du nicht bewertet hast, werden gesendet, mit dem Durchschnitt deiner Sterne. Das ist einfacher, aber die Vorhersagen werden für alle schlechter.",
  "filling.none": "Ohne Tarnung",
  "filling.none-words": "Nur was du bewertet hast, wird gesendet: Wer eine Nachricht liest, weiß, was das ist.",
  "filling.rho": "Wie viele davon für jede deiner Bewertungen",
  "promise.names-rated": "Jede Nachricht hat auch eine zweite Liste, die genau nennt, was du bewertet hast.",
  "left.rated": "Als bewertet gesendet",
  "left.rated-count": "Als bewertet gesendet: {counted}",
  "left.sampled": "Gezogen, mit einer virtuellen Bewertung",
  "left.sampled-count": "Gezogen, mit einer virtuellen Bewertung: {counted}",
  "left.sampled-words":
    "Gezogen, um darunter zu verbergen, was du bewertet hast. In einer Nachricht stehen sie in derselben Liste; nur du siehst hier, welche es sind.",
  "column.rated": "bewertet",
  "column.sampled": "gezogen",
  "general.ratings":
    "Virtuelle Bewertungen verbergen, was in einer Nachricht du bewertet hast, wenn auch nicht vollkommen. Ohne sie verraten zwei Nachrichten die Sterne selbst.",
  "hurdle.unrated": "Vergib zuerst Sterne; noch gibt es nichts, woraus gelernt werden kann.",
  "hurdle.all-rated":
    "Du hast den ganzen Katalog bewertet; es bleibt nichts, worunter sich deine Bewertungen verbergen ließen.",
  "fault.no-filling":
    "In dieser Föderation wird bewertet, aber es ist nicht festgelegt, wie deine Bewertungen verborgen werden; es wurde nichts gesendet.",
  "wire.heard": "Der Teil heard eines Broadcasts muss für jeden Eintrag eine 0 oder 1 sein.",
  "wire.implicit": "Ein Broadcast von SVD++ hat Zeilen von W; dieser hat keine.",
};
