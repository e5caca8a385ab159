// The test plugin: the payload says what to do.
import { spawn, spawnSync } from 'node:child_process';
import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import * as holdfast from '@holdfast-jobs/holdfast';

const { Cancel, Failure, Permanent, RetryAfter, Snooze } = holdfast;

if (process.argv.includes('noise')) {
  console.log('loading | 1 | 2');
  writeSync(1, 'no end here ');
}

const bare = (error) => { throw error; };

const facts = (job) => ({
  id: job.id, type: job.type, tenant: job.tenant, attempt: job.attempt, maxAttempts: job.maxAttempts,
  fence: job.fence, createdAt: job.createdAt.toISOString(), rawPayload: job.rawPayload.toString(), payload: job.payload,
  traceparent: job.traceparent, baggage: job.baggage, resumed: job.resume(null),
});

function report(job) {
  for (let n = 0; n < job.payload.n; n++) {
    job.progress({ n });
    job.checkpoint({ n, pad: 'x'.repeat(job.payload.pad ?? 0) });
  }
}

function submit(job) {
  for (let n = 0; n < job.payload.n; n++) job.submit('CHILD', { n }, { delayMs: 1500, tags: ['child'] });
  if (job.payload.fail) throw new Error('failed after it has submitted');
}

function log(job) {
  for (let n = 0; n < (job.payload.n ?? 1); n++) job.log.info('a line', { n, text: 'Grüße, 世界' });
  const itself = {};
  itself.itself = itself;
  job.log.error('a wrong\ud800 line', itself);
  job.log.warn('an error', { error: new Error('inner') });
}

function noise() {
  console.log('printed');
  writeSync(1, 'written past the language\n');
  spawnSync('echo', ['by a child'], { stdio: 'inherit' });
  process.stdout.write('x'.repeat(560_000));
}

async function child(job) {
  job.progress(spawn('sleep', ['1000'], { stdio: 'ignore' }).pid);
  await sleep(60_000);
}

// Waits for its stop, logs the reason, and ends as the payload says.
async function stop(job) {
  job.progress('waiting');
  try {
    await sleep(60_000, undefined, { signal: job.signal });
  } catch (error) {
    console.log(`asked to stop: ${job.cancelReason}`);
    job.log.info('asked to stop', { why: job.signal.reason.reason });
    if (job.payload.how === 'succeed') return 'all the same';
    if (job.payload.how === 'permanent') throw new Permanent('late');
    throw error;
  }
}

async function ignore(job) {
  job.progress('waiting');
  await sleep(60_000);
}

async function spin(job) {
  job.progress('spinning');
  await sleep(100); // so that it is sent
  for (;;);
}

const run = {
  echo: (job) => job.payload.value,
  size: (job) => job.payload.value.length,
  big: (job) => 'x'.repeat(job.payload.n),
  facts,
  error: () => bare(new RangeError('out of paper')),
  odd: () => bare(undefined),
  permanent: () => bare(new Permanent('no printer', { code: 'no_printer' })),
  'retry-after': () => bare(new RetryAfter(1500, 'busy', { code: 'busy' })),
  both: () => bare(new Failure('both', { permanent: true, retryAfterMs: 2000, code: 'both' })),
  group: () => Promise.any([Promise.reject(new Error('a')), Promise.reject(new Permanent('b', { code: 'b' }))]),
  snooze: () => bare(new Snooze(2500)),
  cancel: () => bare(new Cancel('not needed')),
  'bad-result': () => 1n,
  'bad-text': () => bare(new Error('a\0b\ud800c')),
  report, submit, log, noise, child, stop, ignore, spin,
  sleep: async (job) => { await sleep(job.payload.seconds * 1000); },
  stray: async () => {
    setTimeout(() => bare(new Error('stray')), 1);
    await sleep(1000);
  },
  environment: () => process.env,
};

const test = holdfast.handler('TEST', (job) => run[job.payload.do](job), {
  schema: { type: 'object', required: ['do'], properties: { do: { type: 'string' } } },
  timeoutMs: 90_000,
  retry: holdfast.exponentialBackoff(2000, 3, 60_000),
  maxAttempts: 7,
  description: 'Does what its payload says.',
  terms: {
    concurrencyKey: '/customer/id', keyClass: 'customer', concurrencyLimit: 3, onConflict: 'cancel_oldest', fairnessKey: '/re~1gion',
  },
});

if (process.argv.includes('twice')) holdfast.serve([test, test]);
else holdfast.serve([test], { version: '9.9-test', concurrency: 20 });
