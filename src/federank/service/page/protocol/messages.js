/* What crosses the wire, as safetensors (protocol/messages.py), and how strictly it is read.

    Broadcast   server -> device: the shared model, or the rows of it that changed
    Update      device -> server: gradients of some items

A message is eight bytes with the length of a header, the header in JSON, and the tensors one after the other. Whatever comes
from a server is checked before it is used: a bounded header, these three tensors and no other, their types and shapes, no gap
and no overlap, items that ascend within the catalogue, finite numbers. Anything else is a BadMessage, and changes nothing.
*/

const LONGEST_HEADER = 10_000;

/** @typedef {"biases" | "vectors" | "items"} Part */
/** The tensors of a message and their types, in the order in which they are written.
 * @type {[Part, string][]} */
const PARTS = [
  ["biases", "F32"],
  ["vectors", "F32"],
  ["items", "I32"],
];

/** Rows: which items, ascending; a row of factors (or of gradients) and a bias for each.
 * @typedef {{ items: Int32Array, vectors: Float32Array, biases: Float32Array }} Update */

/** Rows of the shared model, as of a round and a version.
 * @typedef {Update & { roundNumber: number, version: number }} Broadcast */

export class BadMessage extends Error {}

/** @type {(rows: number, factors: number) => Record<Part, number[]>} */
function shapesOf(rows, factors) {
  return { biases: [rows], vectors: [rows, factors], items: [rows] };
}

/** @type {(shape: number[]) => number} */
function bytesOf(shape) {
  return 4 * shape.reduce((product, length) => product * length, 1);
}

/** The bytes of an Update: the same bytes that Python writes.
 * @type {(update: Update) => Uint8Array<ArrayBuffer>} */
export function encodeUpdate(update) {
  const rows = update.items.length;
  const shapes = shapesOf(rows, rows ? update.vectors.length / rows : 0);
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: [number, number] }>} */
  const header = {};
  let end = 0;
  for (const [name, dtype] of PARTS) {
    const start = end;
    end += bytesOf(shapes[name]);
    header[name] = { dtype, shape: shapes[name], data_offsets: [start, end] };
  }
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const body = new Uint8Array(8 + text.length + end);
  new DataView(body.buffer).setBigUint64(0, BigInt(text.length), true);
  body.set(new TextEncoder().encode(text), 8);
  const first = 8 + text.length;
  for (const [name] of PARTS) {
    const { buffer, byteOffset, byteLength } = update[name];
    body.set(new Uint8Array(buffer, byteOffset, byteLength), first + header[name].data_offsets[0]);
  }
  return body;
}

/** A Broadcast (or the rows of a model) from the wire, once it is sure to be one.
 * @type {(buffer: ArrayBuffer, factors: number, nItems: number) => Broadcast} */
export function decodeBroadcast(buffer, factors, nItems) {
  const { header, first } = readHeader(buffer);
  const about = header.__metadata__ || {};
  delete header.__metadata__;
  if (Object.keys(header).sort().join() !== "biases,items,vectors")
    throw new BadMessage(
      `The message has the parts ${Object.keys(header).sort().join(", ")}; items, vectors and biases are needed.`,
    );
  const rows = header.items?.shape?.[0];
  if (!Number.isInteger(rows) || rows < 0 || rows > nItems)
    throw new BadMessage(`The message claims ${rows} items; the catalogue has ${nItems}.`);
  const shapes = shapesOf(rows, factors);
  /** @type {[number, number][]} */
  const spans = [];
  /** @type {(name: Part, dtype: string) => ArrayBuffer} */
  const contentOf = (name, dtype) => {
    const { dtype: found, shape, data_offsets: offsets } = header[name];
    if (found !== dtype) throw new BadMessage(`The tensor ${name} is of type ${found}; ${dtype} is needed.`);
    if (String(shape) !== String(shapes[name]))
      throw new BadMessage(`The tensor ${name} has the shape (${shape}); (${shapes[name]}) is needed.`);
    const bytes = bytesOf(shapes[name]);
    const [start, end] = Array.isArray(offsets) ? offsets : [];
    if (
      !Number.isInteger(start) ||
      !Number.isInteger(end) ||
      start < 0 ||
      end - start !== bytes ||
      first + end > buffer.byteLength
    )
      throw new BadMessage(`The tensor ${name} does not lie within the message.`);
    spans.push([start, end]);
    return buffer.slice(first + start, first + end);
  };
  const [biases, vectors, items] = PARTS.map(([name, dtype]) => contentOf(name, dtype));
  const arrays = {
    items: new Int32Array(items),
    vectors: new Float32Array(vectors),
    biases: new Float32Array(biases),
  };
  spans.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const gapless = spans.every(([start], index) => start === (index ? spans[index - 1][1] : 0));
  if (!gapless || first + spans[2][1] !== buffer.byteLength)
    throw new BadMessage("The tensors of the message overlap, or leave bytes that belong to none of them.");
  checkRows(arrays, nItems);
  return { roundNumber: numberOf(about, "round"), version: numberOf(about, "version"), ...arrays };
}

/** @type {(buffer: ArrayBuffer) => { header: Record<string, any>, first: number }} */
function readHeader(buffer) {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength < 8)
    throw new BadMessage("The message is too short to be one.");
  const length = new DataView(buffer).getBigUint64(0, true);
  if (length > LONGEST_HEADER || 8n + length > BigInt(buffer.byteLength))
    throw new BadMessage(
      `The message announces a header of ${length} bytes; it must fit the message and ${LONGEST_HEADER} bytes.`,
    );
  const first = 8 + Number(length);
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, Number(length))));
  } catch {
    throw new BadMessage("The header of the message is not JSON.");
  }
  if (typeof header !== "object" || header === null || Array.isArray(header))
    throw new BadMessage("The header of the message is not a table.");
  return { header, first };
}

/** Refuse rows that are not of the form the protocol asks for.
 * @type {(rows: Update, nItems: number) => void} */
export function checkRows({ items, vectors, biases }, nItems) {
  for (let index = 0; index < items.length; index++)
    if (items[index] < 0 || items[index] >= nItems || (index && items[index] <= items[index - 1]))
      throw new BadMessage(`The items of a message must ascend without repeats within 0 to ${nItems - 1}.`);
  for (const values of [vectors, biases])
    for (let index = 0; index < values.length; index++)
      if (!Number.isFinite(values[index]))
        throw new BadMessage("The message holds values that are not finite numbers.");
}

/** A whole number of the metadata: which round, which version.
 * @type {(about: Record<string, unknown>, name: string) => number} */
function numberOf(about, name) {
  if (typeof about[name] !== "string" || !/^\d{1,15}$/.test(about[name]))
    throw new BadMessage(`A Broadcast says its ${name} as a whole number; found ${JSON.stringify(about[name])}.`);
  return Number(about[name]);
}
