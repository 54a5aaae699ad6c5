/* Le parole della pagina in italiano. Tutte le lingue hanno le stesse chiavi, con gli stessi {posti} per i valori; dove una frase
dipende da un numero, {count} sceglie tra le sue forme. Le parole di una federazione possono essere maschili o femminili: le frasi
che le contengono non ne chiedono il genere. */

export default {
  // Both pages
  language: "Lingua",
  opening: "Apertura in corso…",
  "not-open": "Non disponibile",
  "try-again": "Riprova",
  "nothing-yet": "Ancora niente.",
  "run-by": "Gestita da {who}.",
  "worker-missing": "In questo browser non è stato possibile avviare la parte della pagina che apprende.",

  // The catalogue's own nouns, where a federation uses one of these English words
  "noun.item/items": { one: "voce", other: "voci" },
  "noun.place/places": { one: "luogo", other: "luoghi" },
  "noun.venue/venues": { one: "locale", other: "locali" },
  "noun.film/films": { one: "film", other: "film" },
  "noun.movie/movies": { one: "film", other: "film" },
  "noun.book/books": { one: "libro", other: "libri" },
  "noun.song/songs": { one: "brano", other: "brani" },
  "seen.know-it": "Lo conosco già",
  "seen.been-there": "Già visitato",
  "seen.seen-it": "Già visto",
  "seen.read-it": "Già letto",
  "seen.heard-it": "Già sentito",
  messages: { one: "{count} messaggio", other: "{count} messaggi" },
  "messages-counted": { one: "{count} messaggio conteggiato", other: "{count} messaggi conteggiati" },
  "outcome.received": "ricevuto; non si sa ancora se il suo turno è finito",
  "outcome.aggregated": "aggregato: è nel modello",
  "outcome.discarded": "scartato con il suo turno: {why}",
  "outcome.unknown": "ricevuto; il server non dice più se il suo turno è stato aggregato",
  "discarded.released": "non è in nessuna somma, come conferma il server ausiliario con la sua firma. Non conta.",
  "discarded.unproven": "il server ausiliario non ha confermato che non è in nessuna somma, quindi conta come usato.",
  "discarded.read": "non è nel modello, ma il server lo ha letto, quindi conta come usato.",
  "discarded.uncounted": "non è nel modello, ma il server lo ha letto.",
  "doing.round-open": "L'ultimo messaggio è arrivato; questo dispositivo aspetta che il suo turno finisca.",
  "doing.discarded": "Il turno {round} è stato scartato, e con esso il messaggio: {why}",
  "doing.waits-after": {
    one: "L'ultimo turno è stato scartato, quindi questo dispositivo aspetta circa {count} minuto prima di partecipare di nuovo. L'attesa cresce a ogni turno scartato.",
    other:
      "L'ultimo turno è stato scartato, quindi questo dispositivo aspetta circa {count} minuti prima di partecipare di nuovo. L'attesa cresce a ogni turno scartato.",
  },
  "hurdle.last-waits": "Tutti i messaggi sono stati creati; il turno dell'ultimo non è ancora finito.",
  "lifetime.released": {
    one: "Un altro è stato scartato con il suo turno; non è in nessuna somma, quindi non conta.",
    other: "Altri {count} sono stati scartati con i loro turni; non sono in nessuna somma, quindi non contano.",
  },

  // The top of the page
  "page.description": "Consigli che imparano senza raccogliere la cronologia di nessuno.",
  "page.name": "Consigli che imparano senza raccogliere la cronologia di nessuno",
  "page.lead":
    "Il tuo elenco resta in questo browser. L'apprendimento avviene qui; viene inviato solo ciò che permetti, e solo se partecipi.",
  "page.skip": "Vai al primo passo",
  "nav.label": "In questa pagina",
  "nav.pick": "Scegli",
  "nav.recommendations": "Per te",
  "nav.mine": "Il tuo elenco",
  "nav.sharing": "Condivisione",
  "nav.left": "Dati usciti",
  "nav.federation": "Federazione",
  "standing.away": "Non partecipi: non viene inviato nulla",
  "standing.late": "Non partecipi; un messaggio potrebbe ancora arrivare",
  "standing.on": "Partecipi",
  "standing.spent": "Messaggi esauriti",

  // Picking
  "pick.title": "Che cosa ti piace?",
  "pick.first": "Comincia con almeno tre {items}.",
  "pick.more": "Ciò che aggiungi influisce sui tuoi consigli.",
  "pick.waits":
    "Ciò che aggiungi può essere inviato solo dopo mezzo minuto; fino ad allora puoi annullare, o indicare che non va mai condiviso.",
  "pick.search": "Cerca per nome",
  "pick.category": "Categoria",
  "pick.all": "Tutte",
  "pick.category-count": "{name} ({count})",
  "pick.some": "Qualche proposta, su {counted}:",
  "pick.popular": "Ciò che piace a molti, su {counted}:",
  "pick.none": "Nessun nome corrisponde. Prova con meno lettere.",
  "pick.fit": { one: "{counted} corrisponde:", other: "{counted} corrispondono:" },
  "pick.fit-first": "{counted} corrispondono; ecco i primi {first} risultati:",
  "why.away": "non stai partecipando.",
  "why.nothing": "non condividi niente.",
  "why.spent": "questo dispositivo non invia più messaggi.",
  "why.hurdle": "qualcosa lo impedisce; il motivo è indicato sotto «Quanto condividi?».",
  "not-sent": "Di tutto ciò non viene inviato nulla: {why}",

  // A history file
  "file.summary": "Oppure carica un file con la tua cronologia",
  "file.lead":
    "Un file CSV o JSON con identificativi o titoli, come lo esportano Letterboxd, IMDb, Netflix, Goodreads o Google (luoghi salvati). Viene letto qui, in questa pagina, e non viene mai inviato; ciò che ne aggiungi entra nel tuo elenco.",
  "file.lead-stars":
    "Un file CSV o JSON con voti, come lo esportano Letterboxd, IMDb o Goodreads. Viene letto qui, in questa pagina, e non viene mai inviato; ciò che ne aggiungi entra nel tuo elenco.",
  "file.stars": "★ {stars}",
  "file.without-rating": {
    one: "{count} senza voto viene tralasciato.",
    other: "{count} senza voto vengono tralasciati.",
  },
  "file.unrated":
    "In questo file nulla ha un voto; qui serve una colonna chiamata rating, accanto a una chiamata item o title.",
  "file.choose": "Scegli un file",
  "file.reading": "Lettura in corso…",
  "file.add": "Aggiungi {counted}",
  "file.added": "Fatto: {counted} in più.",
  "file.unmatched": "Assenti da questo catalogo: {count}",
  "file.by-hand": "Premi un nome per cercarlo a mano.",
  "file.look": "Rivedi ciò che è stato riconosciuto",
  "file.from": "da: {line}",
  "file.matched": "Righe riconosciute: {count} su {lines}.",
  "file.matched-had": "Righe riconosciute: {count} su {lines}, di cui {had} già nel tuo elenco.",
  "file.low": {
    one: "{count} con un voto basso viene tralasciato.",
    other: "{count} con un voto basso vengono tralasciati.",
  },
  "file.too-large":
    "Questo file ha {size} MB; si possono leggere file fino a {most} MB. Tieni solo la colonna con le tue voci e riprova.",
  "file.empty": "Questo file è vuoto; serve un elenco di voci.",
  "file.not-utf8": "Questo file non è testo in UTF-8; serve un file CSV o JSON con un elenco di voci.",
  "file.not-text": "Questo file non è testo; serve un file CSV o JSON con un elenco di voci.",
  "file.all-low": "In questo file tutti i voti sono bassi, quindi nulla conta come gradito.",
  "file.no-items":
    "In questo file non è stata trovata nessuna voce; serve una colonna chiamata item o title, oppure una lista JSON.",
  "file.too-many": "Questo file contiene {count} voci; se ne possono leggere fino a {most}.",
  "file.not-json": "Questo file comincia come JSON, ma non è JSON valido ({reason}).",
  "file.no-list": "Questo file JSON non contiene una lista; serve una lista di identificativi o titoli.",
  "file.open-quote": "In questo file una cella tra virgolette non viene chiusa; mancano le virgolette finali.",

  // Recommendations
  "for-you.title": "Per te",
  "for-you.chance":
    "Il modello non ha ancora imparato da nessuno, quindi l'ordine è casuale. Migliora man mano che le persone partecipano.",
  "for-you.worked-out": "Consigli calcolati su questo dispositivo, in base a tutto il tuo elenco.",
  "for-you.may-leave":
    "Ciò che ti piace entra nel tuo elenco, e può uscire come il resto. Le altre risposte restano qui.",
  "for-you.empty": "Scegli {items} che ti piacciono, e i consigli compaiono subito qui.",
  "for-you.through": "Hai passato in rassegna tutto il catalogo: non ci sono più {items} da proporre.",
  "for-you.news": { one: "Nuovo consiglio: {first}.", other: "{count} nuovi consigli; il primo è {first}." },
  "for-you.near": "affine a {title}",
  "variety.label": "Varietà",
  "variety.none": "i più adatti",
  "variety.some": "un po' di varietà",
  "variety.most": "massima varietà",
  "answer.yes": "Mi piace",
  "answer.yes-label": "Mi piace: {title}",
  "answer.no": "Non fa per me",
  "answer.no-label": "Non fa per me, non mostrare più: {title}",
  "answer.seen-label": "{seen}, non mostrare più: {title}",
  "answered.hidden": "{title} non comparirà più tra i consigli.",
  "answered.waits": "{title} è nel tuo elenco; può essere inviato solo tra mezzo minuto.",
  "answered.left": "{title} è nel tuo elenco e ha già lasciato questo dispositivo.",
  "answered.may-leave": "{title} è nel tuo elenco e, se partecipi, può lasciare questo dispositivo.",
  "answered.stays": "{title} è nel tuo elenco.",
  undo: "Annulla",
  "undo-label": "Annulla: {title}",

  // The list
  "yours.title": "Il tuo elenco",
  "yours.titled": "Il tuo elenco: {counted}",
  "yours.empty": "Ancora niente. Premi un nome qui sopra per aggiungerlo.",
  "yours.missing": {
    one: "{counted} del tuo elenco non è più in questo catalogo.",
    other: "{counted} del tuo elenco non sono più in questo catalogo.",
  },
  "yours.more": "Altri {count}",
  "where.left": "già inviato",
  "where.waits": "può essere inviato solo tra mezzo minuto",
  "where.may-leave": "può essere inviato",
  "where.left-decoy": "già inviato come copertura",
  "where.decoy": "può essere inviato come copertura",
  "where.stays": "resta qui",
  never: "Non condividere mai",
  "never-label": "Non condividere mai: {title}",
  "never-category": "da non condividere mai: {category}",
  "never-category-label": "da non condividere mai: {category}: {title}",
  "never-kept-label": "Tieni nell'elenco, ma non condividere mai: {title}",
  remove: "Rimuovi",
  "remove-label": "Rimuovi {title}",
  "take-back-label": "Annulla: rimuovi {title}",

  // Sharing
  "sharing.title": "Quanto condividi?",
  "sharing.label": "Quanto condividere, in percentuale",
  "sharing.scale-nothing": "niente",
  "sharing.scale-all": "tutto",
  "sharing.per-cent": "{count} %",
  "sharing.spoken": "{count} per cento. {sentence}",
  "sharing.suggested": "Valore suggerito da {name}; sposta il cursore come preferisci.",
  "sharing.suggested-unnamed": "Valore suggerito da questa federazione; sposta il cursore come preferisci.",
  "sharing.careful": "Un inizio prudente; sposta il cursore come preferisci.",
  "sharing.take-part": "Partecipa",
  "sharing.pause": "Pausa",
  "sharing.away": "Non stai partecipando: non viene inviato nulla.",
  "sharing.late":
    "Non stai partecipando. Un messaggio già partito potrebbe ancora arrivare; non viene inviato nulla di nuovo.",
  "share.yours": "{counted} del tuo elenco",
  "share.every-ten": "ogni 10 {items} che scegli",
  "share.nothing": "Nulla lascia questo dispositivo. I consigli li ricevi comunque.",
  "share.sealed": "Da questo dispositivo non esce più nulla, qualunque sia la posizione del cursore.",
  "share.coin":
    "Su {many}, ogni voce può uscire ogni volta che tocca a lei, con una probabilità del {percent} %: col tempo usciranno quasi tutte.",
  "share.deniable": {
    one: "Su {many}, in tutto circa {count} potrà lasciare questo dispositivo, insieme a voci di copertura che non hai scelto (circa {decoys}). Completa prima il tuo elenco: le modifiche successive si possono notare.",
    other:
      "Su {many}, in tutto circa {count} potranno lasciare questo dispositivo, insieme a voci di copertura che non hai scelto (circa {decoys}). Completa prima il tuo elenco: le modifiche successive si possono notare.",
  },
  "share.used-up": {
    one: "Su {many}, nulla può più uscire: {gone} ha già lasciato questo dispositivo, e conta per sempre.",
    other: "Su {many}, nulla può più uscire: {gone} hanno già lasciato questo dispositivo, e contano per sempre.",
  },
  "share.taken-back": {
    one: "{gone} che hai rimosso ha già lasciato questo dispositivo, e conta per sempre.",
    other: "{gone} che hai rimosso hanno già lasciato questo dispositivo, e contano per sempre.",
  },
  "share.coloured": "Ciò che viene inviato risente comunque di tutto l'elenco.",
  "share.all-of-ten": "Su {many}, tutto può lasciare questo dispositivo.",
  "share.about": {
    one: "Su {many}, in tutto circa {count} potrà lasciare questo dispositivo.",
    other: "Su {many}, in tutto circa {count} potranno lasciare questo dispositivo.",
  },
  "share.one": "Il tuo elenco (1 {item}) può lasciare questo dispositivo.",
  "share.one-always":
    "Il tuo elenco (1 {item}) può lasciare questo dispositivo: per quanto basso sia il cursore, una voce può sempre uscire.",
  "share.all": "Su {many}, tutto può lasciare questo dispositivo.",
  "share.some": {
    one: "Allo stato attuale, su {many}, in tutto {count} potrà lasciare questo dispositivo.",
    other: "Allo stato attuale, su {many}, in tutto {count} potranno lasciare questo dispositivo.",
  },
  "which.may": { one: "Quali? Invio possibile per {counted}", other: "Quali? Invio possibile per {counted}" },
  "which.may-decoys": {
    one: "Quali? Invio possibile per {counted}, tra voci di copertura",
    other: "Quali? Invio possibile per {counted}, tra voci di copertura",
  },
  "which.chance":
    "La scelta è casuale e vale per sempre; se tieni qualcosa per te, qualcos'altro può prenderne il posto.",
  "which.unmarked": "Tutto ciò che non hai segnato.",
  "which.often": "In tutto, in {messages} al massimo.",
  "which.not": "Questo no",
  "which.not-label": "Questo no, non condividere mai: {title}",
  "category.summary": "Non condividere mai un'intera categoria",
  "category.never": "{category}: mai",
  "category.none": "Questo catalogo non ha categorie.",
  "kinds.summary": "Altri modi di condividere",
  "kinds.legend": "Come si decide che cosa può uscire",
  "kind.sticky": "Una parte fissa, per sempre",
  "kind.sticky-words":
    "Alcune delle tue voci vengono scelte a caso, una volta sola. Solo quelle possono uscire, per quanto a lungo partecipi, finché il tuo elenco e il cursore restano come sono.",
  "kind.deniable": "Con voci di copertura",
  "kind.deniable-words":
    "Ciò che esce è mescolato con voci che non hai mai scelto, decise una volta per sempre. Dell'elenco con cui aderisci, nulla di ciò che si vede è sicuramente tuo; ciò che aggiungi o togli dopo, o un'altra posizione del cursore, può trasparire. Ciò che segni da non condividere mai può comunque essere inviato come copertura.",
  "kind.as-published": "Testa o croce ogni volta",
  "kind.as-published-words":
    "Come negli articoli scientifici. Prima o poi quasi tutto ciò che hai sarà uscito, per quanto basso sia il cursore.",
  "pairs.summary": "Da quante coppie impara un turno",
  "pairs.of-shared":
    "Per ogni turno a cui partecipa, questo dispositivo estrae a caso delle coppie: una voce fra ciò che può uscire, e un'altra con cui confrontarla.",
  "pairs.of-list":
    "Per ogni turno a cui partecipa, questo dispositivo estrae a caso delle coppie: una voce del tuo elenco, e un'altra con cui confrontarla.",
  "pairs.usual": "Quante ne indica la federazione: ora {usual}",
  "pairs.own": "Un numero a tua scelta",
  "pairs.number": "Coppie per turno, da 1 a {most}",
  "pairs.now": {
    one: "Un nuovo messaggio nasce da {count} coppia e nomina al massimo {held}.",
    other: "Un nuovo messaggio nasce da {count} coppie e nomina al massimo {held}.",
  },
  "pairs.cut": "Le coppie impostate sono {wish}; questa federazione ne permette al massimo {most}.",
  "pairs.more":
    "Con più coppie questo dispositivo lavora di più, un turno impara di più da te e un messaggio nomina più {items}. Ciò che in tutto può uscire resta lo stesso, ma un messaggio può rivelarne di più. La lunghezza di un messaggio mostra all'incirca da quante coppie nasce.",
  "pairs.refused":
    "Hai scritto {wish}; questa federazione permette numeri interi da 1 a {most}. Non è cambiato nulla: scrivi uno di questi numeri, o lascia decidere alla federazione.",
  "pairs.unread":
    "Non hai scritto nessun numero; questa federazione permette numeri interi da 1 a {most}. Non è cambiato nulla: scrivi uno di questi numeri, o lascia decidere alla federazione.",

  // The promise
  "lifetime.none": "In tutto {messages} al massimo; finora nessuno inviato.",
  "lifetime.sent": "In tutto {messages} al massimo; inviati finora: {made}.",
  "lifetime.made": "In tutto {messages} al massimo; creati finora: {made}, ricevuti: {received}.",
  "promise.plain": "Chi gestisce il server di questa federazione può leggere ogni messaggio che invii.",
  "promise.unchecked":
    "Questo browser non può verificare chi può leggere i messaggi qui, quindi non viene inviato nulla.",
  "promise.apart": "Nessuno dei due server può leggere un messaggio.",
  "promise.one-machine":
    "Nessun processo da solo può leggere un messaggio, ma entrambi i server girano su questa macchina: chi la gestisce potrebbe ricomporre le due metà.",
  "promise.one-host":
    "Nessun processo da solo può leggere un messaggio, ma entrambi i server girano su {host}: chi lo gestisce potrebbe ricomporre le due metà.",
  "promise.unbounded":
    "Ciò che i messaggi rivelano nel loro insieme non ha un limite: questa federazione non aggiunge rumore.",
  "promise.bounded": "Ciò che tutti i messaggi insieme possono rivelare di te ha un limite: epsilon {epsilon}.",
  "promise.meaning": "Che cosa significa?",
  "promise.what-they-tell": "Che cosa rivelano",
  "full.split": "Come si divide un messaggio",
  "full.split-words":
    "Questo dispositivo divide ogni messaggio in due metà. Ogni metà da sola è fatta di numeri casuali. Il server principale somma le prime metà, quello ausiliario le seconde, e solo le due somme vengono unite.",
  "full.who": "Chi sono i due server",
  "full.who-words":
    "Il server principale è {leader}, da cui proviene questa pagina. Il server ausiliario è {helper}; quando partecipi, questa pagina gli chiede la sua chiave. {apart} Confronta l'impronta del server ausiliario con quella dichiarata da chi lo gestisce: {fingerprint}",
  "full.apart": "Sono i gestori a dichiarare di essere persone diverse; questa pagina non può verificarlo.",
  "full.together": "Qui entrambi girano sulla stessa macchina: va bene per provare, ma non è una garanzia.",
  "full.sums": "Quali somme vengono aperte",
  "full.sums-words": "Solo somme di almeno {messages}, una volta ciascuna.",
  "full.epsilon": "Epsilon {epsilon}",
  "full.epsilon-words":
    "Ogni server aggiunge rumore alle somme. Qualunque cosa si veda di tutte le somme e di tutti i modelli è al massimo {likely} volte più probabile con i tuoi contributi ({messages}) che senza, salvo una probabilità di uno su {chances}. Vale contro tutti tranne i due server insieme; più piccolo è, meglio è.",
  "full.no-epsilon": "Nessun epsilon",
  "full.no-epsilon-words":
    "Senza rumore, una somma può comunque rivelare qualcosa di te, soprattutto a chi conosce gli altri messaggi che contiene. Perciò non si dichiara nessuna cifra.",
  "full.uncovered": "Che cosa non copre",
  "full.uncovered-words":
    "I due server insieme possono leggere ogni messaggio. Chi fornisce questa pagina ne fornisce anche il codice. Il server principale vede il tuo indirizzo di rete e quando partecipi; quello ausiliario vede che qualcuno dal tuo indirizzo ha chiesto la sua chiave. In un'altra federazione, o se la memoria di questo browser viene cancellata, il conteggio ricomincia.",
  "full.unreachable": "Se il server ausiliario non risponde",
  "full.unreachable-words":
    "In quel caso non viene inviato nulla e nulla va perso; questa pagina riprova da sola. Se il server ausiliario ha un certificato proprio, apri una volta {helper}/identity in questo browser e confronta l'impronta.",

  // What has left
  "left.title": "Che cosa è uscito da questo dispositivo",
  "left.told": "Che cosa rivelano i tuoi messaggi di ciò che hai tenuto per te",
  "left.nothing": "Per quanto risulta a questo browser, nulla ha lasciato questo dispositivo.",
  "left.some": {
    one: "{count} del tuo elenco ({counted}) ha lasciato questo dispositivo, in {messages}.",
    other: "{count} del tuo elenco ({counted}) hanno lasciato questo dispositivo, in {messages}.",
  },
  "left.in-sums": {
    one: "{count} del tuo elenco ({counted}) fa parte di ciò che ha lasciato questo dispositivo: {messages}.",
    other: "{count} del tuo elenco ({counted}) fanno parte di ciò che ha lasciato questo dispositivo: {messages}.",
  },
  "left.removed": {
    one: "Anche {gone} che non è più nel tuo elenco ha lasciato questo dispositivo.",
    other: "Anche {gone} che non sono più nel tuo elenco hanno lasciato questo dispositivo.",
  },
  "left.held-back": {
    one: "{count} messaggio è stato trattenuto, e forse non è stato inviato.",
    other: "{count} messaggi sono stati trattenuti, e forse non sono stati inviati.",
  },
  "left.picture": "{sentence} Possono ancora uscire: {may}; restano: {stays}.",
  "left.legend-left": "già usciti: {count}",
  "left.legend-may": "possono uscire: {count}",
  "left.legend-decoys": "possono uscire: {count}, di cui {decoys} come copertura",
  "left.legend-stays": "restano: {count}",
  "left.listed-here": "Ogni messaggio sarà elencato qui prima di essere inviato.",
  "left.sent": "Inviato come tuo",
  "left.in-messages": "Nei tuoi messaggi",
  "left.sent-count": "Inviato come tuo: {counted}",
  "left.in-messages-count": "Nei tuoi messaggi: {counted}",
  "left.compared": "Inviato per confronto",
  "left.compared-count": "Inviato per confronto: {counted}",
  "left.compared-words":
    "Estratti a caso fra ciò che non fa parte del tuo profilo esterno; rivelano poco, ma sono nei messaggi.",
  "left.most-frequent": "I {count} più frequenti:",
  "left.rounds": "Turno per turno",
  "left.rounds-count": "Turno per turno: {messages}",
  "left.raw": "L'ultimo messaggio, così com'è",
  "left.save": "Salva come file CSV",
  "column.times": "volte",
  "column.rounds": "turni",
  "column.yours": "davvero tuo",
  "column.round": "turno",
  "column.sent": "inviato come tuo",
  "column.made-from": "ricavato da",
  "column.message": "messaggio",
  "column.compared": "confrontati",
  "column.bytes": "byte",
  "column.outcome": "esito",
  "cell.yes": "sì",
  "cell.decoy": "copertura",
  "cell.nothing": "niente",
  "cell.of": "{number} di {of}",
  "raw.gone": "È stato creato prima che questa pagina iniziasse a conservare i messaggi.",
  "raw.made": "Creato per il turno {round}: {bytes} byte.",
  "raw.read": "Il server lo legge.",
  "raw.half": "È ciò che riceve il server principale: senza la metà di quello ausiliario, sono numeri casuali.",
  "raw.first": "I primi {count}:",
  "raw.label": "Byte in cifre esadecimali",
  "raw.save": "Salva tutto",
  "told.measured": "Che cosa è stato misurato",
  "told.cleverer": "Attacchi più raffinati potrebbero scoprire di più.",
  "told.untried":
    "Questa pagina non può provarlo: i messaggi sono andati a una federazione che è stata avviata da capo.",
  "told.no-message": "Nulla: non è stato creato nessun messaggio.",
  "told.empty": "Nulla di più: il tuo elenco è vuoto, quindi non c'è nulla che tieni per te.",
  "told.everything": "Tutto: il tuo elenco è già uscito per intero.",
  "told.more": {
    one: "Più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), la migliore ipotesi del server indovinerebbe {named} invece di {popular}.",
    other:
      "Più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), le migliori {count} ipotesi del server indovinerebbero {named} invece di {popular}.",
  },
  "told.same": {
    one: "Non più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), la migliore ipotesi del server indovinerebbe {named}.",
    other:
      "Non più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), le migliori {count} ipotesi del server indovinerebbero {named}.",
  },
  "told.less": {
    one: "Non più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), la migliore ipotesi del server indovinerebbe {named}; da ciò che è popolare, {popular}.",
    other:
      "Non più di quanto riveli la popolarità: di ciò che hai tenuto per te ({counted}), le migliori {count} ipotesi del server indovinerebbero {named}; da ciò che è popolare, {popular}.",
  },
  "told.unbounded":
    "A un solo server, non più di quanto rivelino le somme di molti messaggi; quanto sia, non ha un limite dichiarato.",
  "told.bounded": "A un solo server, o a chiunque dall'esterno, non più di quanto permetta epsilon {epsilon}.",
  "told.both": "Se i due server unissero le metà: {played}",
  "general.as-published": "Con testa o croce ogni volta, ciò che oggi resta qui viene inviato un altro giorno.",
  "general.deniable":
    "Con le voci di copertura, nessuna singola voce che si vede è sicuramente tua, finché il tuo elenco e le tue scelte restano come al momento dell'adesione. I tuoi gusti si intravedono comunque.",
  "general.history":
    "I messaggi ricavati da tutto il tuo elenco non usano mai per confronto ciò che è tuo: ciò che non nominano mai tradisce il resto.",
  "general.sums": "Ciò che tieni per te non è in nessun messaggio.",
  "general.plain":
    "Chi gestisce il server sa con certezza ciò che condividi, e dai gusti che ne emergono può indovinare altro.",

  // The federation, leaving, the foot
  "federation.title": "La federazione",
  "federation.version": "Versione del modello",
  "federation.round": "Turno",
  "federation.reports": "Messaggi in questo turno",
  "federation.devices": "Dispositivi",
  "federation.rounds": "Turni conclusi",
  "federation.catalogue": "Catalogo",
  "simulated.running": {
    one: "Al momento partecipa {count} client simulato.",
    other: "Al momento partecipano {count} client simulati.",
  },
  "simulated.starting":
    "I client simulati si stanno avviando. Finché non partecipano, i turni potrebbero non concludersi.",
  "simulated.stopped":
    "I client simulati si sono fermati e vengono riavviati. Finché non tornano, i turni potrebbero non concludersi, e ciò che viene inviato potrebbe non essere usato.",
  "friend.summary": "Mostrala a qualcuno",
  "friend.scan": "Da inquadrare con un telefono sulla stessa rete, o da aprire all'indirizzo",
  "friend.open": "Aperta a chiunque possa raggiungerla, all'indirizzo",
  "friend.here":
    "Questa pagina è disponibile solo su questa macchina. Avviata con --host, mostra qui un codice per i telefoni della stessa rete.",
  "leave.title": "Lascia la federazione",
  "leave.lead":
    "Cancella tutto ciò che questa pagina conserva qui. Se questo dispositivo ha aderito, il server viene avvisato.",
  "leave.button": "Esci e cancella tutto",
  "sure.title": "Cancellare tutto?",
  "sure.text":
    "Il tuo elenco ({items}), le tue scelte, il registro e le chiavi di questo dispositivo spariranno da questo browser.",
  "sure.sent": "Ciò che è già stato inviato non può essere ritirato.",
  "sure.no": "Tieni tutto",
  "sure.yes": "Esci e cancella",
  "gone.known":
    "Hai lasciato la federazione. Tutto ciò che questa pagina conservava in questo browser è stato cancellato.",
  "gone.unknown":
    "Tutto ciò che questa pagina conservava in questo browser è stato cancellato. Non è stato possibile avvisare il server; se ne accorgerà dal tuo silenzio.",
  "foot.cookies": "Niente cookie.",
  "foot.talks":
    "La pagina comunica solo con il server da cui proviene, che vede il tuo indirizzo di rete, come ogni sito.",
  "foot.talks-helper":
    "La pagina comunica solo con il server da cui proviene e, se partecipi, chiede al server ausiliario {helper} la sua chiave; entrambi vedono il tuo indirizzo di rete, come ogni sito.",
  "foot.privacy": "Che cosa esce e che cosa rivela",

  // What the device is doing
  "doing.away": "Non partecipi.",
  "doing.paused": "In pausa. Non viene inviato nulla.",
  "doing.left": "Hai lasciato la federazione.",
  "doing.insecure": "In questo browser una pagina può partecipare solo via https o su questa stessa macchina.",
  "doing.other-tab":
    "Sta già partecipando un'altra scheda di questo browser. Questa resta in attesa, e subentra quando l'altra si chiude.",
  "doing.stopped": "La partecipazione si è fermata: {reason}",
  "doing.new-items": "Ci sono nuove voci; questo dispositivo le sta imparando.",
  "doing.left-out": "Turno {round}: il messaggio è stato escluso: {why}",
  "doing.waiting": "In attesa del prossimo turno.",
  "doing.learning": "Turno {round}: questo dispositivo sta imparando.",
  "doing.asking-again": "Il server ha proposto un turno già finito; nuova richiesta in corso.",
  "doing.too-late": "Quel turno è finito prima che questo dispositivo potesse cominciare.",
  "doing.received": "Il server ha ricevuto il messaggio di questo turno.",
  "doing.not-received": "L'ultimo messaggio: {outcome}.",
  "doing.joining-again": "Il server non conosce più questo dispositivo; nuova adesione in corso.",
  "doing.retrying": "{reason} Nulla è andato perso; la pagina riprova da sola.",
  "doing.invited-enough":
    "Questa federazione ha già invitato questo dispositivo il numero massimo di volte, quindi non viene inviato altro. Modelli e consigli continuano ad arrivare.",
  "outcome.on-its-way": "in corso di invio",
  "outcome.held-back": "trattenuto: hai cambiato idea prima dell'invio",
  "outcome.not-used": "non usato: {why}",
  "outcome.begun-anew": "la federazione è stata avviata da capo",
  "left-out.too-loud":
    "la prova che rispetta la lunghezza massima non è valida. Non è in nessuna somma, ma conta come usato.",
  "left-out.unopened": "il server ausiliario non ha potuto aprirlo. Non è in nessuna somma, ma conta come usato.",
  "left-out.copied":
    "un altro invio del suo turno ha lo stesso identificativo. Non è in nessuna somma, ma conta come usato.",
  "left-out.malformed": "ha una forma diversa dai messaggi del suo turno. Non è in nessuna somma, ma conta come usato.",
  "outcome.unknown-device": "il server non conosceva più questo dispositivo",
  "hurdle.would-read":
    "Questo dispositivo ha aderito a una federazione in cui nessun server da solo può leggere un messaggio; quella che ora si trova a questo indirizzo li leggerebbe. Non viene inviato nulla; i consigli continuano a funzionare.",
  "hurdle.unknown-kind":
    "Questa federazione accetta solo messaggi che nessun server da solo può leggere, di un tipo che questa pagina non sa creare. Non viene inviato nulla; i consigli continuano a funzionare.",
  "hurdle.spent":
    "Questo dispositivo ha già creato {messages} e non ne creerà altri. I consigli continuano ad arrivare.",
  "hurdle.empty": "Scegli prima qualcosa che ti piace; non c'è ancora nulla da cui imparare.",
  "hurdle.nothing": "Non condividi nulla, quindi non viene inviato nulla. I consigli continuano a funzionare.",
  "hurdle.whole": "Il tuo elenco contiene l'intero catalogo; non resta nulla con cui fare confronti.",
  "hurdle.changed":
    "Il catalogo è cambiato, e le risposte con voci di copertura sono legate a quello precedente. Esci e cancella tutto, poi aderisci di nuovo.",
  "hurdle.waits": "Ciò che hai appena aggiunto può essere inviato solo dopo mezzo minuto.",
  "hurdle.draw":
    "Il sorteggio, fatto una volta per sempre, non lascia nulla da inviare. I consigli continuano a funzionare.",
  "hurdle.never": "Tutto ciò che hai è segnato da non condividere mai, quindi non viene inviato nulla.",
  "hurdle.used-up": "È già uscito quanto permetti, quindi non viene inviato altro. I consigli continuano a funzionare.",
  "hurdle.covers": "Il tuo profilo esterno copre l'intero catalogo; condividi meno per partecipare.",
  "notice.begun-anew":
    "Dalla tua ultima visita questa federazione è stata avviata da capo. Il tuo elenco, le tue scelte e il registro di ciò che è uscito sono ancora tuoi; ciò che apparteneva a quella precedente non c'è più. Non viene inviato nulla finché non partecipi a quella nuova.",
  "notice.away":
    "Il server non è raggiungibile. Il tuo elenco e i tuoi consigli sono comunque qui, secondo il modello che questo browser ha già; finché il server non torna, non si può inviare nulla.",
  "notice.older":
    "Il server offre la versione {offered} del modello, ma questo dispositivo ha già la versione {have} e la tiene. Se la cosa non cambia, chiedi a chi gestisce il server se è stata ripristinata una copia di sicurezza.",

  // What went wrong
  "fault.unreachable": "In questo momento il server non è raggiungibile.",
  "fault.busy": "In questo momento il server è occupato.",
  "fault.broke-off": "La connessione si è interrotta mentre il server rispondeva.",
  "fault.too-much": "Il server ha inviato più dei {most} byte ammessi.",
  "fault.not-json": "La risposta del server non è JSON.",
  "fault.refused": "Il server ha rifiutato la richiesta con lo stato {status}, senza indicare il motivo.",
  "fault.unusable": "Nella risposta del server manca un valore valido: {what}.",
  "fault.unknown-interface":
    "Il server usa una versione dell'interfaccia, o un metodo, che questa pagina non conosce. Ricarica la pagina.",
  "fault.storage-full":
    "La memoria di questo browser è piena. Non è stato inviato nulla e nulla è andato perso; libera spazio e riprova.",
  "fault.catalogue-behind": "Il server propone un turno su {items} voci, ma il suo catalogo ne ha {have}.",
  "fault.storage-version":
    "I dati conservati in questo browser sono di un'altra versione di questa pagina e non si possono leggere. Cancella nel browser i dati di questo sito e ricarica la pagina.",
  "fault.storage-gone":
    "Ciò che questa pagina conserva in questo browser è stato cancellato o chiuso dall'esterno, quindi non viene inviato nulla. Ricarica la pagina.",
  "fault.outdated": "Nel frattempo è stata fatta una scelta.",
  "fault.rows": "Il server ha inviato {sent} delle {needed} righe del modello; all'inizio servono tutte.",
  "fault.just-begun-anew": "La federazione a questo indirizzo è appena stata avviata da capo; riprova.",
  "fault.most-rows": "Il server permette {most} righe, ma le sue stesse impostazioni ne producono {rows}.",
  "fault.most-numbers": "Il server permette {most} numeri, ma un messaggio ne ha {items}.",
  "fault.out-of-range": "Con questo modello i numeri del dispositivo escono dai limiti; non è stato inviato nulla.",
  "fault.unsolvable": "Con questo modello le equazioni del dispositivo non hanno soluzione; non è stato inviato nulla.",
  "fault.unsplit":
    "I messaggi di questa federazione non si possono dividere su questo dispositivo; non è stato inviato nulla.",
  "refused.banned": "Chi gestisce la federazione ne ha escluso questo dispositivo.",
  "refused.late": "Il turno è finito; si attende il prossimo.",
  "refused.not-invited": "Questa federazione accetta solo dispositivi che ha invitato.",
  "refused.malformed": "Il server non ha potuto leggere il messaggio ({reason}).",
  "refused.implausible": "Per il server nessun dispositivo può aver calcolato questo messaggio ({reason}).",
  "refused.foreign": "Il server ha assegnato questo ticket a un altro dispositivo.",
  "sums.another-federation":
    "Lo statuto fornito dal server principale non è quello della federazione che il server dichiara.",
  "sums.another-helper":
    "La federazione è stata avviata da capo con un server ausiliario diverso da quello che questo dispositivo conosce. Non è stato inviato nulla; chiedi a chi la gestisce, oppure esci e cancella tutto per aderire di nuovo.",
  "sums.another-list": "L'elenco delle voci non è quello indicato nello statuto; non è stato inviato nulla.",
  "sums.weaker":
    "La federazione è stata avviata da capo con {weaker} rispetto a quanto aveva promesso a questo dispositivo. Non è stato inviato nulla; chiedi a chi la gestisce, oppure esci e cancella tutto per aderire di nuovo.",
  "sums.more-messages": "più messaggi",
  "sums.less-noise": "meno rumore",
  "sums.smaller-cohorts": "gruppi più piccoli",
  "sums.helper-silent": "Il server ausiliario {origin} non dice chi è ({reason}).",
  "sums.helper-other":
    "Il server principale indica un server ausiliario con la chiave {named}, ma quello all'indirizzo {origin} ha {found}. Uno dei due non è chi dice di essere; non è stato inviato nulla.",
  "sums.helper-unreachable":
    "In questo momento non si può inviare nulla: il secondo dei due server di questa federazione non risponde.",
  "sums.offer-untaken": "L'offerta del turno non si può accettare: {reason}",
  "sums.offer-other-round": "L'offerta è di un turno diverso da quello del ticket; non viene inviato nulla.",
  "sums.unsplit": "Il messaggio non si può dividere: {reason} Non è stato inviato nulla.",
  "sums.beyond-promise":
    "Il messaggio di questo turno rivelerebbe più di quanto promesso a questo dispositivo; non è stato creato.",
  "sums.charter-unusable": "Lo statuto fornito dal server principale non si può usare: {reason}",

  // Messages that are not what they should be
  "wire.parts": "Il messaggio ha le parti {found}; servono {needed}.",
  "wire.type": "Il tensore {name} è di tipo {found}; serve {needed}.",
  "wire.outside": "Il tensore {name} non sta dentro il messaggio.",
  "wire.overlap": "I tensori del messaggio si sovrappongono, o lasciano byte che non appartengono a nessuno.",
  "wire.short": "Il messaggio è troppo corto per essere valido.",
  "wire.header": "Il messaggio annuncia un'intestazione di {length} byte; deve stare nel messaggio e in {most} byte.",
  "wire.header-json": "L'intestazione del messaggio non è JSON.",
  "wire.header-table": "L'intestazione del messaggio non è una tabella.",
  "wire.shape": "Il tensore {name} ha la forma ({found}); serve ({needed}).",
  "wire.whole": "In un Broadcast {name} deve essere un numero intero; trovato {found}.",
  "wire.items": "I numeri delle voci di un messaggio devono essere crescenti, senza ripetizioni, da 0 a {last}.",
  "wire.finite": "Il messaggio contiene valori che non sono numeri finiti.",
  "wire.weights": "I pesi di un Broadcast non devono essere negativi.",
  "wire.regulariser": "Il regolarizzatore di un Broadcast deve essere un solo numero, finito e non negativo.",
  "wire.rows": "Un Broadcast dà le sue righe o come codici e scale o come vettori, in uno solo dei due modi.",
  "wire.codes": "I codici di un Broadcast vanno da -{levels} a {levels}.",
  "wire.scales": "Le scale di un Broadcast non devono essere negative.",
  "offer.numbers": "In un'offerta nessun numero può essere negativo e la lunghezza deve superare 0; qui non è così.",
  "offer.charter": "L'offerta appartiene a uno statuto diverso da quello fissato; non viene inviato nulla.",
  "offer.model":
    "L'offerta riguarda un modello diverso da quello fornito dal server principale; non viene inviato nulla.",
  "offer.plan":
    "L'offerta ha messaggio, limite o rumore diversi da quelli previsti dallo statuto; non viene inviato nulla.",
  "offer.length": "L'offerta prevede messaggi di lunghezza diversa da quella dello statuto; non viene inviato nulla.",
  "offer.expired": "L'offerta è scaduta; non viene inviato nulla. Il prossimo turno ne avrà un'altra.",
  "upload.length": "I messaggi del turno hanno {needed} numeri; questo ne ha {found}.",
  "upload.norm": "Un messaggio ha una norma di al massimo {most}; questo è più lungo, e non viene inviato.",
  "upload.finite": "Un messaggio contiene valori che non sono numeri finiti, e non può essere inviato.",
  "upload.no-proof":
    "Non è stato possibile creare una prova della norma del messaggio, benché sia abbastanza corto; non viene inviato.",
  "upload.proof-length": "Un messaggio con una prova ha al massimo {most} numeri; questo ne ha {found}.",
  "upload.projections": "Un controllo della norma ha 64 o 128 proiezioni; trovate {found}.",
  "key.signature": "La firma di questo documento ({purpose}) non è della chiave {key}; non va usato.",
  "key.point": "Una chiave pubblica è formata dai 65 byte di un punto non compresso di P-256; questa no.",
  "charter.fixed": "Lo statuto deve avere {needed} come {name}; questo no.",
  "charter.least": "Nello statuto {name} deve valere almeno 1; in questo no.",
  "charter.cohort":
    "Un gruppo deve avere almeno 2 persone e non superare la dimensione massima; questo statuto ne permette altri.",
  "charter.recipe": "Lo statuto usa un metodo che questa pagina non conosce.",
  "charter.values": "Lo statuto ha un limite, una potenza o un delta impossibili.",
  "charter.noises": "Lo statuto deve indicare un rumore per ogni messaggio; questo no.",
  "charter.noise":
    "Il rumore di un server deve essere 0 a ogni passo, oppure entro ciò che si può estrarre esattamente; in questo statuto no.",
  "charter.proof": "Lo statuto chiede una prova della norma di un messaggio che non esiste.",
  "charter.wraps":
    "La somma dei messaggi del gruppo più grande potrebbe andare in overflow; uno statuto così non garantisce nulla.",
  "statement.hex": "Il campo {name} deve essere di {length} byte in cifre esadecimali minuscole; questo no.",
  "statement.no-form": "Un documento contiene qualcosa che non ha una forma canonica.",
  "statement.too-long": "Il documento {name} ha al massimo {most} byte; questo ne ha {found}.",
  "statement.not-canonical": "Il documento {name} deve essere in JSON canonico; questo non lo è.",
  "statement.fields": "Il documento {name} ha i campi {fields}; questo ne ha altri.",
  "statement.type": "Il campo {field} del documento {name} deve essere di tipo {kind}; questo non lo è.",

  // What leaves, and what it tells (privacy.html)
  "privacy.page": "Che cosa esce e che cosa rivela · FedeRank",
  "privacy.title": "Che cosa esce e che cosa rivela",
  "privacy.lead":
    "Il tuo elenco resta nel tuo browser. Ciò che esce, se partecipi, sono messaggi con numeri su voci del catalogo. È meno del tuo elenco, ma è pur sempre qualcosa. Chi può leggerli dipende dalla federazione: la sua pagina dice di che tipo è, accanto a «Partecipa».",
  "privacy.read": "Dove il server legge i messaggi",
  "privacy.read-words":
    "Chi lo gestisce può leggere quali voci invii come tue: un messaggio lo dice di ciascuna. Può leggere i gusti che il tuo dispositivo ha imparato da ciò che condivide; da quelli si può indovinare altro, come fa ogni negozio. Vede quando il tuo dispositivo era collegato e il suo indirizzo di rete, come ogni sito.",
  "privacy.unread": "Dove nessun server da solo legge i messaggi",
  "privacy.unread-words":
    "Il tuo dispositivo divide un messaggio in due metà, ciascuna delle quali da sola è fatta di numeri casuali. Due server, quello principale e quello ausiliario, sommano ciascuno una metà dei messaggi di tutti, e uniscono solo le due somme. Dove ciascuno aggiunge anche rumore, ciò che tutti i tuoi messaggi insieme possono rivelare di te è limitato da un numero, epsilon; dove non c'è rumore, non si dichiara nessun numero. I due server insieme potrebbero leggere un messaggio: è importante che li gestiscano persone diverse.",
  "privacy.popularity":
    "Dalle somme di Frugal su tutti, con le stesse persone in ogni turno, un server curioso non scopre più di quanto riveli la popolarità, finché i due server tengono separate le loro metà e non sa altro di nessuno: l'attacco migliore ha guadagnato 0,00 rispetto alla popolarità su film, luoghi e in un negozio. Chi sa chi è arrivato e chi se n'è andato può confrontare i turni; contro questo aiuta il rumore. Con 6.000 persone, sui film, epsilon 4 ha conservato il 97 % dell'accuratezza, 2 il 94 % e 1 il 92 %; con meno persone ne conserva meno.",
  "privacy.both": "In entrambi i casi",
  "privacy.both-words":
    "I consigli, e ciò che nascondi dai consigli, non sono in nessun messaggio, e nemmeno ciò che una parte fissa per sempre trattiene. Chi fornisce questa pagina ne fornisce anche il codice. Se in questo non ti fidi di chi la gestisce, usa un dispositivo installato da un'altra fonte (federank device).",
  "privacy.choose": "Che cosa puoi scegliere",
  "privacy.sticky": "Una parte fissa, per sempre.",
  "privacy.sticky-words":
    "Alcune delle tue voci vengono scelte a caso, una volta sola; solo quelle possono uscire. Misurato condividendo tre decimi: dove i messaggi sono contati (Frugal), costa dall'1 al 16 % di accuratezza sui film, dall'11 al 30 % sui luoghi e circa il 40 % in un grande negozio; dove non lo sono (FPL), fino all'8 % su film e luoghi e più di un terzo nel negozio.",
  "privacy.deniable": "Con voci di copertura.",
  "privacy.deniable-words":
    "Ciò che esce è mescolato con voci che non hai mai scelto, così che nulla di ciò che si vede sia sicuramente tuo, finché il tuo elenco resta com'è. Costa metà dell'accuratezza sui film, e quasi tutta dove c'è più scelta.",
  "privacy.coin": "Testa o croce ogni volta.",
  "privacy.coin-words":
    "Come negli articoli scientifici. Ciò che oggi resta qui viene inviato un altro giorno: in una misura su voti a film, con il cursore al 10 %, dopo venti passate era uscito l'86 % delle voci delle persone.",
  "privacy.counted":
    "Dove una federazione conta i messaggi, un dispositivo ne invia un numero fissato e non di più, qualunque cosa dica il server; ciò che trattiene non è in nessuno di essi. Dove nessun server da solo legge i messaggi, quello di un turno scartato non conta se il server ausiliario conferma con la sua firma che non è in nessuna somma.",
  "privacy.measured": "Dove è stato misurato",
  "privacy.measured-words":
    "Gli attacchi, i dati e le cifre sono nella documentazione di FedeRank (in inglese), sotto «What leaves a device, and what a curious server makes of it». Il comando federank audit li esegue sui tuoi dati.",
  "privacy.back": "Torna alla pagina",

  // The operator's page
  "admin.page": "Gestione · FedeRank",
  "admin.title": "Gestione",
  "admin.signed-out": "Accesso non effettuato",
  "admin.sign-in": "Accedi",
  "admin.sign-out": "Esci",
  "admin.token-lead":
    "Il token è stato mostrato una sola volta, alla creazione della federazione. Viene conservato solo per questa scheda.",
  "admin.token": "Token di chi gestisce",
  "admin.now": "Adesso",
  "admin.close": "Chiudi il turno aperto",
  "admin.charts": "Gli ultimi turni",
  "admin.moved": "Che cosa si è spostato di più",
  "admin.judged": "Funziona ancora bene?",
  "admin.rejected": "Invii respinti e motivi",
  "admin.latency": "Latenza",
  "admin.rounds": "Turno per turno",
  "admin.unreachable": "In questo momento il server non è raggiungibile; la pagina riprova da sola.",
  "admin.status": "Il server ha risposto con lo stato {status}.",
  "admin.paused": "I turni sono in pausa",
  "admin.round-open": "Il turno {round} è aperto",
  "admin.between": "Tra un turno e l'altro",
  "admin.go-on": "Riprendi i turni",
  "admin.pause": "Metti in pausa i turni",
  "admin.reports": "Messaggi nel turno",
  "admin.left": "Dispositivi usciti",
  "admin.waiting": "Dispositivi in attesa",
  "admin.folded": "Turni aggregati",
  "admin.abandoned": "Turni scartati",
  "health.ok": "Tutto bene",
  "health.attention": "Da controllare",
  "health.failing": "Non funziona",
  "health.no-round-aggregated":
    "Gli ultimi {count} turni sono stati tutti scartati, quindi il modello non impara nulla. Rispondono in tempo abbastanza dispositivi?",
  "health.rounds-discarded": {
    one: "{count} degli ultimi {of} turni è stato scartato.",
    other: "{count} degli ultimi {of} turni sono stati scartati.",
  },
  "health.aggregates-refused": {
    one: "Negli ultimi {of} turni {count} aggregato non è stato applicato: avrebbe spinto il modello fuori scala.",
    other:
      "Negli ultimi {of} turni {count} aggregati non sono stati applicati: avrebbero spinto il modello fuori scala.",
  },
  "health.model-not-finite":
    "Il modello contiene valori che non sono numeri finiti, e i dispositivi lo rifiutano. Torna a una versione precedente: federank admin rollback.",
  "health.model-out-of-scale":
    "Il modello diverge: i suoi valori sono molto fuori scala. Torna a una versione precedente: federank admin rollback.",
  "health.helper-away":
    "Il server ausiliario non risponde: nessun turno può cominciare o finire, e i dispositivi non possono inviare nulla.",
  "health.store-away": "Il database non risponde, o non accetta nulla.",
  "admin.rejected-aggregates": "Aggregati respinti",
  "admin.bytes": "Byte negli ultimi turni",
  "admin.unnamed": "Questa federazione",
  "admin.unsaid":
    "Chi partecipa non ne trova ancora nessuna descrizione; si imposta con federank serve --description e --run-by.",
  "admin.code": "Codice per {address}",
  "admin.join": "Partecipa da un telefono sulla stessa rete:",
  "admin.fingerprint":
    "Il certificato è stato creato all'avvio, perciò i browser mostrano un avviso. L'impronta (SHA-256) è {fingerprint}",
  "admin.moved-none": "Nulla si è spostato da quando questo processo è partito.",
  "admin.moved-caption": "Voci che la versione più recente ha spostato di più",
  "admin.moved-item": "Voce",
  "admin.moved-by": "spostamento, in righe medie",
  "admin.held":
    "Nell'ultima aggregazione sono stati applicati i limiti: righe spostate troppo {held}, righe cresciute troppo {capped}.",
  "admin.ranges":
    "Degli ultimi 1000 messaggi a questo processo, {count} provenivano da un solo intervallo di indirizzi.",
  "admin.judged-none": "Nessun dispositivo valuta ancora il modello.",
  "admin.judged-count": { one: "La versione valutata", other: "{count} versioni, una per una" },
  "admin.judged-caption": "Voci tenute da parte e ritrovate, per versione",
  "admin.judged-ratings": "Errore sulle valutazioni tenute da parte, per versione",
  "admin.judged-version": "Versione",
  "admin.judged-answers": "risposte",
  "admin.judged-share": "quota ritrovata",
  "admin.judged-interval": "intervallo al 95 %",
  "admin.from-to": "da {low} a {high}",
  "admin.rejected-none": "Finora nessuno.",
  "admin.rejected-caption": "Invii respinti",
  "admin.reason": "Motivo",
  "admin.uploads": "Invii",
  "admin.reason-words": "{slug}: {words}",
  "reason.late": "arrivato dopo la fine del suo turno",
  "reason.repeated": "un secondo Update, diverso, per lo stesso ticket",
  "reason.foreign": "con il ticket di qualcun altro, o uno che non esiste",
  "reason.implausible": "nessun dispositivo può averlo calcolato dal modello pubblicato",
  "reason.too-loud": "la sua prova non è valida: può superare la lunghezza massima di un messaggio",
  "reason.unopened": "il server ausiliario non ha potuto aprirlo",
  "reason.copied": "un altro invio del suo turno ha lo stesso identificativo",
  "reason.banned": "di un dispositivo escluso da chi gestisce",
  "admin.latency-words": "Delle ultime richieste al processo che ha risposto.",
  "admin.latency-none": "Ancora nessuna richiesta.",
  "admin.latency-count": { one: "{count} percorso", other: "{count} percorsi" },
  "admin.latency-caption": "Latenza per percorso",
  "admin.route": "Percorso",
  "admin.requests": "richieste",
  "admin.half": "mediana, ms",
  "admin.nearly-all": "99º percentile, ms",
  "admin.rounds-none": "Ancora nessun turno: comincia con il primo dispositivo.",
  "admin.rounds-count": { one: "L'ultimo turno", other: "Gli ultimi {count} turni, uno per uno" },
  "admin.rounds-caption": "Gli ultimi turni, uno per uno",
  "admin.round": "Turno",
  "admin.ended": "finito",
  "admin.tasks": "compiti assegnati",
  "admin.reports-column": "messaggi",
  "admin.dropouts": "abbandoni",
  "admin.rejected-column": "respinti",
  "admin.bytes-column": "byte",
  "admin.clipped": "righe accorciate",
  "admin.drift": "deriva",
  "admin.seconds": "secondi",
  "state.open": "aperto",
  "state.closed": "chiuso",
  "state.folded": "aggregato",
  "state.abandoned": "scartato",
  "chart.reports": "Messaggi di ogni turno",
  "chart.reported": "arrivati",
  "chart.dropped": "compito assegnato, nessun messaggio",
  "chart.devices": "Dispositivi nella federazione",
  "chart.joined-left": "Dispositivi entrati e usciti",
  "chart.joined": "entrati dal turno precedente",
  "chart.left": "usciti o esclusi",
  "chart.accuracy": "Voci tenute da parte e ritrovate",
  "chart.error": "Errore delle previsioni (medio, assoluto)",
  "chart.interval": "intervallo al 95 %; ogni punto è di 50 risposte o più",
  "chart.rejected": "Invii respinti",
  "chart.bytes": "Ricevuto, nei turni aggregati",
  "chart.drift": "Di quanto un turno ha spostato il modello",
  "chart.seconds": "Durata dei turni aggregati",
  "chart.round": "turno {number}",
  "chart.version": "versione {number}",
  "chart.measured": "{value} {unit}",
  "chart.words": {
    one: "{title}: {count} punto, ultimo {latest}, massimo {highest}.",
    other: "{title}: {count} punti, ultimo {latest}, massimo {highest}.",
  },
  "chart.words-bad": "{words} {meaning}: {bad} in tutto.",
  "unit.devices": "dispositivi",
  "unit.uploads": "invii",
  "unit.share": "quota",
  "unit.stars": "stelle",
  "unit.per-cent": "% della sua lunghezza",
  "unit.kilobytes": "kB",
  "unit.seconds": "secondi",
  "limit.enough": "{count} chiudono un turno",
  "limit.minimum": "sotto {count} è scartato",
  "limit.deadline": "tempo massimo: {count} s",
  "limit.drift": "da controllare oltre {far} %: quattro volte la media, almeno 2 %",

  // Where items are rated
  "pick.title-stars": "Che cosa conosci, e quanto ti è piaciuto?",
  "pick.first-stars": "Assegna le stelle ad almeno tre {items}.",
  "pick.more-stars": "Ogni voto che dai migliora le previsioni.",
  "pick.rated": "Titoli di cui si sa già molto, su {counted}:",
  "stars.label": "Stelle per {title}",
  "stars.give": "{stars} stelle per {title}",
  "stars.would-give": "Voto previsto: {stars}.",
  "stars.mean": "Ancora nessun voto da altri; {stars} è la tua media.",
  "yours.empty-stars": "Ancora niente. Assegna le stelle a qualcosa qui sopra.",
  "for-you.unlearnt":
    "Il modello non ha ancora imparato da nessuno, quindi non si può prevedere nulla. Migliora man mano che le persone partecipano.",
  "for-you.may-leave-stars":
    "Ciò che voti entra nel tuo elenco, e può uscire come il resto. «Non fa per me» resta qui.",
  "for-you.empty-stars": "Assegna le stelle ad almeno tre {items}: qui compare subito che voto daresti al resto.",
  "filling.legend": "Come nascondere che cosa hai votato",
  "filling.hybrid": "Con voti previsti",
  "filling.hybrid-words":
    "Escono anche voci che non hai votato: prima con la tua media, poi con il voto che daresti. Vengono estratte una volta, per sempre.",
  "filling.average": "Con voti medi",
  "filling.average-words":
    "Escono anche voci che non hai votato, con la media dei tuoi voti. È più semplice, ma le previsioni peggiorano per tutti.",
  "filling.none": "Senza copertura",
  "filling.none-words": "Esce solo ciò che hai votato: chi legge un messaggio sa che cos'è.",
  "filling.rho": "Quante per ogni voce che hai votato",
  "promise.names-rated": "Ogni messaggio ha anche un secondo elenco, che nomina esattamente ciò che hai votato.",
  "left.rated": "Inviati come votati",
  "left.rated-count": "Inviati come votati: {counted}",
  "left.sampled": "Estratti, con un voto virtuale",
  "left.sampled-count": "Estratti, con un voto virtuale: {counted}",
  "left.sampled-words":
    "Estratti per nascondere tra loro ciò che hai votato. In un messaggio compaiono nello stesso elenco; solo tu, qui, vedi quali sono.",
  "column.rated": "votati",
  "column.sampled": "estratti",
  "general.ratings":
    "I voti virtuali nascondono quali voci di un messaggio hai votato, anche se non del tutto. Senza, bastano due messaggi per rivelare i voti stessi.",
  "hurdle.unrated": "Prima assegna le stelle a qualcosa: non c'è ancora nulla da cui imparare.",
  "hurdle.all-rated": "Hai votato tutto il catalogo: non resta nulla tra cui nascondere i tuoi voti.",
  "fault.no-filling":
    "In questa federazione si danno voti, ma non è indicato come nascondere i tuoi; non è stato inviato nulla.",
  "wire.heard": "La parte heard di un Broadcast deve essere uno 0 o un 1 per ogni voce.",
  "wire.implicit": "Un Broadcast di SVD++ ha righe di W; questo non ne ha.",
};
