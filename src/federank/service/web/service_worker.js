/* The service worker: the page opens without a network, as it was when it was last fetched completely.

It keeps the page's own files and nothing else: no answer of the server, nothing of the user. What a page shows without a network comes
from the browser's database (client/store.js), which leaving erases; leaving also removes this worker and its files.

    with a network       every file comes from the server, as if this worker were not there: a new version is taken at once
    at every visit       files.json says which files there are and which version they make; of another version than the cached one all files
                         are fetched, and take the old ones' place only when every one has come
    without a network    every file comes from the version that is cached
*/

const NAMES = "federank page "; // and the version
const PATIENCE = 5000; // ms in which a server that is there has begun to answer

/** @type {any} */
const worker = self;

/** @type {() => Promise<string | undefined>} */
const cachedName = async () => (await caches.keys()).find((name) => name.startsWith(NAMES));

async function keep() {
  const answer = await fetch("files.json", { cache: "no-cache" });
  if (!answer.ok) return;
  const { version, files } = await answer.json();
  const name = NAMES + version;
  if (!(await caches.has(name))) await fetchAll(name, files);
  for (const other of await caches.keys()) if (other !== name) await caches.delete(other);
}

/** @type {(name: string, files: string[]) => Promise<void>} */
async function fetchAll(name, files) {
  // Under another name until all have come: a worker that is ended half-way leaves nothing that looks complete.
  const draft = `draft of ${name}`;
  const cache = await caches.open(draft);
  try {
    await cache.addAll(files.map((file) => new Request(file, { cache: "no-cache" })));
  } catch (reason) {
    await caches.delete(draft);
    throw reason;
  }
  const complete = await caches.open(name);
  for (const request of await cache.keys()) {
    const response = await cache.match(request);
    if (response) await complete.put(request, response);
  }
}

/** One at a time: a visit may begin while the worker is still being installed.
 * @type {Promise<void>} */
let keeping = Promise.resolve();
const keepUpToDate = () => (keeping = keeping.catch(() => {}).then(keep));

/** @type {() => Promise<never>} */
const late = () =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error("no answer")), PATIENCE);
  });

/** From the server while it answers; what is cached otherwise.
 * @type {(request: Request) => Promise<Response>} */
async function answered(request) {
  const name = await cachedName();
  const cached = name && (await (await caches.open(name)).match(request, { ignoreSearch: true }));
  if (!cached) return fetch(request);
  try {
    return await Promise.race([fetch(request), late()]);
  } catch {
    return cached;
  }
}

worker.addEventListener("install", (/** @type {any} */ event) => {
  worker.skipWaiting(); // it serves what the server serves: there is nothing to wait for
  event.waitUntil(keepUpToDate());
});
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin || pathname.startsWith("/api/")) return;
  event.respondWith(answered(request));
  if (request.mode === "navigate") event.waitUntil(keepUpToDate().catch(() => {}));
});
