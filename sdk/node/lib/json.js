/** Makes JSON that the orchestrator will accept if it is not too large. It throws for what has none. */
export function encode(value) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON`);
  return Buffer.from(text);
}

export const decode = (bytes) => JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());

/**
 * Makes a text fit for the wire, which takes valid UTF-8 only, and for the database, which takes no NUL; and
 * cuts it at a character.
 */
export function clean(text, most) {
  // Every character takes a byte at least: what is beyond would be encoded for nothing.
  const bytes = Buffer.from(text.slice(0, most).replaceAll('\0', '\uFFFD')); // half a surrogate pair becomes U+FFFD
  let end = Math.min(most, bytes.length);
  while ((bytes[end] & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
