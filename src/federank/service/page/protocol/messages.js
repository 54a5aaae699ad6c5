/* What crosses the wire, as safetensors (protocol/messages.py), and how strictly it is read.

    Broadcast   server -> device: the shared model, or the rows of it that changed
    Update      device -> server: gradients of some items

A message is eight bytes with the length of a header, the header in JSON, and the tensors one after the other. Whatever comes
from a server is checked before it is used: a bounded header, these three tensors and no other, their types and shapes, no gap
and no overlap, items that ascend within the catalogue, finite numbers. Anything else is a BadMessage, and changes nothing.
*/

const LONGEST_HEADER = 10_000;
const KINDS = { biases: "F32", vectors: "F32", items: "I32" }; // in the order in which they are written

export class BadMessage extends Error {}

/** The bytes of an Update: the same bytes that Python writes. */
export function encodeUpdate({ items, vectors, biases }) {
  const rows = items.length;
  const shapes = { biases: [rows], vectors: [rows, rows ? vectors.length / rows : 0], items: [rows] };
  const header = {};
  let end = 0;
  for (const [name, dtype] of Object.entries(KINDS)) {
    const start = end;
    end += 4 * shapes[name].reduce((product, length) => product * length, 1);
    header[name] = { dtype, shape: shapes[name], data_offsets: [start, end] };
  }
  let text = JSON.stringify(header);
  text = text.padEnd(Math.ceil(text.length / 8) * 8);
  const body = new Uint8Array(8 + text.length + end);
  new DataView(body.buffer).setBigUint64(0, BigInt(text.length), true);
  body.set(new TextEncoder().encode(text), 8);
  const first = 8 + text.length;
  for (const [name, array] of Object.entries({ biases, vectors, items }))
    body.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), first + header[name].data_offsets[0]);
  return body;
}

/** A Broadcast (or the rows of a model) from the wire, once it is sure to be one. */
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
  const shapes = { biases: [rows], vectors: [rows, factors], items: [rows] };
  const arrays = {};
  const spans = [];
  for (const [name, dtype] of Object.entries(KINDS)) {
    const { dtype: found, shape, data_offsets: offsets } = header[name];
    if (found !== dtype) throw new BadMessage(`The tensor ${name} is of type ${found}; ${dtype} is needed.`);
    if (String(shape) !== String(shapes[name]))
      throw new BadMessage(`The tensor ${name} has the shape (${shape}); (${shapes[name]}) is needed.`);
    const bytes = 4 * shapes[name].reduce((product, length) => product * length, 1);
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
    const content = buffer.slice(first + start, first + end);
    arrays[name] = dtype === "F32" ? new Float32Array(content) : new Int32Array(content);
  }
  spans.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  const gapless = spans.every(([start], place) => start === (place ? spans[place - 1][1] : 0));
  if (!gapless || first + spans[2][1] !== buffer.byteLength)
    throw new BadMessage("The tensors of the message overlap, or leave bytes that belong to none of them.");
  checkRows(arrays, nItems);
  return { roundNumber: numberOf(about, "round"), version: numberOf(about, "version"), ...arrays };
}

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

/** Refuse rows that are not of the form the protocol asks for. */
export function checkRows({ items, vectors, biases }, nItems) {
  for (let place = 0; place < items.length; place++)
    if (items[place] < 0 || items[place] >= nItems || (place && items[place] <= items[place - 1]))
      throw new BadMessage(`The items of a message must ascend without repeats within 0 to ${nItems - 1}.`);
  for (const values of [vectors, biases])
    for (let place = 0; place < values.length; place++)
      if (!Number.isFinite(values[place]))
        throw new BadMessage("The message holds values that are not finite numbers.");
}

/** A whole number of the metadata: which round, which version. */
function numberOf(about, name) {
  if (typeof about[name] !== "string" || !/^\d{1,15}$/.test(about[name]))
    throw new BadMessage(`A Broadcast says its ${name} as a whole number; found ${JSON.stringify(about[name])}.`);
  return Number(about[name]);
}
