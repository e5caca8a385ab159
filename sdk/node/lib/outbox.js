// How many log records wait for the orchestrator to read them, of all attempts and of one. Of an attempt the last
// ones wait, as many as the orchestrator keeps; beyond that, and beyond what all may have, records are dropped and
// counted.
const maxLogs = 1000;
const maxLogsOfOne = 200;

// The size, in bytes, from which on a message takes nothing more; a larger item goes alone.
const fullMessage = 1 << 20;

// More than an item takes on the wire beside its texts.
const itemOverhead = 128;

/**
 * Gathers what is to be sent while the last message is on its way. It never makes anybody wait, and stays small
 * when nobody reads: of what a handler reports again and again only the last is kept, of logs a number.
 */
export class Outbox {
  #send;
  #emptied;
  #logs = 0; // that wait
  #noted = new Set();
  #outcomes = [];
  #busy = false;
  #closed = false;

  /**
   * @param {(message: object) => Promise<void>} send
   * @param {() => void} emptied is called when the outbox is closed and everything is sent
   */
  constructor(send, emptied) {
    this.#send = send;
    this.#emptied = emptied;
  }

  /** Takes progress or a checkpoint, in place of what of its kind is not sent yet. */
  note(attempt, kind, encoded) {
    if (attempt.ended || this.#closed) throw new Error('the attempt has ended');
    attempt.notes[kind] = encoded;
    this.#noted.add(attempt);
    this.#wake();
  }

  /** Sends a record, unless too many of all attempts wait already. */
  log(attempt, record) {
    if (this.#closed) return;
    const { notes } = attempt;
    notes.logs ??= [];
    notes.dropped ??= 0;
    if (notes.logs.length >= maxLogsOfOne) {
      notes.logs.shift();
      notes.dropped++;
    } else if (this.#logs >= maxLogs) {
      notes.dropped++;
      return;
    } else {
      this.#logs++;
    }
    // After its end the record belongs to no attempt any more.
    notes.logs.push({ ...record, handle: attempt.ended ? 0 : attempt.handle });
    this.#noted.add(attempt);
    this.#wake();
  }

  /** Ends what the attempt has to say. */
  outcome(attempt, ended) {
    attempt.ended = true;
    if (this.#closed) return;
    this.#outcomes.push(ended);
    this.#wake();
  }

  /** Nothing can be added any more. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
  }

  #wake() {
    if (this.#busy) return;
    this.#busy = true;
    // Whoever is about to add something comes first: one message is much cheaper than two.
    setImmediate(() => this.#deliver());
  }

  async #deliver() {
    while (this.#noted.size + this.#outcomes.length > 0) {
      for (const message of this.#collect()) await this.#send(message);
    }
    this.#busy = false;
    if (this.#closed) this.#emptied();
  }

  #collect() {
    const cut = new Cutter();
    for (const attempt of this.#noted) {
      cut.addNotes(attempt);
      attempt.notes = {};
    }
    // Outcomes come last, so that nothing of an attempt comes after its end.
    for (const ended of this.#outcomes) cut.room(sizeOf(ended)).outcomes.push(ended);
    this.#logs = 0;
    this.#noted.clear();
    this.#outcomes = [];
    return cut.messages;
  }
}

// Fills message after message.
class Cutter {
  messages = [];
  #filled = 0; // bytes in the last one

  // A message that has room for an item of so many bytes.
  room(bytes) {
    const size = bytes + itemOverhead;
    if (this.messages.length === 0 || this.#filled + size > fullMessage) {
      this.messages.push({ logs: [], progress: [], checkpoints: [], outcomes: [] });
      this.#filled = 0;
    }
    this.#filled += size;
    return this.messages.at(-1);
  }

  addNotes({ handle, notes: { logs = [], dropped, progress, checkpoint } }) {
    for (const record of logs) {
      this.room(3 * record.message.length + (record.attributes?.length ?? 0)).logs.push(record);
    }
    if (dropped) {
      this.room(0).logs.push({
        handle: logs.at(-1)?.handle ?? handle, level: 'LEVEL_WARN', message: `${dropped} log records were dropped`,
        time: new Date().toISOString(), dropped,
      });
    }
    if (progress) this.room(progress.length).progress.push({ handle, progress });
    if (checkpoint) this.room(checkpoint.length).checkpoints.push({ handle, checkpoint });
  }
}

// At least what the texts take in UTF-8.
function sizeOf({ succeeded, failed }) {
  if (succeeded) return succeeded.result?.length ?? 0;
  return failed ? 3 * (failed.code.length + failed.message.length + failed.stack.length) : 0;
}
