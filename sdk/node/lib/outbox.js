// How many log records may wait, of all attempts and of one. An attempt above its limit drops its oldest record; above
// the limit for all, new records are dropped. Drops are counted. The orchestrator keeps no more of an attempt than this.
const maxLogs = 1000;
const maxLogsOfOne = 200;

// How many bytes a message is filled with. A larger item gets a message of its own.
const fullMessage = 1 << 20;

// An upper bound for what an item takes in a message besides its texts.
const itemOverhead = 128;

/**
 * Collects what to send while the last message is being sent. Adding never waits. It stays small when nobody reads: it
 * keeps the last progress and checkpoint of each attempt, and a limited number of log records.
 */
export class Outbox {
  #send;
  #emptied;
  #logs = 0; // records that wait
  #noted = new Set();
  #outcomes = [];
  #busy = false;
  #closed = false;

  /** send(message) returns a promise. emptied() is called when the outbox is closed and everything is sent. */
  constructor(send, emptied) {
    this.#send = send;
    this.#emptied = emptied;
  }

  /** Adds progress or a checkpoint, in place of an earlier one that is not sent yet. */
  note(attempt, kind, encoded) {
    if (attempt.ended || this.#closed) throw new Error('the attempt has ended');
    attempt.notes[kind] = encoded;
    this.#noted.add(attempt);
    this.#wake();
  }

  /** Adds a record, unless too many wait already. */
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
    // Handle 0: the attempt has ended.
    notes.logs.push({ ...record, handle: attempt.ended ? 0 : attempt.handle });
    this.#noted.add(attempt);
    this.#wake();
  }

  /** Adds the outcome, the last thing that an attempt reports. */
  outcome(attempt, ended) {
    attempt.ended = true;
    if (this.#closed) return;
    this.#outcomes.push(ended);
    this.#wake();
  }

  /** Nothing can be added afterwards. */
  close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake();
  }

  #wake() {
    if (this.#busy) return;
    this.#busy = true;
    // Later, so that more can be added first: one message is much cheaper than two.
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
    // Outcomes come last: nothing of an attempt may follow its outcome.
    for (const ended of this.#outcomes) cut.room(sizeOf(ended)).outcomes.push(ended);
    this.#logs = 0;
    this.#noted.clear();
    this.#outcomes = [];
    return cut.messages;
  }
}

// Packs items into messages.
class Cutter {
  messages = [];
  #filled = 0; // bytes in the last message

  // A message with room for an item of this many bytes.
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

// An upper bound for what the texts take in UTF-8.
function sizeOf({ succeeded, failed }) {
  if (succeeded) {
    const followUps = succeeded.followUps ?? [];
    return (succeeded.result?.length ?? 0) + followUps.reduce((sum, one) => sum + one.length + 8, 0);
  }
  return failed ? 3 * (failed.code.length + failed.message.length + failed.stack.length) : 0;
}
