/** JSON that the orchestrator accepts. It throws for a value that JSON cannot express. */
export function encode(value) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON`);
  return Buffer.from(text);
}

export const decode = (bytes) => JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString());

/**
 * Cuts a text to a number of bytes, at a character, and makes it fit for the protocol, which takes valid UTF-8, and for
 * the database, which takes no NUL.
 */
export function clean(text, most) {
  // Every character is at least one byte: do not encode what is cut anyway.
  const bytes = Buffer.from(text.slice(0, most).replaceAll('\0', '\uFFFD')); // half a surrogate pair becomes U+FFFD
  let end = Math.min(most, bytes.length);
  while ((bytes[end] & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
